package prompts

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"text/template/parse"
)

// The standard text/template finds methods by name, so a program that links it keeps all methods
// of all its types: 2.4 MB of a small program. This file instead executes the parse trees of the
// standard parser, without methods: text, fields, conditions, loops and the functions below.

// functions are the functions that a template can call.
var functions = map[string]any{
	"fence": Fence, "printf": fmt.Sprintf,
	"not": func(value any) bool { return !isTrue(value) },
	"or": func(values ...any) any {
		for _, value := range values[:len(values)-1] {
			if isTrue(value) {
				return value
			}
		}
		return values[len(values)-1]
	},
}

// isTrue reports whether a value is true as a condition, that is, not zero or empty.
func isTrue(value any) bool {
	v := reflect.ValueOf(value)
	switch v.Kind() {
	case reflect.Invalid:
		return false
	case reflect.Slice, reflect.Map, reflect.String, reflect.Array:
		return v.Len() > 0
	default:
		return !v.IsZero()
	}
}

// execution is the execution of one template.
type execution struct {
	trees map[string]*parse.Tree
	out   strings.Builder
}

// list executes nodes. Dot is the value whose fields they refer to.
func (x *execution) list(list *parse.ListNode, dot any) error {
	if list == nil {
		return nil
	}
	for _, node := range list.Nodes {
		if err := x.node(node, dot); err != nil {
			return err
		}
	}
	return nil
}

func (x *execution) node(node parse.Node, dot any) error {
	switch n := node.(type) {
	case *parse.TextNode:
		x.out.Write(n.Text)
		return nil
	case *parse.ActionNode:
		value, err := evaluate(n.Pipe, dot)
		if err == nil {
			_, err = fmt.Fprint(&x.out, value)
		}
		return err
	case *parse.IfNode:
		value, err := evaluate(n.Pipe, dot)
		if err != nil {
			return err
		}
		if isTrue(value) {
			return x.list(n.List, dot)
		}
		return x.list(n.ElseList, dot)
	case *parse.RangeNode:
		return x.loop(n, dot)
	case *parse.TemplateNode:
		value, err := evaluate(n.Pipe, dot)
		if err == nil {
			err = x.template(n.Name, value)
		}
		return err
	}
	return fmt.Errorf("a prompt cannot have %s", node)
}

func (x *execution) loop(n *parse.RangeNode, dot any) error {
	value, err := evaluate(n.Pipe, dot)
	if err != nil {
		return err
	}

	list := reflect.ValueOf(value)
	if list.Kind() != reflect.Slice {
		return fmt.Errorf("%s is not a list", n.Pipe)
	}
	for i := range list.Len() {
		if err := x.list(n.List, list.Index(i).Interface()); err != nil {
			return err
		}
	}
	return nil
}

func (x *execution) template(name string, dot any) error {
	tree := x.trees[name]
	if tree == nil {
		return fmt.Errorf("there is no template %q", name)
	}
	return x.list(tree.Root, dot)
}

// evaluate returns the value of an expression.
func evaluate(pipe *parse.PipeNode, dot any) (any, error) {
	if pipe == nil {
		return nil, nil //nolint:nilnil // a template without a value
	}
	if len(pipe.Cmds) != 1 || len(pipe.Decl) > 0 {
		return nil, fmt.Errorf("a prompt cannot have {{%s}}", pipe)
	}

	args := pipe.Cmds[0].Args
	name, isCall := args[0].(*parse.IdentifierNode)
	if !isCall {
		if len(args) > 1 {
			return nil, fmt.Errorf("%s is not a function", args[0])
		}
		return operand(args[0], dot)
	}

	values := make([]reflect.Value, len(args)-1)
	for i, arg := range args[1:] {
		value, err := operand(arg, dot)
		if err != nil {
			return nil, err
		}
		values[i] = reflect.ValueOf(&value).Elem()
		if value != nil {
			values[i] = values[i].Elem()
		}
	}
	return call(name.Ident, values)
}

// call calls a function if the arguments fit it.
func call(name string, args []reflect.Value) (any, error) {
	function := reflect.ValueOf(functions[name])
	kind := function.Type()
	fixed := kind.NumIn()
	if kind.IsVariadic() {
		fixed--
	}

	if len(args) < fixed || len(args) > fixed && !kind.IsVariadic() || len(args) == 0 {
		return nil, fmt.Errorf("%s cannot take %d values", name, len(args))
	}

	for i := range fixed {
		if !args[i].Type().AssignableTo(kind.In(i)) {
			return nil, fmt.Errorf("%s cannot take a %s", name, args[i].Type())
		}
	}

	return function.Call(args)[0].Interface(), nil
}

// operand returns the value of one operand of an expression.
func operand(node parse.Node, dot any) (any, error) {
	switch n := node.(type) {
	case *parse.DotNode:
		return dot, nil
	case *parse.StringNode:
		return n.Text, nil
	case *parse.PipeNode:
		return evaluate(n, dot)
	case *parse.FieldNode:
		return field(n.Ident, dot)
	}
	return nil, fmt.Errorf("a prompt cannot have %s", node)
}

var errField = errors.New("its data has no such field")

// field returns a field of a struct or a map.
func field(path []string, dot any) (any, error) {
	for _, name := range path {
		v := reflect.Indirect(reflect.ValueOf(dot))

		switch {
		case v.Kind() == reflect.Struct:
			v = v.FieldByName(name)
		case v.Kind() == reflect.Map && v.Type().Key().Kind() == reflect.String:
			v = v.MapIndex(reflect.ValueOf(name).Convert(v.Type().Key()))
		default:
			v = reflect.Value{}
		}
		if !v.IsValid() || !v.CanInterface() {
			return nil, fmt.Errorf("%w: %s", errField, name)
		}

		dot = v.Interface()
	}
	return dot, nil
}
