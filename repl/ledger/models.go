package ledger

import (
	"github.com/rlmhq/rlm/repl/llm"
)

// Models resolves the names of models. *providers.Registry implements it.
type Models interface {
	Resolve(name string) (llm.Model, error)
}
