package ledger

import (
	"github.com/rlmhq/rlm/repl/llm"
)

// Models resolves the names of models. *[llm.Registry] is one.
type Models interface {
	Resolve(name string) (llm.Model, error)
}
