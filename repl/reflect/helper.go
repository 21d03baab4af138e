package reflect

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"unicode/utf8"

	"github.com/rlmhq/rlm/internal/text/texts"
	"github.com/rlmhq/rlm/repl/internal/agenttrace"
	"github.com/rlmhq/rlm/repl/internal/answers"
	"github.com/rlmhq/rlm/repl/internal/calls"
	"github.com/rlmhq/rlm/repl/internal/fanout"
	"github.com/rlmhq/rlm/repl/ledger"
)

// subagentCall is a call of a helper, for the record. Lengths are in characters.
type subagentCall struct {
	CallNumber     int    `json:"call_number"` // counts from 1, in order of completion
	Question       string `json:"question"`
	ContextLength  int    `json:"context_length"`
	ResponseLength int    `json:"response_length"`
	Mode           string `json:"mode"` // "analysis", "deep_dive", or the snippet's own word
}

// helper answers the model calls of snippets. Each call asks a sub-agent in one of the modes. It is
// safe for concurrent use.
type helper struct {
	*answers.Answers
	disabled bool

	mu    sync.Mutex
	calls []subagentCall
}

var _ answers.Answerer = (*helper)(nil)

// disabledText is the answer of a disabled helper.
const disabledText = "(ask_llm disabled - analyze with code)"

// defaultMode is the mode of calls that specify none.
const defaultMode = "analysis"

// describeRefusal returns the answer to a call that does not fit the budget.
func (c *Config) describeRefusal(err *ledger.BudgetError) string {
	if err.What == "calls" {
		return fmt.Sprintf(
			"(Max %d LLM calls exceeded - continue with available data)", c.MaxLLMCalls,
		)
	}
	return fmt.Sprintf("(%s - continue with available data)", err)
}

// newHelper returns the helper of a run.
func newHelper(c *Config, caller *calls.Caller) *helper {
	return &helper{disabled: c.NoSubagent, Answers: &answers.Answers{
		Caller: caller, Node: "0", Model: c.SubModel, Models: c.models(),
		CallsAtOnce: c.CallsAtOnce, Retries: calls.DefaultRetries, MaxTokens: c.SubagentMaxTokens,
		Temperature: c.SubagentTemperature, OtherMode: c.SubagentSystemPrompt, Refused: c.describeRefusal,
	}}
}

// Ask asks the sub-agent. The history omits calls that the budget refused.
func (h *helper) Ask(ctx context.Context, q answers.Query, mode string) (json.RawMessage, error) {
	if h.disabled {
		if q.Schema != nil {
			return nil, errors.New(
				"ask_llm is disabled and cannot return a typed value: analyse with code",
			)
		}
		return json.Marshal(disabledText)
	}

	q.Mode = mode
	return h.Answers.Ask(calls.WithRecorder(ctx, func(c ledger.SubCall) {
		h.note(c)
		calls.RecordCall(ctx, c)
	}), q, mode)
}

// note adds a call to the history.
func (h *helper) note(c ledger.SubCall) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = append(h.calls, subagentCall{
		CallNumber: len(h.calls) + 1, Question: texts.Truncate(c.Question, maxQuestion),
		Mode: agenttrace.Shorten(c.Mode, 60), ContextLength: c.ContextLength,
		ResponseLength: utf8.RuneCountInString(c.Response),
	})
}

// maxQuestion bounds a question in the history, in characters.
const maxQuestion = 2_000

// history returns the calls made until now.
func (h *helper) history() []subagentCall {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]subagentCall{}, slices.Clone(h.calls)...)
}

// Leaf is llm_query: a question without a mode.
func (h *helper) Leaf(ctx context.Context, q answers.Query) (json.RawMessage, error) {
	return h.Ask(ctx, q, defaultMode)
}

// Many asks many questions concurrently.
func (h *helper) Many(
	ctx context.Context, queries []answers.Query, _ bool,
) ([]fanout.Slot[json.RawMessage], error) {
	slots := fanout.Run(
		ctx,
		len(queries),
		h.CallsAtOnce,
		func(ctx context.Context, i int) (json.RawMessage, error) {
			return h.Leaf(ctx, queries[i])
		},
	)

	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return slots, nil
}

// Foresee rejects queries that cannot fit the budget. A disabled helper costs nothing.
func (h *helper) Foresee(ctx context.Context, queries []answers.Query) error {
	if h.disabled {
		return nil
	}
	return h.Answers.Foresee(ctx, queries)
}
