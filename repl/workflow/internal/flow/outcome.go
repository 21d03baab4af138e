package flow

import (
	"fmt"
	"time"

	"github.com/rlmhq/rlm/repl/ledger"
)

// The ways in which runs end.
const (
	StatusDone   ledger.Status = "done"   // every node ran
	StatusBroken ledger.Status = "broken" // a failure ended the run
)

// Outcome is converted to workflow.Outcome, which documents the fields: the documentation of a
// public type belongs in a public package, and the conversion does not compile if the types differ.
type Outcome struct {
	Status  ledger.Status   `json:"status"`
	State   map[string]any  `json:"state"`
	Result  any             `json:"result"`
	Node    string          `json:"node,omitempty"`
	Reason  string          `json:"reason,omitempty"`
	Spent   ledger.Spending `json:"spent"`
	Budget  ledger.Budget   `json:"budget"`
	Elapsed time.Duration   `json:"elapsed_ns"`
	Trace   string          `json:"trace,omitempty"`
}

// NodeError reports that a node failed because of the file, its code or a model. It ends the
// run.
type NodeError struct {
	File, Node string
	Err        error
}

// Error names the file and the node.
func (e *NodeError) Error() string {
	return fmt.Sprintf("%s: node %s: %v", e.File, quoteName(e.Node), e.Err)
}

// Unwrap returns the reason.
func (e *NodeError) Unwrap() error { return e.Err }

// ProgramError reports that code or a template of the file raised, exceeded a limit, or broke its
// interpreter. The code determines the message, which is untrusted.
type ProgramError struct {
	// What is the program: "run", "the template", "the evaluator".
	What string
	// Type is the name of the exception or of the limit.
	Type, Message string
	// Traceback is the Python traceback.
	Traceback string
	// Invalid reports that the code is not valid in its language and never ran.
	Invalid bool
}

// ofTemplate is the What of a template.
const ofTemplate = "the template"

// OfFile reports whether the file is at fault whatever the state is, because of invalid code or a
// template.
func (e *ProgramError) OfFile() bool { return e.Invalid || e.What == ofTemplate }

// Error describes how the program ended.
func (e *ProgramError) Error() string {
	return fmt.Sprintf("%s ended by %s: %s", e.What, e.Type, shortenText(e.Message, 1_000))
}
