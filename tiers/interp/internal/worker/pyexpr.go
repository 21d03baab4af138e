package worker

import (
	"github.com/go-python/gpython/ast"
	"github.com/go-python/gpython/py"
)

// value checks an expression with a plain value.
func (c *pyCheck) value(e ast.Expr) *pyType {
	t := c.expr(e)
	if !t.is(pyInt, pyBool, pyStr, pyNone, pyList) {
		c.doubt(e, "this value")
	}
	return t
}

// maxDepth bounds the depth of expressions, because the interpreter's recursion is unbounded.
const maxDepth = 60

func (c *pyCheck) expr(e ast.Expr) *pyType {
	if c.depth++; c.depth > maxDepth {
		c.doubt(e, "expressions nest too deep")
	}
	t := c.form(e)
	c.depth--
	return t
}

func (c *pyCheck) form(e ast.Expr) *pyType {
	switch e := e.(type) {
	case *ast.Num:
		if _, ok := e.N.(py.Float); ok {
			c.doubt(e, "floating-point numbers")
		}
		return simple(pyInt)
	case *ast.Str:
		return simple(pyStr)
	case *ast.NameConstant:
		if e.Value == py.None {
			return simple(pyNone)
		}
		return simple(pyBool)
	case *ast.Name:
		return c.variable(e, string(e.Id))
	case *ast.List:
		elem := &pyType{}
		for _, x := range e.Elts {
			if !merge(elem, c.value(x)) {
				c.doubt(e, "a list of several types")
			}
		}
		return listOf(elem)
	case *ast.ListComp:
		return listOf(c.comprehension(e, e.Elt, e.Generators))
	case *ast.BinOp:
		left, right := c.value(e.Left), c.value(e.Right)
		return c.binary(e, e.Op, left, right, e.Right)
	case *ast.UnaryOp:
		return c.unary(e)
	case *ast.BoolOp:
		return c.boolean(e)
	case *ast.Compare:
		return c.compare(e)
	case *ast.IfExp:
		c.value(e.Test)
		t := c.value(e.Body)
		if !merge(t, c.value(e.Orelse)) {
			c.doubt(e, "a conditional of two types")
		}
		return t
	case *ast.Subscript:
		return c.subscript(e)
	case *ast.Call:
		return c.call(e)
	}

	c.doubt(e, "%s", e.Type().Name)
	return nil
}

func (c *pyCheck) variable(at ast.Ast, id string) *pyType {
	for i := len(c.bound) - 1; i >= 0; i-- {
		if t := c.bound[i][id]; t != nil {
			return t
		}
	}
	t := c.vars[id]
	if t == nil || pyReserved[id] {
		c.doubt(at, "the name %s", id)
	}

	return t
}

// binary returns the type of an operation.
func (c *pyCheck) binary(
	at ast.Ast, op ast.OperatorNumber, left, right *pyType, operand ast.Expr,
) *pyType {
	switch {
	case left.is(pyInt) && right.is(pyInt):
		switch op {
		case ast.Add,
			ast.Sub, ast.Mult, ast.FloorDiv, ast.Modulo, ast.BitAnd, ast.BitOr,
			ast.BitXor:
			return left
		case ast.Pow:
			if small(operand, 1000) {
				return left
			}
		case ast.LShift, ast.RShift:
			if small(operand, 1000) {
				return left
			}
		default: // a quotient is a floating-point number
		}
	case left.is(pyStr) && right.is(pyStr) && op == ast.Add:
		return left
	case left.is(pyStr) && right.is(pyInt) && op == ast.Mult:
		return left
	case left.is(pyList) && right.is(pyList) && op == ast.Add:
		both := listOf(left.root().elem)
		if merge(both.elem, right.root().elem) {
			return both
		}
	case left.is(pyList) && right.is(pyInt) && op == ast.Mult:
		return listOf(left.root().elem)
	}

	c.doubt(at, "this operator on these types")
	return nil
}

// small reports whether an operand is a literal from 0 to most.
func small(e ast.Expr, most int) bool {
	n, ok := e.(*ast.Num)
	if !ok {
		return false
	}
	v, ok := n.N.(py.Int)
	return ok && v >= 0 && int(v) <= most
}

func (c *pyCheck) unary(e *ast.UnaryOp) *pyType {
	t := c.value(e.Operand)
	switch {
	case e.Op == ast.Not:
		return simple(pyBool)
	case t.is(pyInt) && (e.Op == ast.USub || e.Op == ast.UAdd || e.Op == ast.Invert):
		return t
	}

	c.doubt(e, "this operator on this type")
	return nil
}

func (c *pyCheck) boolean(e *ast.BoolOp) *pyType {
	t := c.value(e.Values[0])
	for _, v := range e.Values[1:] {
		if !merge(t, c.value(v)) {
			c.doubt(e, "and, or with values of several types")
		}
	}
	return t
}

func (c *pyCheck) compare(e *ast.Compare) *pyType {
	left := c.value(e.Left)
	for i, op := range e.Ops {
		right := c.value(e.Comparators[i])
		if !compares(op, left, right) {
			c.doubt(e, "this comparison")
		}
		left = right
	}

	return simple(pyBool)
}

func compares(op ast.CmpOp, left, right *pyType) bool {
	switch op {
	case ast.Eq, ast.NotEq:
		return left.is(pyInt, pyStr, pyBool, pyList) && alike(left, right)
	case ast.Lt, ast.LtE, ast.Gt, ast.GtE:
		return left.is(pyInt, pyStr) && alike(left, right)
	case ast.In, ast.NotIn:
		return left.is(pyStr) && right.is(pyStr) ||
			left.is(pyInt, pyStr) && right.is(pyList) && right.root().elem.is(left.root().kind)
	case ast.Is, ast.IsNot:
	}

	return false
}

func (c *pyCheck) subscript(e *ast.Subscript) *pyType {
	t := c.value(e.Value)
	if !t.is(pyStr, pyList) {
		c.doubt(e, "this subscript")
	}
	switch s := e.Slice.(type) {
	case *ast.Index:
		if c.value(s.Value).is(pyInt) {
			if t.is(pyStr) {
				return t
			}
			return t.root().elem
		}
	case *ast.Slice:
		for _, part := range []ast.Expr{s.Lower, s.Upper, s.Step} {
			if part != nil && !c.value(part).is(pyInt) {
				c.doubt(e, "this slice")
			}
		}
		if t.is(pyStr) {
			return t
		}
		return listOf(t.root().elem)
	}

	c.doubt(e, "this subscript")
	return nil
}

// comprehension checks [elt for target in iter if cond] and returns elt's type.
func (c *pyCheck) comprehension(at ast.Expr, elt ast.Expr, generators []ast.Comprehension) *pyType {
	if len(generators) != 1 || len(c.bound) > 0 {
		c.doubt(at, "a comprehension in or beside another")
	}
	g := generators[0]
	elem := c.iterated(g.Iter, c.expr(g.Iter))
	c.bound = append(c.bound, map[string]*pyType{})
	c.bind(g.Target, elem)

	for _, cond := range g.Ifs {
		c.value(cond)
	}
	t := c.value(elt)
	c.bound = c.bound[:len(c.bound)-1]
	return t
}

// iterated returns the element type of an iterable.
func (c *pyCheck) iterated(at ast.Expr, t *pyType) *pyType {
	switch {
	case t.is(pyStr):
		return simple(pyStr)
	case t.is(pyList, pyRange):
		if elem := t.root().elem; !elem.is(pyUnknown) {
			return elem
		}
	}

	c.doubt(at, "a loop over this")
	return nil
}
