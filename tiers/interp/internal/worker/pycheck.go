package worker

import (
	"fmt"

	"github.com/go-python/gpython/ast"
	"github.com/go-python/gpython/parser"
	"github.com/go-python/gpython/py"
)

// pyCheck accepts a program if the differential test has shown every form in it, with the types
// of its operands, to behave as in CPython. It stops at the first doubt.
type pyCheck struct {
	vars    map[string]*pyType
	fixed   map[string]bool      // names that snippets cannot bind: see pySession
	bound   []map[string]*pyType // variables of comprehensions
	loops   int
	over    []*pyType    // the lists over which the enclosing loops run
	clashes [][2]*pyType // the list over which a loop runs, and the list that its body changes
	depth   int
}

// doubt records the first reason to reject the program.
type doubt struct{ reason string }

func (c *pyCheck) doubt(n ast.Ast, format string, operands ...any) {
	panic(doubt{fmt.Sprintf("line %d: not supported: ", n.GetLineno()) + fmt.Sprintf(format, operands...)})
}

// checkPython parses and checks a snippet, which must not bind a name in fixed. It returns the
// program to run, the expression to show after it or nil, and the variables after both.
func checkPython(
	source string, vars map[string]*pyType, fixed map[string]bool,
) (body, tail string, after map[string]*pyType, reason string) {
	if err := pyScan(source); err != nil {
		return "", "", nil, err.Error()
	}
	module, err := parser.ParseString(source+"\n", py.ExecMode)
	if err != nil {
		return "", "", nil, "the snippet's syntax is not in the supported part of Python"
	}

	statements := module.(*ast.Module).Body
	c := &pyCheck{vars: copyTypes(vars), fixed: fixed}
	defer func() {
		switch r := recover().(type) {
		case nil:
		case doubt:
			reason = r.reason
		default:
			panic(r)
		}
	}()

	c.block(statements)
	for _, clash := range c.clashes {
		if clash[0].root() == clash[1].root() {
			return "", "", nil, "the snippet changes a list while a loop runs over it"
		}
	}

	echo := false
	if n := len(statements); n > 0 {
		e, ok := statements[n-1].(*ast.ExprStmt)
		echo = ok && !isCommand(e.Value)
	}
	body, tail = writePython(statements, echo)
	return body, tail, c.vars, ""
}

// isCommand reports whether an expression is a call of print or FINAL.
func isCommand(e ast.Expr) bool {
	call, ok := e.(*ast.Call)
	if !ok {
		return false
	}
	name, ok := call.Func.(*ast.Name)
	return ok && (name.Id == "print" || name.Id == "FINAL")
}

// pyReserved are names that a program cannot set: keywords unknown to gpython, and builtins,
// which may only be called.
var pyReserved = set(
	"async", "await", "nonlocal", "print", "len", "abs", "min", "max", "sum", "sorted", "range",
	"enumerate", "str", "list", "bool", "int", "FINAL", "match", "case", "type", "None", "True",
	"False", "any", "all",
)

func (c *pyCheck) block(body []ast.Stmt) {
	if c.depth++; c.depth > 12 {
		c.doubt(body[0], "blocks nest too deep")
	}
	for _, s := range body {
		c.statement(s)
	}
	c.depth--
}

func (c *pyCheck) statement(s ast.Stmt) {
	switch s := s.(type) {
	case *ast.Assign:
		c.assign(s)
	case *ast.AugAssign:
		c.augmented(s)
	case *ast.ExprStmt:
		c.command(s.Value)
	case *ast.If:
		c.value(s.Test)
		c.block(s.Body)
		c.block(s.Orelse)
	case *ast.While:
		c.value(s.Test)
		c.loop(nil, s.Body)
		c.block(s.Orelse)
	case *ast.For:
		iter := c.expr(s.Iter)
		elem := c.iterated(s.Iter, iter)
		c.bind(s.Target, elem)
		c.loop(iter, s.Body)
		c.block(s.Orelse)
	case *ast.Pass:
	case *ast.Break, *ast.Continue:
		if c.loops == 0 {
			c.doubt(s, "break or continue outside of a loop")
		}
	default:
		c.doubt(s, "%s", s.Type().Name)
	}
}

func (c *pyCheck) loop(over *pyType, body []ast.Stmt) {
	c.loops++
	if over != nil {
		c.over = append(c.over, over)
		defer func() { c.over = c.over[:len(c.over)-1] }()
	}
	c.block(body)
	c.loops--
}

// changes records an in-place change of a list.
func (c *pyCheck) changes(list *pyType) {
	for _, over := range c.over {
		if over.root().of != nil {
			over = over.root().of
		}
		c.clashes = append(c.clashes, [2]*pyType{over, list})
	}
}

