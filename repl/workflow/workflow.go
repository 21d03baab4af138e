package workflow

import (
	"context"
	"fmt"
	"time"

	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/workflow/internal/correct"
	"github.com/rlmhq/rlm/repl/workflow/internal/flow"
	"github.com/rlmhq/rlm/tiers"
)

// The endings of a run, beside those of package ledger.
const (
	StatusDone   = flow.StatusDone   // every node ran
	StatusBroken = flow.StatusBroken // something broke
)

// Config says with what a file is run, and within which bounds. A zero field means its
// default, never "no limit".
type Config struct {
	// Actions are further actions that nodes can use.
	Actions []Action
	// Models resolves the names of models.
	Models ledger.Models
	// Model is asked where a step names none. The state's member "model" goes before
	// it, if it names an allowed one.
	Model string
	// Allowed are further models that the file may name.
	Allowed []string
	// ModelFor says which model is asked instead of one that the file names.
	ModelFor map[string]string
	// MaxReply bounds the tokens of one reply; by default 8192.
	MaxReply int
	// Retries is how often a reply that breaks its contract is asked for again, by
	// default 2; a negative number is none.
	Retries int
	// CallsAtOnce bounds model calls in flight, by default 16.
	CallsAtOnce int

	// Open makes the runner of the session that runs Python. It is needed only if the
	// file has any.
	Open repl.Opener
	// Limits bound each piece of code; of Lua, Prolog and templates its time and
	// memory, by default 10 s and 128 MiB.
	Limits tiers.Limits
	// Deterministic makes clocks and randomness in Python repeatable.
	Deterministic bool

	// Budget is for the whole run.
	Budget ledger.Budget
	// Trace is the folder for the record, empty for none. It must not hold a trace yet.
	// Each node is a sub-loop in it.
	Trace string
	// Progress receives events as they happen. It must be quick. The run is node "0" of
	// the events, the first node of the file "0.1"; what a loop is at is its turn.
	Progress func(ledger.Event)
}

// flow is the configuration of the run below.
func (c *Config) flow() (flow.Config, error) {
	actions, err := actionsOf(c.Actions)

	return flow.Config{
		Actions: actions, Models: c.Models, Model: c.Model, Allowed: c.Allowed,
		ModelFor: c.ModelFor, MaxReply: c.MaxReply, Retries: c.Retries, CallsAtOnce: c.CallsAtOnce,
		Open: c.Open, Limits: c.Limits, Deterministic: c.Deterministic, Budget: c.Budget,
		Trace: c.Trace, Progress: c.Progress,
	}, err
}

// Action is an operation that nodes can use, beside llm.call and reflection.*.
type Action struct {
	// Name is what the file calls it, such as "mail.send"; Doc is a sentence for people.
	Name, Doc string
	// Params are the parameters that it takes. Files are checked against them.
	Params []Param
	// Do does the work. State is the run's, to be read; with has the parameters:
	// defaults filled in, templates rendered, of the types that Params says. Values are
	// as encoding/json knows them, numbers as json.Number.
	Do func(ctx context.Context, state, with map[string]any) (any, error)
}

// Param is a parameter of an action.
type Param struct {
	// Name is its name, Doc a sentence for people.
	Name, Doc string
	// Type is "any", "text", "model", "int", "number", "list" or "object". A text with
	// a template in it stands for any type.
	Type string
	// Required refuses a file that leaves it out. Default is its value then, nil for
	// none.
	Required bool
	Default  any
	// Values are the texts that it may be; nil is any.
	Values []string
	// Least and Most bound an int, unless both are 0.
	Least, Most int
}

// paramTypes are the types of parameters.
var paramTypes = map[string]flow.Type{
	"any": flow.AnyType, "text": flow.TextType, "model": flow.ModelType, "int": flow.WholeType,
	"number": flow.NumberType, "list": flow.ListType, "object": flow.ObjectType,
}

// actionsOf are the actions of every file and further ones.
func actionsOf(further []Action) (flow.Actions, error) {
	all := correct.Actions()
	for i := range further {
		action, err := actionOf(&further[i])
		if err != nil {
			return nil, err
		}
		all = append(all, action)
	}
	return flow.NewActions(all...)
}

// actionOf is an embedder's action as the run below has it.
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
		do := a.Do
		out.Do = func(ctx context.Context, r *flow.Run, with map[string]any) (any, error) {
			return do(ctx, r.State, with)
		}
	}

	return out, nil
}

// File is a workflow file. It does not change.
type File struct {
	// Folder is where schemas lie that "$ref" may name; empty is nowhere.
	Folder string

	file *flow.File
}

// Parse reads a file, whose problems are reported under its name. The error is a
// [*FileError]: everything that is wrong with its structure. [File.Check] finds what is
// wrong with what it asks for.
func Parse(name string, source []byte) (*File, error) {
	file, err := flow.Parse(name, source)
	if err != nil {
		return nil, publish(err)
	}
	return &File{file: file}, nil
}

// Check finds what a run would refuse before any work: actions and parameters that
// there are not, contracts that do not compile, templates that cannot be read. Further
// are the actions of [Config]. The error is a [*FileError], the context's, or says that
// no template can be read here.
func (f *File) Check(ctx context.Context, further ...Action) error {
	actions, err := actionsOf(further)
	if err != nil {
		return err
	}
	return publish(f.inFolder().Check(ctx, actions))
}

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

// Run runs the file over an input, whose members the state begins with. The file is
// checked first.
//
// The error is a [*repl.SetupError] if the run could not begin (with a [*FileError] in
// it if that is the file's fault), a [*NodeError] if a node could not do its work, the
// context's cause if it ended, or what broke; a budget that was used up is none. The
// Outcome says how far the run came.
func (f *File) Run(ctx context.Context, cfg Config, input map[string]any) (Outcome, error) {
	below, err := cfg.flow()
	if err != nil {
		return Outcome{
			Status: ledger.StatusFailed, State: input, Reason: err.Error(),
		}, &repl.SetupError{Err: err}
	}

	outcome, err := f.inFolder().Run(ctx, below, input)

	return Outcome(outcome), publish(err)
}

// inFolder is the file as the run below has it.
func (f *File) inFolder() *flow.File {
	file := *f.file
	file.Folder = f.Folder
	return &file
}
