package worker

import (
	"fmt"
	"strings"

	"github.com/go-python/gpython/ast"
)

// pyWriter writes the source of an accepted program. It replaces the operators that gpython
// computes incorrectly with calls (see arithmetic), and keeps all other code.
type pyWriter struct {
	b      strings.Builder
	indent int
}

// writePython writes statements. If the last expression is shown, it becomes the tail.
func writePython(body []ast.Stmt, echo bool) (source, tail string) {
	w := &pyWriter{}
	if echo {
		last := body[len(body)-1].(*ast.ExprStmt)
		body, tail = body[:len(body)-1], w.expr(last.Value)
	}
	w.block(body)
	return w.b.String(), tail
}

func (w *pyWriter) line(format string, operands ...any) {
	fmt.Fprintf(&w.b, strings.Repeat(" ", w.indent)+format+"\n", operands...)
}

func (w *pyWriter) nested(body []ast.Stmt) {
	w.indent++
	w.block(body)
	w.indent--
}

func (w *pyWriter) orElse(body []ast.Stmt) {
	if len(body) > 0 {
		w.line("else:")
		w.nested(body)
	}
}

func (w *pyWriter) block(body []ast.Stmt) {
	for _, s := range body {
		switch s := s.(type) {
		case *ast.Assign:
			w.line("%s = %s", w.expr(s.Targets[0]), w.expr(s.Value))
		case *ast.AugAssign:
			if own := ownOperators[s.Op]; own != "" {
				w.line("%s = %s(%s, %s)", w.expr(s.Target), own, w.expr(s.Target), w.expr(s.Value))
			} else {
				w.line("%s %s= %s", w.expr(s.Target), pyOperators[s.Op], w.expr(s.Value))
			}
		case *ast.ExprStmt:
			w.line("%s", w.expr(s.Value))
		case *ast.If:
			w.line("if %s:", w.expr(s.Test))
			w.nested(s.Body)
			w.orElse(s.Orelse)
		case *ast.While:
			w.line("while %s:", w.expr(s.Test))
			w.nested(s.Body)
			w.orElse(s.Orelse)
		case *ast.For:
			w.line("for %s in %s:", w.expr(s.Target), w.expr(s.Iter))
			w.nested(s.Body)
			w.orElse(s.Orelse)
		case *ast.Pass:
			w.line("pass")
		case *ast.Break:
			w.line("break")
		case *ast.Continue:
			w.line("continue")
		}
	}
}

var pyOperators = map[ast.OperatorNumber]string{
	ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Modulo: "%", ast.Pow: "**",
	ast.LShift: "<<", ast.RShift: ">>", ast.BitOr: "|", ast.BitXor: "^", ast.BitAnd: "&",
	ast.FloorDiv: "//",
}

var pyUnary = map[ast.UnaryOpNumber]string{
	ast.Invert: "~", ast.Not: "not ", ast.UAdd: "+", ast.USub: "-",
}

var pyCompare = map[ast.CmpOp]string{
	ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">",
	ast.GtE: ">=", ast.In: "in", ast.NotIn: "not in",
}

func (w *pyWriter) list(all []ast.Expr) string {
	parts := make([]string, len(all))
	for i, e := range all {
		parts[i] = w.expr(e)
	}
	return strings.Join(parts, ", ")
}

func (w *pyWriter) expr(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Num:
		text, _ := pyRepr(e.N) // a literal has few digits
		return text
	case *ast.Str:
		return quotePython(string(e.S))
	case *ast.NameConstant:
		text, _ := pyRepr(e.Value) // True, False or None
		return text
	case *ast.Name:
		return string(e.Id)
	case *ast.List:
		return "[" + w.list(e.Elts) + "]"
	case *ast.Tuple:
		return w.list(e.Elts)
	case *ast.ListComp:
		return "[" + w.comprehension(e.Elt, e.Generators) + "]"
	case *ast.GeneratorExp:
		return w.comprehension(e.Elt, e.Generators)
	case *ast.BinOp:
		if own := ownOperators[e.Op]; own != "" {
			return own + "(" + w.expr(e.Left) + ", " + w.expr(e.Right) + ")"
		}
		return "(" + w.expr(e.Left) + " " + pyOperators[e.Op] + " " + w.expr(e.Right) + ")"
	case *ast.UnaryOp:
		return "(" + pyUnary[e.Op] + w.expr(e.Operand) + ")"
	case *ast.BoolOp:
		parts := make([]string, len(e.Values))
		for i, v := range e.Values {
			parts[i] = w.expr(v)
		}
		return "(" + strings.Join(
			parts, map[ast.BoolOpNumber]string{ast.And: " and ", ast.Or: " or "}[e.Op],
		) + ")"
	case *ast.Compare:
		text := "(" + w.expr(e.Left)
		for i, op := range e.Ops {
			text += " " + pyCompare[op] + " " + w.expr(e.Comparators[i])
		}
		return text + ")"
	case *ast.IfExp:
		return "(" + w.expr(e.Body) + " if " + w.expr(e.Test) + " else " + w.expr(e.Orelse) + ")"
	case *ast.Subscript:
		return w.expr(e.Value) + "[" + w.slice(e.Slice) + "]"
	case *ast.Attribute:
		return w.expr(e.Value) + "." + string(e.Attr)
	case *ast.Call:
		if method, ok := e.Func.(*ast.Attribute); ok && method.Attr == "split" && len(e.Args) == 1 {
			return "__split(" + w.expr(method.Value) + ", " + w.expr(e.Args[0]) + ")"
		}
		args := w.list(e.Args)
		for _, k := range e.Keywords {
			args += ", " + string(k.Arg) + "=" + w.expr(k.Value)
		}
		return w.expr(e.Func) + "(" + strings.TrimPrefix(args, ", ") + ")"
	}

	return "" // the check accepts no other form
}

func (w *pyWriter) comprehension(elt ast.Expr, generators []ast.Comprehension) string {
	text := w.expr(elt)
	for _, g := range generators {
		text += " for " + w.expr(g.Target) + " in " + w.expr(g.Iter)
		for _, cond := range g.Ifs {
			text += " if " + w.expr(cond)
		}
	}

	return text
}

func (w *pyWriter) slice(s ast.Slicer) string {
	switch s := s.(type) {
	case *ast.Index:
		return w.expr(s.Value)
	case *ast.Slice:
		part := func(e ast.Expr) string {
			if e == nil {
				return ""
			}
			return w.expr(e)
		}
		text := part(s.Lower) + ":" + part(s.Upper)
		if s.Step != nil {
			text += ":" + part(s.Step)
		}
		return text
	}

	return "" // the check accepts no other form
}