func (c *pyCheck) assign(s *ast.Assign) {
	if len(s.Targets) != 1 {
		c.doubt(s, "chained assignment")
	}
	if targets, ok := s.Targets[0].(*ast.Tuple); ok {
		values, ok := s.Value.(*ast.Tuple)
		if !ok || len(values.Elts) != len(targets.Elts) {
			c.doubt(s, "unpacking")
		}
		var types []*pyType
		for _, v := range values.Elts {
			types = append(types, c.value(v))
		}
		for i, t := range targets.Elts {
			if _, ok := t.(*ast.Name); !ok {
				c.doubt(s, "unpacking into anything other than names")
			}
			c.bind(t, types[i])
		}
		return
	}

	value := c.value(s.Value)
	if target, ok := s.Targets[0].(*ast.Subscript); ok {
		list := c.value(target.Value)
		index, ok := target.Slice.(*ast.Index)
		if !ok || !list.is(pyList) || !c.value(index.Value).is(pyInt) ||
			!merge(list.root().elem, value) {
			c.doubt(s, "this assignment to an element")
		}
		c.changes(list)
		return
	}

	c.bind(s.Targets[0], value)
}

// bind assigns a value to a variable, or a pair to two variables.
func (c *pyCheck) bind(target ast.Expr, value *pyType) {
	if pair, ok := target.(*ast.Tuple); ok && value.is(pyPair) && len(pair.Elts) == 2 {
		c.bindName(pair.Elts[0], simple(pyInt))
		c.bindName(pair.Elts[1], value.root().elem)
		return
	}
	c.bindName(target, value)
}

func (c *pyCheck) bindName(target ast.Expr, value *pyType) {
	name, ok := target.(*ast.Name)
	if !ok || !value.is(pyInt, pyBool, pyStr, pyNone, pyList) {
		c.doubt(target, "this assignment")
	}
	id := string(name.Id)
	if pyReserved[id] || c.fixed[id] || id[0] == '_' && id != "_" {
		c.doubt(target, "the name %s", id)
	}

	if n := len(c.bound); n > 0 {
		c.bound[n-1][id] = value
		return
	}
	if old := c.vars[id]; old == nil {
		c.vars[id] = value
	} else if !merge(old, value) {
		c.doubt(target, "%s changes its type", id)
	}
}

func (c *pyCheck) augmented(s *ast.AugAssign) {
	name, ok := s.Target.(*ast.Name)
	if !ok {
		if sub, isSub := s.Target.(*ast.Subscript); isSub {
			c.augmentedElement(s, sub)
			return
		}
		c.doubt(s, "this assignment")
	}

	old, value := c.variable(s, string(name.Id)), c.value(s.Value)
	switch {
	case old.is(pyList) && s.Op == ast.Add && value.is(pyList) && merge(old.root().elem,
		value.root().elem):
		c.changes(old)
	case old.is(pyInt, pyStr) && !old.is(pyList):
		if t := c.binary(s, s.Op, old, value, s.Value); !t.is(old.root().kind) {
			c.doubt(s, "%s changes its type", name.Id)
		}
	default:
		c.doubt(s, "this assignment")
	}
}

// augmentedElement accepts xs[i] += n for integers.
func (c *pyCheck) augmentedElement(s *ast.AugAssign, sub *ast.Subscript) {
	list := c.value(sub.Value)
	index, ok := sub.Slice.(*ast.Index)
	if !ok || !list.is(pyList) || !c.value(index.Value).is(pyInt) || !list.root().elem.is(pyInt) ||
		ownOperators[s.Op] != "" {
		c.doubt(s, "this assignment to an element")
	}

	if !c.binary(s, s.Op, simple(pyInt), c.value(s.Value), s.Value).is(pyInt) {
		c.doubt(s, "this assignment to an element")
	}
	c.changes(list)
}

// command checks an expression used as a statement.
func (c *pyCheck) command(e ast.Expr) {
	call, ok := e.(*ast.Call)
	if !ok || !isCommand(e) {
		c.expr(e)
		return
	}
	if call.Starargs != nil || call.Kwargs != nil {
		c.doubt(e, "starred arguments")
	}

	for _, a := range call.Args {
		c.shown(a)
	}
	name := call.Func.(*ast.Name).Id
	if name == "FINAL" && (len(call.Args) != 1 || len(call.Keywords) > 0) {
		c.doubt(e, "FINAL with other than one value")
	}

	for _, k := range call.Keywords {
		if _, ok := k.Value.(*ast.Str); !ok || k.Arg != "sep" && k.Arg != "end" {
			c.doubt(e, "this keyword of print")
		}
	}
}

// shown checks a value that is printed.
func (c *pyCheck) shown(e ast.Expr) {
	if !c.expr(e).is(pyInt, pyBool, pyStr, pyNone, pyList) {
		c.doubt(e, "this value cannot be shown")
	}
}
