package calls

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/rlmhq/rlm/internal/text/texts"
	"github.com/rlmhq/rlm/repl/internal/finish"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/schema"
)

// room is the space that a reply may use.
type room struct {
	Tokens  int64 `json:"tokens"`
	IsShort bool  `json:"short,omitempty"` // the run allows more
}

// moreRoom is the factor by which the room grows after a truncated reply.
const moreRoom = 4

// Complete asks a model. The text of the response excludes thoughts; the event includes them. A
// snippet's call may begin with less room for its reply than the run allows. If the reply is
// then truncated, Complete asks again with more room. If the server reports that prompt and
// reply together exceed the window, it asks again with less. The error is a [*ledger.BudgetError],
// the provider's, or the context's.
func (c *Caller) Complete(ctx context.Context, a Ask) (llm.Response, error) {
	least := int64(0)
	if a.Sub {
		least = int64(max(minOutput, predictTokens(a.Schema)))
	}

	for mayShrink := true; ; {
		response, granted, err := c.ask(ctx, a, least)
		if mayShrink && c.learnWindow(&a, err) {
			mayShrink = false
			c.emit(a, ledger.Event{Kind: ledger.EventRetry, Error: err.Error()})
			continue
		}

		mayGrow := granted.IsShort && granted.Tokens >= least // otherwise the budget allows no more
		if err != nil || response.Finish != llm.FinishLength || !mayGrow {
			return response, err
		}
		c.emit(a, ledger.Event{
			Kind: ledger.EventRetry, Status: llm.FinishLength,
			Error: fmt.Sprintf("the reply was cut after %d tokens", granted.Tokens),
		})
		least = moreRoom * granted.Tokens
	}
}

// CompleteText asks a model for a reply without a schema. After an incomplete reply it asks again,
// at most retries times, with more room each time.
func (c *Caller) CompleteText(ctx context.Context, a Ask, retries int) (string, error) {
	response, lack, err := c.completeWhole(ctx, &a, &retries)
	switch {
	case err != nil:
		return "", err
	case lack != "":
		return "", fmt.Errorf("the model %s gave no answer: %s", a.Model, lack)
	}
	return response.Text, CheckRefusal(a.Model, response)
}

// completeWhole asks until a reply is complete. Each further attempt uses one of the retries and
// has twice the room, as far as the model allows. Lack describes the deficiency of the last reply.
func (c *Caller) completeWhole(
	ctx context.Context, a *Ask, retries *int,
) (response llm.Response, lack string, err error) {
	for {
		if response, err = c.Complete(ctx, *a); err != nil {
			return response, "", err
		}
		if lack = findLack(response); lack == "" {
			return response, "", nil
		}

		before, after, err := c.doubleRoom(a)
		cannotGrow := response.Finish == llm.FinishLength && after <= before
		if *retries--; err != nil || *retries < 0 || cannotGrow {
			return response, lack, err
		}
		c.emit(*a, ledger.Event{Kind: ledger.EventRetry, Status: response.Finish, Error: lack})
	}
}

// doubleRoom doubles the room for the reply to an ask. It returns the room before and after.
func (c *Caller) doubleRoom(a *Ask) (before, after int, err error) {
	m, err := c.resolve(a.Model)
	if err != nil {
		return 0, 0, err
	}
	before = c.makeRequest(a, &m).MaxTokens
	a.MaxTokens = 2 * before
	return before, c.makeRequest(a, &m).MaxTokens, nil
}

// findLack returns the reason why a reply is not a complete answer, or "" if it is complete or a
// refusal.
func findLack(r llm.Response) string {
	switch {
	case r.Finish == llm.FinishRefusal:
		return ""
	case r.Finish != llm.FinishStop:
		return DescribeCut(r)
	case strings.TrimSpace(r.Text) == "":
		return "the reply has no text besides thoughts"
	case texts.IsToolCall(r.Text):
		return "the reply is a call of a tool that does not exist"
	}
	return ""
}

// DescribeCut returns the reason why a reply is incomplete, or "" if it is complete or a refusal.
func DescribeCut(r llm.Response) string {
	switch r.Finish {
	case llm.FinishStop, llm.FinishRefusal:
		return ""
	case llm.FinishLength:
		return "the limit of tokens cut the reply"
	case finish.ToolCalls:
		return "the reply is a call of a tool that does not exist"
	}
	return finish.Describe(r.Finish)
}

// CheckWhole returns an error if a model declined to answer or if its reply is incomplete.
func CheckWhole(model string, r llm.Response) error {
	if lack := DescribeCut(r); lack != "" {
		return fmt.Errorf("the model %s gave no answer: %s", model, lack)
	}
	return CheckRefusal(model, r)
}

// predictTokens returns the typical length of a reply, in tokens: one word for a boolean or a
// number, some sentences for anything else.
func predictTokens(contract *schema.Contract) int {
	if contract != nil && IsShort(contract) {
		return 16
	}
	return 400
}

// IsShort reports whether a value that meets a contract is a word or a number.
func IsShort(contract *schema.Contract) bool {
	type shape struct {
		Type any              `json:"type"`
		Enum []any            `json:"enum"`
		Ref  string           `json:"$ref"`
		Defs map[string]shape `json:"$defs"`
	}
	var s shape
	if json.Unmarshal(contract.JSONSchema(), &s) != nil {
		return false
	}
	if name, ok := strings.CutPrefix(s.Ref, "#/$defs/"); ok { // a class
		s = s.Defs[name]
	}
	return s.Enum != nil || s.Type == "boolean" || s.Type == "integer" || s.Type == "number"
}

// NonEmpty returns a reply that can be sent back, because servers reject empty messages.
func NonEmpty(text string) string {
	if strings.TrimSpace(text) == "" {
		return "(empty reply)"
	}
	return text
}
