package rlm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/rlmhq/rlm/internal/snippet/protocol"
	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/schema"
	"github.com/rlmhq/rlm/tiers"
)

// Function is a host function, which snippets call by name: see [Func].
type Function struct {
	tool repl.Tool
	err  error // why the function cannot be offered
}

// Func makes a host function from a Go function. The exported fields of the struct In are its
// arguments, in order, under their names in package encoding/json. A field with omitempty or
// omitzero is optional; the tag jsonschema describes a field. Snippets pass arguments by position
// or by name, and receive the decoded JSON of Out. Invalid arguments never reach fn: the call
// raises an exception in the snippet.
//
//	rlm.Func("price", "Returns the price of an article, in euros.",
//		func(ctx context.Context, in struct {
//			Name string `json:"name" jsonschema:"the article"`
//		}) (float64, error) { ... })
//
// fn is called concurrently, and its arguments are untrusted. If fn returns an error, the snippet
// receives an exception with the error's message. If fn panics, the snippet receives an exception
// without details, which appear only in the log.
//
// If In is [tiers.Call], fn receives the call itself, with unchecked arguments.
//
// An invalid name or type causes an error when the function is given to a session or task.
func Func[In, Out any](
	name, doc string, fn func(ctx context.Context, in In) (Out, error),
) Function {
	f := Function{tool: repl.Tool{Name: name, Doc: doc}}
	answer := func(ctx context.Context, in In) (tiers.Value, error) {
		out, err := fn(ctx, in)
		if err != nil {
			return nil, err
		}
		return json.Marshal(out)
	}
	if f.err = checkFunctionName(name); f.err != nil {
		return f
	}
	if raw, ok := any(answer).(func(context.Context, tiers.Call) (tiers.Value, error)); ok {
		f.tool.Raw, f.tool.Signature = raw, name+"(*args, **kwargs)"
		return f
	}

	arguments, err := readArguments[In](name)
	if f.err = err; err != nil {
		return f
	}
	f.tool.Signature = name + "(" + arguments.contract.Parameters() + ")"
	f.tool.Call = func(ctx context.Context, args map[string]tiers.Value) (tiers.Value, error) {
		var in In
		if err := arguments.decode(args, &in); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return answer(ctx, in)
	}
	return f
}

// FuncOf makes a host function from a tool, for functions whose names, signatures and schemas are
// known only at run time.
func FuncOf(tool repl.Tool) Function {
	return Function{tool: tool, err: checkFunctionName(tool.Name)}
}

// checkFunctionName refuses an invalid name for a host function.
func checkFunctionName(name string) error {
	if err := protocol.CheckName(name); err != nil {
		return err
	}
	if _, taken := protocol.Lookup(name); taken || isHidden(name) {
		return fmt.Errorf("cannot offer host function %q: its name is reserved", name)
	}
	return nil
}

// arguments describes the arguments of a typed function.
type arguments struct {
	contract *schema.Contract
	fields   []schema.Field
}

// readArguments reads the arguments from a struct type.
func readArguments[In any](name string) (*arguments, error) {
	fail := func(err error) (*arguments, error) {
		return nil, fmt.Errorf("cannot offer host function %q: its arguments: %w", name, err)
	}
	if kind := reflect.TypeFor[In]().Kind(); kind != reflect.Struct {
		return fail(fmt.Errorf("want a struct, not a %s", kind))
	}
	described, err := jsonschema.For[In](nil)
	if err != nil {
		return fail(err)
	}
	document, err := json.Marshal(described)
	if err != nil {
		return fail(err)
	}
	contract, err := schema.Compile(document)
	if err != nil {
		return fail(err)
	}

	a := &arguments{contract: contract, fields: contract.Fields()}
	for _, field := range a.fields {
		if protocol.CheckName(field.Name) != nil {
			return fail(fmt.Errorf("%q cannot name an argument in Python", field.Name))
		}
	}
	return a, nil
}

