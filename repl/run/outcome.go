package run

import (
	"encoding/json"
	"time"

	"github.com/rlmhq/rlm/internal/text/texts"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/tiers"
)

// Outcome is the result of a run.
type Outcome struct {
	Status ledger.Status `json:"status"`
	// Answer is the answer as JSON; an answer in words is a JSON string. It is set only with
	// ledger.StatusAnswered and ledger.StatusSynthesised, and always meets the contract.
	Answer json.RawMessage `json:"answer,omitempty"`
	// Partial is the unchecked state of a run that ended without an answer: the value of
	// answer["content"], or else the last output.
	Partial string `json:"partial,omitempty"`
	// Reason explains in one sentence why the status is not answered, or which records have no
	// value in the answer.
	Reason string `json:"reason,omitempty"`
	// Bypassed reports that the input was small and a single call answered, without a loop.
	Bypassed bool `json:"bypassed,omitempty"`
	// Turns counts the turns of the root, Loops the sub-loops of the whole tree.
	Turns int `json:"turns"`
	Loops int `json:"loops"`
	// Compactions counts how often the root's messages were summarised.
	Compactions int `json:"compactions,omitempty"`
	// Spent is the part of Budget that the whole tree used.
	Spent   ledger.Spending `json:"spent"`
	Budget  ledger.Budget   `json:"budget"`
	Elapsed time.Duration   `json:"elapsed_ns"`
	// Trace is the folder of the record; empty if there is none.
	Trace string `json:"trace,omitempty"`
	// Collected reports the files copied to Config.Out; nil without Out or without a loop.
	Collected *tiers.Collected `json:"-"`
	// Messages are the question, the root's turns without the system prompt, and the answer.
	Messages []llm.Message `json:"-"`
}

// Text returns the answer for display: a string verbatim, anything else as JSON.
func (o *Outcome) Text() string { return texts.Show(o.Answer) }
