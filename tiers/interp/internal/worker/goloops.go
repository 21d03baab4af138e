package worker

import (
	"go/ast"
	"go/token"
	"strings"
)

// loops checks the loops below a node. The interpreter has one variable for all iterations of a
// loop, as Go did before 1.22, and one set of operands for a defer that is reached more than
// once.
func (c *goCheck) loops(root ast.Node, inLoop bool) {
	ast.Inspect(root, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GoStmt:
			c.ownStart(n, inLoop)
		case *ast.FuncLit:
			if inLoop && !c.started[n] {
				c.ownFrame(n)
			}
			c.loops(n.Body, false)
			return false
		case *ast.DeferStmt:
			if inLoop {
				c.found(
					"defer in a loop", "it runs a defer in a loop with the last round's values",
					n.Pos(),
				)
			}
		case *ast.ForStmt:
			c.forLoop(n)
			for _, part := range []ast.Node{n.Init, n.Cond, n.Post, n.Body} {
				if !isNil(part) {
					c.loops(part, true)
				}
			}
			return false
		case *ast.RangeStmt:
			c.rangeLoop(n)
			c.loops(n.X, inLoop)
			c.loops(n.Body, true)
			return false
		}

		return true
	})
}

// The interpreter stores a closure in a slot of its maker's frame, and restores the slot's previous
// value when a call of the closure ends. A goroutine from one iteration of a loop would therefore
// put its own closure where the next iteration is about to read a closure. Moreover, a goroutine
// reads the function from its variable only when it begins. So a closure made in a loop, and a
// function that go reads from a variable, each get their own frame.

// ownFrame wraps a closure in a function that creates and returns it.
func (c *goCheck) ownFrame(n *ast.FuncLit) {
	kind := c.src.text[c.src.offset(n.Type.Pos()):c.src.offset(n.Type.End())]
	if strings.Contains(kind, "\n") {
		c.found("closure in a loop", "the type of a closure in a loop must be on one line", n.Pos())
	}
	c.src.edits = append(c.src.edits,
		goEdit{c.src.offset(n.Pos()), 0, "func() (" + kind + ") { return "},
		goEdit{c.src.offset(n.Body.Rbrace), 1, "} }()"})
}

// ownStart wraps a go statement in a function.
func (c *goCheck) ownStart(n *ast.GoStmt, inLoop bool) {
	first := ""
	switch f := ast.Unparen(n.Call.Fun).(type) {
	case *ast.FuncLit:
		if !inLoop {
			return
		}
		c.started[f] = true
	case *ast.Ident:
		if !c.local[f.Name] || c.own.results[f.Name] > 0 || c.known.results[f.Name] > 0 {
			return
		}
		first = goStarted + " := " + f.Name + "; "
		c.edit(f, goStarted)
	default:
		return
	}

	c.src.edits = append(c.src.edits,
		goEdit{c.src.offset(n.Pos()), 0, "func() { " + first},
		goEdit{c.src.offset(n.Call.Rparen), 1, ") }()"})
}

// goStarted replaces the function that a go statement reads from a variable.
const goStarted = wrapper + "Go"

// forLoop rejects a loop whose variable outlives an iteration.
func (c *goCheck) forLoop(n *ast.ForStmt) {
	init, ok := n.Init.(*ast.AssignStmt)
	if !ok || init.Tok != token.DEFINE {
		return
	}
	for _, l := range init.Lhs {
		name, ok := l.(*ast.Ident)
		if ok &&
			(c.captures(n.Body, name.Name) || c.captures(n.Post, name.Name) || c.captures(n.Cond,
				name.Name)) {
			c.found(
				"loop variables",
				"it has one variable "+name.Name+" for all rounds of the loop, and a closure or "+
					"pointer keeps this variable",
				n.Pos(),
			)
		}
	}
}

// rangeLoop gives each iteration its own variables, if they might outlive the iteration.
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
		c.src.edits = append(
			c.src.edits,
			// The body may redeclare them.
			goEdit{
				c.src.offset(n.Body.Lbrace) + 1, 0, " " + list + " := " + list + "; {",
			},
			goEdit{c.src.offset(n.Body.Rbrace), 0, "}"},
		)
	}
}

// captures reports whether a closure uses a variable, or its address may be taken: by &, by
// slicing an array, or by a method with a pointer receiver.
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
			found = found ||
				rootedAt(n.X, name) && (c.own.methods[n.Sel.Name] || c.known.methods[n.Sel.Name])
		}

		return !found
	})

	return found
}

// isNil recognises the typed nils that the syntax tree holds for absent parts.
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