// decode checks and decodes arguments. It leaves out an optional argument that is None.
func (a *arguments) decode(args map[string]tiers.Value, into any) error {
	given := maps.Clone(args)
	for _, field := range a.fields {
		if !field.Required && bytes.Equal(given[field.Name], []byte("null")) {
			delete(given, field.Name)
		}
	}
	object, err := json.Marshal(given)
	if err != nil {
		return fmt.Errorf("cannot encode the arguments: %w", err)
	}

	checked, violations, err := a.contract.Check(object)
	if err != nil {
		return err
	}
	if len(violations) == 0 && !bytes.Equal(checked, object) {
		violations, err = a.findCoerced(object, checked)
		if err != nil {
			return err
		}
	}
	if len(violations) > 0 {
		parts := make([]string, len(violations))
		for i, v := range violations {
			parts[i] = v.String()
		}
		return fmt.Errorf("the arguments do not match the schema: %s", strings.Join(parts, "; "))
	}
	return json.Unmarshal(checked, into)
}

// findCoerced returns the arguments that fit only after a conversion, such as "3" for 3. They are
// violations, because a function must receive the snippet's exact values.
func (a *arguments) findCoerced(given, checked json.RawMessage) ([]schema.Violation, error) {
	var before, after map[string]json.RawMessage
	err := errors.Join(json.Unmarshal(given, &before), json.Unmarshal(checked, &after))
	if err != nil {
		return nil, err
	}

	var found []schema.Violation
	for _, field := range a.fields {
		if !bytes.Equal(before[field.Name], after[field.Name]) {
			found = append(found, schema.Violation{
				Path: "$." + field.Name, Message: "want " + field.Contract.Describe(),
			})
		}
	}
	return found, nil
}

// addFunctions adds host functions to the tools of a session or a loop.
func addFunctions(tools *repl.Tools, functions []Function) (*repl.Tools, error) {
	if len(functions) == 0 {
		return tools, nil
	}
	more := make([]repl.Tool, len(functions))
	for i, f := range functions {
		switch {
		case f.err != nil:
			return nil, f.err
		case f.tool.Raw == nil && f.tool.Call == nil:
			return nil, errors.New("cannot offer an empty host function: make it with Func")
		}
		more[i] = f.tool
	}
	return tools.With(more...)
}

// functionTable answers the host calls of one session. A fork has a clone.
type functionTable struct {
	own    *repl.Tools // functions of the embedder
	models *repl.Tools // functions that call models
	// approve decides on calls of the embedder's functions; nil allows all.
	approve func(ctx context.Context, call tiers.Call) error

	mu      sync.Mutex
	passing *exchange
}

var _ tiers.Host = (*functionTable)(nil)

// list returns the functions that the guest may call.
func (t *functionTable) list() []tiers.Function {
	var all []tiers.Function
	for _, tools := range []*repl.Tools{t.own, t.models} {
		if tools != nil {
			all = append(all, tools.Functions()...)
		}
	}
	return all
}

// has reports whether the table has a function of that name.
func (t *functionTable) has(name string) bool {
	return slices.ContainsFunc(t.list(), func(f tiers.Function) bool { return f.Name == name })
}

func (t *functionTable) clone() *functionTable {
	return &functionTable{own: t.own, models: t.models, approve: t.approve}
}

// pass sets the value that the next snippet moves; nil means none.
func (t *functionTable) pass(e *exchange) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.passing = e
}

// Call answers a host call.
func (t *functionTable) Call(ctx context.Context, call tiers.Call) (tiers.Value, error) {
	_, ofModels := protocol.Lookup(call.Function)
	switch {
	case call.Function == valueIn || call.Function == valueOut:
		t.mu.Lock()
		defer t.mu.Unlock()
		return t.passing.answer(call)
	case ofModels && t.models != nil:
		return t.models.Call(ctx, call)
	case !ofModels && t.own != nil:
		if t.approve != nil {
			if err := t.approve(ctx, call); err != nil {
				return nil, fmt.Errorf("the call of %s was not made: %w", call.Function, err)
			}
		}
		return t.own.Call(ctx, call)
	}
	return nil, fmt.Errorf("this session has no function %q", call.Function)
}
