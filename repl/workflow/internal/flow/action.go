package flow

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Action is an operation that a node can use.
type Action struct {
	// Name is the name in files, such as "llm.call".
	Name string
	// Doc is a one-sentence description.
	Doc string
	// Params are the parameters.
	Params []Param
	// Open allows parameters that Params does not name. Do receives them like Late parameters.
	Open bool
	// Asks marks an action that always asks a model, so that a run without a model is rejected
	// before it begins.
	Asks bool
	// Verify finds problems that Params cannot express, such as which of two parameters
	// is needed. It is called with the given parameters before anything runs.
	Verify func(with *Tree) []*Problem
	// Note finds differences between the apparent and the actual behaviour of the file.
	Note func(with *Tree) []*Problem
	// Do does the work. with holds the parameters of the file, with defaults filled in and
	// templates rendered except in Late parameters, in the types of Params. The result is a
	// value of encoding/json.
	Do func(ctx context.Context, r *Run, with map[string]any) (any, error)
}

// Type is the type of a parameter.
type Type string

// The types of parameters. A string that contains a template is allowed for every type.
const (
	AnyType    Type = "any"
	TextType   Type = "text"
	ModelType  Type = "model"  // the name of a model
	ActionType Type = "action" // the name of an action
	WholeType  Type = "int"
	NumberType Type = "number"
	ListType   Type = "list"
	ObjectType Type = "object"
	SchemaType Type = "schema" // a contract, never a template
	CodeType   Type = "code"   // a program, never a template
	StepType   Type = "step"   // an object with action and its parameters, or run
)

// Param is a parameter of an action.
type Param struct {
	Name     string
	Type     Type
	Required bool
	// Default is the value of a missing parameter; with nil, it is left out.
	Default any
	// Values are the allowed strings of a TextType; nil allows any.
	Values []string
	// Least and Most bound a WholeType, unless both are 0.
	Least, Most int
	// Fields are the members of an ObjectType; nil allows any. For a ListType they are the
	// members of each item, which must be an object.
	Fields []Param
	// Verify finds problems that Fields cannot express.
	Verify func(value *Tree) []*Problem
	// Late parameters are rendered by the action itself, when the state is complete.
	Late bool
	// Doc is a one-sentence description.
	Doc string
}

// actionTable holds the actions that a file can use, by name.
type actionTable map[string]Action

// newActionTable returns the actions of this package and more. Names must be unique.
func newActionTable(more []Action) (actionTable, error) {
	all := actionTable{}
	for _, a := range append([]Action{llmCall}, more...) {
		if a.Name == "" || a.Do == nil {
			return nil, errors.New("cannot add an action without a name or without Do")
		}
		if _, twice := all[a.Name]; twice {
			return nil, fmt.Errorf("cannot add action %q: the name is taken", a.Name)
		}
		all[a.Name] = a
	}

	return all, nil
}

// names returns the names of the actions, sorted.
func (a actionTable) names() []string { return slices.Sorted(maps.Keys(a)) }

// verbatim reports whether a parameter is never a template.
func (p *Param) verbatim() bool { return p.Type == SchemaType || p.Type == CodeType }

// find returns the parameter with a name, or nil.
func find(params []Param, name string) *Param {
	for i := range params {
		if params[i].Name == name {
			return &params[i]
		}
	}
	return nil
}

func namesOf(params []Param) []string {
	names := make([]string, len(params))
	for i := range params {
		names[i] = params[i].Name
	}
	return names
}

// stepKeys holds the members of a step that do not belong to its action.
const (
	stepAction = "action"
	stepRun    = "run"
)
