package flow

import (
	"fmt"
	"time"

	"github.com/rlmhq/rlm/repl/ledger"
)

// How runs end.
const (
	StatusDone   ledger.Status = "done"   // every node ran
	StatusBroken ledger.Status = "broken" // something broke
)

// Outcome is the result of a run.
type Outcome struct {
	Status ledger.Status `json:"status"`
	// State is what the nodes have made of the input, as far as they came.
	State map[string]any `json:"state"`
	// Result is that of the last node that ended.
	Result any `json:"result"`
	// Node is the node at which the run ended early, Reason why.
	Node   string `json:"node,omitempty"`
	Reason string `json:"reason,omitempty"`

	Spent   ledger.Spending `json:"spent"`
	Budget  ledger.Budget   `json:"budget"`
	Elapsed time.Duration   `json:"elapsed_ns"`
	// Trace is the folder of the record, empty if there is none.
	Trace string `json:"trace,omitempty"`
}

// NodeError says that a node could not do what it should, by what the file, its
// code or a model made of it. The run ends with it.
type NodeError struct {
	Node string
	Err  error
}

// Error names the node.
func (e *NodeError) Error() string { return fmt.Sprintf("node %s: %v", quoteName(e.Node), e.Err) }

// Unwrap returns the reason.
func (e *NodeError) Unwrap() error { return e.Err }

// ProgramError is how code or a template of the file ended that did not do its
// work: it raised, exceeded a limit, or broke its interpreter. What it says is
// written by the code.
type ProgramError struct {
	// What is the program: "run", "the template", "the evaluator".
	What string
	// Type is the name of the exception or of the limit.
	Type, Message string
	// Traceback is Python's.
	Traceback string
	// Invalid says that it is not valid in its language: it never ran.
	Invalid bool
}

// ofTemplate is What of a template.
const ofTemplate = "the template"

// OfFile reports whether it is a mistake of the file, whatever the state: code that
// is not valid, or a template.
func (e *ProgramError) OfFile() bool { return e.Invalid || e.What == ofTemplate }

// Error says what the program did.
func (e *ProgramError) Error() string {
	return fmt.Sprintf("%s ended by %s: %s", e.What, e.Type, shortenText(e.Message, 1_000))
}
