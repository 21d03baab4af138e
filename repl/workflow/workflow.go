package workflow

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/workflow/internal/correct"
	"github.com/rlmhq/rlm/repl/workflow/internal/flow"
	"github.com/rlmhq/rlm/tiers"
)

// The ways in which a run ends, in addition to those of package ledger.
const (
	StatusDone   = flow.StatusDone   // every node ran
	StatusBroken = flow.StatusBroken // a failure ended the run
)

// Config configures a run of a file: models and bounds. A zero field means its default, never
// "no limit".
type Config struct {
	// Models resolves the names of models.
	Models ledger.Models
	// Model is the model of steps that name none. The state's member "model" replaces it
	// if it names an allowed model.
	Model string
	// AllowedModels are further models that the file may name.
	AllowedModels []string
	// ModelFor maps models that the file names to replacements.
	ModelFor map[string]string
	// MaxReply bounds the tokens of one reply; by default 8192.
	MaxReply int
	// Retries bounds how often a model is asked again after a reply that violates its contract,
	// by default 2. A negative number means none.
	Retries int
	// CallsAtOnce bounds model calls in flight, by default 64.
	CallsAtOnce int

	// Open makes the runner of the session for Python code. It is needed only if the file contains
	// such code.
	Open repl.Opener
	// Limits bound each piece of code. For Lua, Prolog and templates, they bound only time and
	// memory, by default to 10 s and 128 MiB.
	Limits tiers.Limits
	// Deterministic makes clocks and randomness in Python repeatable.
	Deterministic bool

	// Budget bounds the whole run.
	Budget ledger.Budget
	// Trace is the folder for the record; empty for none. It must not hold a record yet. Each
	// node is a sub-loop in it.
	Trace string
	// Progress receives events as they happen. It must return quickly. In events, the run is
	// node "0" and the first node of the file "0.1"; the turn of an event is a loop's iteration.
	Progress func(ledger.Event)
}

// Action is an operation that nodes can use, in addition to llm.call and reflection.*.
type Action struct {
	// Name is the name in files, such as "mail.send". Doc is a one-sentence description.
	Name, Doc string
	// Params are the parameters. Files are checked against them.
	Params []Param
	// Do does the work. It may read state. with holds the parameters, with defaults filled in
	// and templates rendered, in the types of Params. Values are those of encoding/json, with
	// numbers as json.Number.
	Do func(ctx context.Context, state, with map[string]any) (any, error)
}

// Param is a parameter of an action.
type Param struct {
	// Name is the name in files. Doc is a one-sentence description.
	Name, Doc string
	// Type is "any", "text", "model", "int", "number", "list" or "object". A string that contains a
	// template is allowed for every type.
	Type string
	// Required rejects a file without the parameter. If it is false, a missing parameter has the
	// value Default; nil means none.
	Required bool
	Default  any
	// Values are the allowed strings; nil allows any.
	Values []string
	// Least and Most bound an int, unless both are 0.
	Least, Most int
}

// paramTypes are the types of parameters.
var paramTypes = map[string]flow.Type{
	"any": flow.AnyType, "text": flow.TextType, "model": flow.ModelType, "int": flow.WholeType,
	"number": flow.NumberType, "list": flow.ListType, "object": flow.ObjectType,
}

// actionOf returns an embedder's action in the form of package flow.
func actionOf(a *Action) (flow.Action, error) {
	out := flow.Action{Name: a.Name, Doc: a.Doc}
	for _, p := range a.Params {
		kind, known := paramTypes[p.Type]
		if !known {
			return out, fmt.Errorf(
				"cannot add action %q: its parameter %q has the unknown type %q", a.Name, p.Name,
				p.Type,
			)
		}
		out.Params = append(out.Params, flow.Param{
			Name: p.Name, Doc: p.Doc, Type: kind, Required: p.Required, Default: p.Default,
			Values: p.Values, Least: p.Least, Most: p.Most,
		})
	}

	if a.Do != nil {
		out.Do = keepAction(a)
	}

	return out, nil
}

// File is a workflow file. It is immutable.
type File struct {
	// Folder is the folder of schemas that "$ref" may name; empty allows none.
	Folder string
	// Notes are differences between the apparent and the actual behaviour of the file, such as keys
	// without effect.
	Notes []*Problem

	file *flow.File
}

// Title returns the title in the file, or else the name under which it was parsed.
func (f *File) Title() string { return cmp.Or(f.file.Title, f.file.Name) }

// Parse reads a file and reports its problems under a name. Its nodes can use further actions.
// The error is a [*FileError] with every structural problem, or names an action that cannot be
// used. [File.Check] finds unknown actions, and wrong parameters, contracts and templates.
func Parse(name string, source []byte, further ...Action) (*File, error) {
	actions := correct.Actions()
	for i := range further {
		action, err := actionOf(&further[i])
		if err != nil {
			return nil, err
		}
		actions = append(actions, action)
	}

	file, err := flow.Parse(name, source, actions...)
	if err != nil {
		return nil, publish(err)
	}
	return &File{file: file, Notes: publishProblems(file.Notes())}, nil
}

// Check finds problems for which Run would reject the file before any work: unknown actions and
// parameters, contracts that do not compile, unreadable templates. The error is a [*FileError],
// the context's error, or reports that this machine cannot check templates.
func (f *File) Check(ctx context.Context) error {
	return publish(f.inFolder().Check(ctx))
}

// Outcome is the result of a run.
type Outcome struct {
	Status ledger.Status `json:"status"`
	// State is the input after the changes of all nodes that ran.
	State map[string]any `json:"state"`
	// Result is the result of the last node that finished.
	Result any `json:"result"`
	// Node is the node at which the run ended early, and Reason the reason.
	Node   string `json:"node,omitempty"`
	Reason string `json:"reason,omitempty"`

	Spent   ledger.Spending `json:"spent"`
	Budget  ledger.Budget   `json:"budget"`
	Elapsed time.Duration   `json:"elapsed_ns"`
	// Trace is the folder of the record; empty if there is none.
	Trace string `json:"trace,omitempty"`
}

// Run checks the file and runs it over an input, whose members are the initial state.
//
// The error is a [*repl.SetupError] if the run could not begin (it wraps a [*FileError] if the
// file is at fault), a [*NodeError] if a node failed, the context's cause, or a description of
// another failure. Running out of budget is not an error. The Outcome holds the results up to the
// end of the run.
func (f *File) Run(ctx context.Context, cfg Config, input map[string]any) (Outcome, error) {
	outcome, err := f.inFolder().Run(ctx, flow.Config(cfg), input)
	return Outcome(outcome), publish(err)
}

// inFolder returns the file in the form of package flow.
func (f *File) inFolder() *flow.File {
	file := *f.file
	file.Folder = f.Folder
	return &file
}
