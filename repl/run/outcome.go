package run

import (
	"encoding/json"
	"time"

	"github.com/rlmhq/rlm/internal/texts"
	"github.com/rlmhq/rlm/repl/ledger"
)

// Status says how a run ended: see [ledger.Status].
type Status = ledger.Status

// The ways in which a run ends. With StatusPartial, Partial is what there was.
const (
	StatusAnswered    = ledger.StatusAnswered
	StatusSynthesised = ledger.StatusSynthesised
	StatusPartial     = ledger.StatusPartial
	StatusNoAnswer    = ledger.StatusNoAnswer
	StatusCanceled    = ledger.StatusCanceled
	StatusFailed      = ledger.StatusFailed
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
	Spent   ledger.Spending `json:"spent"`
	Budget  ledger.Budget   `json:"budget"`
	Elapsed time.Duration   `json:"elapsed_ns"`
	// Trace is the folder with the record, empty if there is none.
	Trace string `json:"trace,omitempty"`
}

// Text is the answer for people: a string as it is, anything else as JSON.
func (o *Outcome) Text() string { return texts.Show(o.Answer) }
