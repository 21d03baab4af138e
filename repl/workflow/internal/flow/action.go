package flow

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Action is something that a node can use.
type Action struct {
	// Name is what the file calls it, such as "llm.call".
	Name string
	// Doc is a sentence for people.
	Doc string
	// Params are the parameters that it takes.
	Params []Param
	// Open lets a file give parameters that Params does not name. Do gets them as
	// those of Late.
	Open bool
	// Asks says that it asks a model whenever it is used: a run without any is refused
	// before it begins.
	Asks bool
	// Verify finds what Params cannot say, such as which of two parameters is
	// needed. It is called before anything runs, with the parameters that are there.
	Verify func(with *Tree) []*Problem
	// Do does the work. with has the parameters that the file gives, defaults filled
	// in, templates rendered but for those of Late parameters, and of the types that
	// Params says. The result is a value as encoding/json knows it.
	Do func(ctx context.Context, r *Run, with map[string]any) (any, error)
}

// Type says what a parameter is.
type Type string

// The types of parameters. A text with a template in it stands for any type.
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
	// Default is what a parameter is that is not given; nil leaves it out.
	Default any
	// Values are the texts that a TextType may be; nil is any.
	Values []string
	// Least and Most bound a WholeType, unless both are 0.
	Least, Most int
	// Fields are the members of an ObjectType; nil is any. Of a ListType they are
	// the members of each item, which is an object then.
	Fields []Param
	// Verify finds what Fields cannot say.
	Verify func(value *Tree) []*Problem
	// Late parameters are rendered by the action itself, when it knows the state.
	Late bool
	// Doc is a sentence for people.
	Doc string
}

// Actions are what the nodes of a file can use, by their names.
type Actions map[string]Action

// NewActions returns the actions of this package and more. A name may be there
// once.
func NewActions(more ...Action) (Actions, error) {
	all := Actions{}
	for _, a := range append([]Action{llmCall}, more...) {
		if a.Name == "" || a.Do == nil {
			return nil, errors.New("cannot add an action without a name or without Do")
		}
		if _, twice := all[a.Name]; twice {
			return nil, fmt.Errorf("cannot add action %q: there is one of that name", a.Name)
		}
		all[a.Name] = a
	}

	return all, nil
}

// Names are the actions' names, sorted.
func (a Actions) Names() []string { return slices.Sorted(maps.Keys(a)) }

// verbatim reports whether a parameter is never a template.
func (p *Param) verbatim() bool { return p.Type == SchemaType || p.Type == CodeType }

// find returns the parameter of a name, nil if there is none.
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

// stepKeys are the members of a step that are not its action's.
const (
	stepAction = "action"
	stepRun    = "run"
)
