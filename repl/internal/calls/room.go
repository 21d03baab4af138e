package calls

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/schema"
)

// room is what a reply may have.
type room struct {
	tokens  int64
	isShort bool // the run allows more
}

// moreRoom is how many times the room of a reply that was cut the next one gets.
const moreRoom = 4

// Complete asks a model. The text of the response is without thoughts; the event has them.
// A call of a snippet may begin with less room for its reply than the run allows. If the
// reply is cut then, Complete asks again with more. The error is a [*ledger.BudgetError],
// one of the provider, or the context's.
func (c *Caller) Complete(ctx context.Context, a Ask) (llm.Response, error) {
	least := int64(0)
	if a.Sub {
		least = int64(max(minOutput, predictTokens(a.Schema)))
	}

	for {
		response, granted, err := c.ask(ctx, a, least)
		mayGrow := granted.isShort && granted.tokens >= least // else the budget has no more
		if err != nil || response.Finish != llm.FinishLength || !mayGrow {
			return response, err
		}
		c.emit(a, ledger.Event{
			Kind: ledger.EventRetry, Status: llm.FinishLength,
			Error: fmt.Sprintf("the reply was cut after %d tokens", granted.tokens),
		})
		least = moreRoom * granted.tokens
	}
}

// predictTokens returns the usual length of a reply: a word for a yes or a number, some
// sentences for everything else.
func predictTokens(contract *schema.Contract) int {
	if contract == nil {
		return 400
	}
	var s struct {
		Type any   `json:"type"`
		Enum []any `json:"enum"`
	}

	if json.Unmarshal(contract.JSONSchema(), &s) == nil &&
		(s.Enum != nil || s.Type == "boolean" || s.Type == "integer" || s.Type == "number") {
		return 16
	}
	return 400
}
