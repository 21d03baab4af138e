package chat

import (
	"encoding/json"
	"fmt"

	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/internal/kind"
)

// maxCalls bounds the calls in a reply.
const maxCalls = 128

// CheckCalls returns an error if a reply has more than maxCalls calls.
func CheckCalls(count int) error {
	if count <= maxCalls {
		return nil
	}
	return &llm.Error{
		Kind: kind.ErrMalformed, Message: fmt.Sprintf("the reply has more than %d calls of tools", maxCalls),
	}
}

// Call is a model's call of a tool.
type Call struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"` // JSON
}

// writeCalls returns the text of a reply with calls: see [llm.Request].
func writeCalls(answer string, calls []Call) string {
	text, err := json.Marshal(struct {
		Calls  []Call `json:"calls"`
		Answer string `json:"answer"`
	}{calls, answer})
	if err != nil {
		return answer // strings can always be encoded
	}
	return string(text)
}
