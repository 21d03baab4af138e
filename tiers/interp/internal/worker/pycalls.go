package worker

import "github.com/go-python/gpython/ast"

// call checks a call of a builtin or a method.
func (c *pyCheck) call(e *ast.Call) *pyType {
	if e.Starargs != nil || e.Kwargs != nil {
		c.doubt(e, "starred arguments")
	}
	if method, ok := e.Func.(*ast.Attribute); ok {
		return c.method(e, method)
	}

	name, ok := e.Func.(*ast.Name)
	if !ok {
		c.doubt(e, "this call")
	}
	if name.Id == "sorted" {
		c.reverse(e)
	} else if len(e.Keywords) > 0 {
		c.doubt(e, "keywords of %s", name.Id)
	}

	if g, ok := soleGenerator(e); ok && (name.Id == "sum" || name.Id == "any" || name.Id == "all") {
		elem := c.comprehension(g, g.Elt, g.Generators)
		return c.builtin(e, string(name.Id), []*pyType{rangeOf(elem)})
	}
	var args []*pyType
	for _, a := range e.Args {
		args = append(args, c.expr(a))
	}

	if name.Id == "range" && len(args) == 3 && !step(e.Args[2]) {
		c.doubt(e, "range with a step that is not a literal")
	}
	return c.builtin(e, string(name.Id), args)
}

func soleGenerator(e *ast.Call) (*ast.GeneratorExp, bool) {
	if len(e.Args) != 1 {
		return nil, false
	}
	g, ok := e.Args[0].(*ast.GeneratorExp)
	return g, ok
}

// step reports whether a range's step is a literal other than 0.
func step(e ast.Expr) bool {
	if u, ok := e.(*ast.UnaryOp); ok && u.Op == ast.USub {
		e = u.Operand
	}
	return small(e, 1<<30) && !small(e, 0)
}

// reverse accepts sorted(xs, reverse=True).
func (c *pyCheck) reverse(e *ast.Call) {
	for _, k := range e.Keywords {
		if _, ok := k.Value.(*ast.NameConstant); !ok || k.Arg != "reverse" || len(e.Keywords) > 1 ||
			!c.value(k.Value).is(pyBool) {
			c.doubt(e, "this keyword of sorted")
		}
	}
}

// builtin returns the type of a call of a builtin.
func (c *pyCheck) builtin(e *ast.Call, name string, args []*pyType) *pyType {
	all := func(kinds ...pyKind) bool {
		for _, a := range args {
			if !a.is(kinds...) {
				return false
			}
		}
		return true
	}

	holds := func(kinds ...pyKind) bool {
		return len(args) == 1 && args[0].is(pyList, pyRange) && args[0].root().elem.is(kinds...)
	}
	one := len(args) == 1
	switch {
	case name == "len" && one && all(pyStr, pyList):
		return simple(pyInt)
	case name == "abs" && one && all(pyInt):
		return args[0]
	case name == "str" && one && all(pyInt, pyBool, pyStr, pyList, pyNone):
		return simple(pyStr)
	case name == "bool" && one && all(pyInt, pyBool, pyStr, pyList, pyNone):
		return simple(pyBool)
	case (name == "min" || name == "max") && len(args) > 1 && (all(pyInt) || all(pyStr)):
		return simple(args[0].root().kind)
	case (name == "min" || name == "max" || name == "sorted") && holds(pyInt, pyStr):
		if name == "sorted" {
			return listOf(args[0].root().elem)
		}
		return args[0].root().elem
	case name == "sum" && holds(pyInt):
		return simple(pyInt)
	case (name == "any" || name == "all") && holds(pyInt, pyBool, pyStr):
		return simple(pyBool)
	case name == "list" && one && all(pyList, pyRange) && holds(pyInt, pyStr, pyBool, pyList):
		return listOf(args[0].root().elem)
	case name == "list" && one && all(pyStr):
		return listOf(simple(pyStr))
	case name == "range" && len(args) >= 1 && len(args) <= 3 && all(pyInt):
		return rangeOf(simple(pyInt))
	case name == "enumerate" && one && all(pyList) && holds(pyInt, pyStr, pyBool, pyList):
		return &pyType{
			kind: pyRange, elem: &pyType{kind: pyPair, elem: args[0].root().elem}, of: args[0],
		}
	}

	c.doubt(e, "this call of %s", name)
	return nil
}

// method returns the type of a call of a method.
func (c *pyCheck) method(e *ast.Call, f *ast.Attribute) *pyType {
	if len(e.Keywords) > 0 {
		c.doubt(e, "keywords of a method")
	}
	t := c.value(f.Value)
	var args []*pyType
	for _, a := range e.Args {
		args = append(args, c.value(a))
	}

	name, n := string(f.Attr), len(args)
	switch {
	case t.is(pyList) && name == "append" && n == 1 && len(c.bound) == 0 && merge(t.root().elem,
		args[0]):
		c.changes(t)
		return simple(pyNone)
	case t.is(pyList) && name == "extend" && n == 1 && len(c.bound) == 0 &&
		args[0].is(pyList) && merge(t.root().elem, args[0].root().elem):
		c.changes(t)
		return simple(pyNone)
	case t.is(pyList) && name == "sort" && n == 0 && len(c.bound) == 0 && t.root().elem.is(pyInt,
		pyStr):
		c.changes(t)
		return simple(pyNone)
	case t.is(pyStr) && (name == "startswith" || name == "endswith") && n == 1 && args[0].is(pyStr):
		return simple(pyBool)
	case t.is(pyStr) && name == "find" && n == 1 && args[0].is(pyStr):
		return simple(pyInt)
	case t.is(pyStr) && name == "replace" && n == 2 && args[0].is(pyStr) && args[1].is(pyStr):
		return t
	case t.is(pyStr) && (name == "strip" || name == "lstrip" || name == "rstrip") && n == 0:
		return t
	case t.is(pyStr) && name == "split" && (n == 0 || n == 1 && args[0].is(pyStr)):
		return listOf(simple(pyStr))
	}

	c.doubt(e, "this call of the method %s", name)
	return nil
}
