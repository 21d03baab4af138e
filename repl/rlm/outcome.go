package rlm

import (
	"encoding/json"
	"time"

	"github.com/rlmhq/rlm/repl"
)

// Status says how a run ended.
type Status string

// The ways in which a run ends.
const (
	// StatusAnswered: the root model gave its answer, and it meets the contract.
	StatusAnswered Status = "answered"
	// StatusSynthesised: the turns ran out, and the model gave its best answer when
	// it was asked to.
	StatusSynthesised Status = "synthesised"
	// StatusPartial: the budget was used up first. Partial is what there was.
	StatusPartial Status = "partial"
	// StatusNoAnswer: the turns ran out, and there is no answer that meets the
	// contract.
	StatusNoAnswer Status = "no_answer"
	// StatusCanceled: the caller ended the run.
	StatusCanceled Status = "canceled"
	// StatusFailed: something broke; Run returns the error.
	StatusFailed Status = "failed"
)

// Outcome is what became of a run.
type Outcome struct {
	Status Status `json:"status"`
	// Answer is the answer as JSON, a string for text. It is set with
	// StatusAnswered and StatusSynthesised alone, and always meets the contract.
	Answer json.RawMessage `json:"answer,omitempty"`
	// Partial is what there was when a run ended without an answer: what snippets
	// had put into answer["content"], else the last output. Nobody checked it.
	Partial string `json:"partial,omitempty"`
	// Reason is why the status is not answered, one sentence.
	Reason string `json:"reason,omitempty"`
	// Bypassed says that the input fitted and no loop was needed.
	Bypassed bool `json:"bypassed,omitempty"`
	// Turns are those of the root, Loops the sub-loops of the whole tree.
	Turns int `json:"turns"`
	Loops int `json:"loops"`
	// Compactions counts how often the root's messages were summed up.
	Compactions int `json:"compactions,omitempty"`
	// Spent is what the whole tree used, of Budget.
	Spent   repl.Spending `json:"spent"`
	Budget  repl.Budget   `json:"budget"`
	Elapsed time.Duration `json:"elapsed_ns"`
	// Trace is the folder with the record, empty if there is none.
	Trace string `json:"trace,omitempty"`
}

// Text is the answer for people: a string as it is, anything else as JSON.
func (o *Outcome) Text() string { return repl.TextOf(o.Answer) }
