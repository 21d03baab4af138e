package guest

import (
	"go/ast"
	"go/token"
	"strings"
)

// loops checks the loops below a node. The interpreter has one variable for all
// rounds of a loop, as Go had before 1.22, and one set of operands for a defer
// that is reached more than once.
func (c *goCheck) loops(root ast.Node, inLoop bool) {
	ast.Inspect(root, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			if n != root {
				c.loops(n.Body, false)
				return false
			}
		case *ast.DeferStmt:
			if inLoop {
				c.found("defer in a loop", "it runs a defer in a loop with the last round's values", n.Pos())
			}
		case *ast.ForStmt:
			if n != root {
				c.forLoop(n)
				c.loops(n, true)
				return false
			}
		case *ast.RangeStmt:
			if n != root {
				c.rangeLoop(n)
				c.loops(n, true)
				return false
			}
		}
		return true
	})
	switch n := root.(type) { // Inspect above skips the root's own case
	case *ast.ForStmt:
		if !inLoop {
			c.forLoop(n)
			c.loops(n, true)
		}
	case *ast.RangeStmt:
		if !inLoop {
			c.rangeLoop(n)
			c.loops(n, true)
		}
	}
}

// forLoop rejects a loop whose variable outlives a round.
func (c *goCheck) forLoop(n *ast.ForStmt) {
	init, ok := n.Init.(*ast.AssignStmt)
	if !ok || init.Tok != token.DEFINE {
		return
	}
	for _, l := range init.Lhs {
		name, ok := l.(*ast.Ident)
		if ok && (c.captures(n.Body, name.Name) || c.captures(n.Post, name.Name) || c.captures(n.Cond, name.Name)) {
			c.found("loop variables", "it has one "+name.Name+" for all rounds of the loop, which a closure or pointer keeps", n.Pos())
		}
	}
}

// rangeLoop gives each round its own variables, if anything might keep them.
func (c *goCheck) rangeLoop(n *ast.RangeStmt) {
	if n.Tok != token.DEFINE {
		return
	}
	var names []string
	for _, e := range []ast.Expr{n.Key, n.Value} {
		if name, ok := e.(*ast.Ident); ok && name.Name != "_" && c.captures(n.Body, name.Name) {
			names = append(names, name.Name)
		}
	}
	if len(names) > 0 {
		list := strings.Join(names, ", ")
		c.src.edits = append(c.src.edits,
			goEdit{c.src.offset(n.Body.Lbrace) + 1, 0, " " + list + " := " + list + "; {"}, // the body may declare them again
			goEdit{c.src.offset(n.Body.Rbrace), 0, "}"})
	}
}

// captures reports whether a closure uses a variable, or its address may be
// taken: by &, by a slice of an array, by a method with a pointer receiver.
func (c *goCheck) captures(root ast.Node, name string) bool {
	found := false
	if isNil(root) {
		return false
	}
	ast.Inspect(root, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			found = found || mentions(n.Body, name)
		case *ast.UnaryExpr:
			found = found || n.Op == token.AND && rootedAt(n.X, name)
		case *ast.SliceExpr:
			found = found || rootedAt(n.X, name)
		case *ast.CallExpr:
			if s, ok := n.Fun.(*ast.SelectorExpr); ok && rootedAt(s.X, name) {
				found = found || c.own.methods[s.Sel.Name] || c.known.methods[s.Sel.Name]
			}
		case *ast.SelectorExpr:
			found = found || rootedAt(n.X, name) && (c.own.methods[n.Sel.Name] || c.known.methods[n.Sel.Name])
		}
		return !found
	})
	return found
}

// isNil knows the typed nils that the syntax tree holds for absent parts.
func isNil(n ast.Node) bool {
	switch n := n.(type) {
	case nil:
		return true
	case *ast.BlockStmt:
		return n == nil
	}
	return false
}

func mentions(root ast.Node, name string) bool {
	found := false
	ast.Inspect(root, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && id.Name == name {
			found = true
		}
		return !found
	})
	return found
}

// rootedAt reports whether an expression is a variable or a part of it.
func rootedAt(e ast.Expr, name string) bool {
	for {
		switch x := e.(type) {
		case *ast.Ident:
			return x.Name == name
		case *ast.ParenExpr:
			e = x.X
		case *ast.SelectorExpr:
			e = x.X
		case *ast.IndexExpr:
			e = x.X
		default:
			return false
		}
	}
}
