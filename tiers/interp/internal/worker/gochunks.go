package worker

import (
	"go/ast"
	"go/token"
	"slices"
	"strings"
)

// plan cuts the snippet into chunks: first imports, then declarations that do not use the
// statements' variables, then the statements in order, together with the remaining declarations.
func (c *goCheck) plan() *goPlan {
	p := &goPlan{imported: map[string]bool{}}
	vars := c.variables()
	var early, late []ast.Node
	for _, n := range c.nodes() {
		switch d := n.(type) {
		case *ast.GenDecl:
			c.imports(p, d)
		case *ast.FuncDecl:
			early = append(early, n)
		case *ast.DeclStmt:
			if d.Decl.(*ast.GenDecl).Tok != token.VAR {
				early = append(early, n)
			}
		}
	}

	early, late = c.hoist(early, vars)
	c.group(p, early)
	after := c.lastNeeded(late, vars)
	for i, s := range c.src.stmts {
		if d, ok := s.(*ast.DeclStmt); !ok || d.Decl.(*ast.GenDecl).Tok == token.VAR {
			c.statement(p, s, i == len(c.src.stmts)-1)
		}
		if i == after {
			c.group(p, late)
		}
	}

	if c.own.results["main"] > 0 {
		p.chunks = append(p.chunks, goChunk{text: mainRenamed + "()", line: 1, show: "main()"})
	}
	p.own = c.own
	return p
}

// add adds the names that a snippet declared.
func (k *goNames) add(p *goPlan) {
	for name, path := range p.own.packages {
		k.packages[name] = path
	}
	for name := range p.own.types {
		k.types[name] = true
	}

	for name := range p.own.methods {
		k.methods[name] = true
	}
	for name, n := range p.own.results {
		k.results[name], k.from[name] = n, p.number
	}

	for name, object := range p.own.constants {
		k.constants[name] = object
	}

	k.wrapped += p.wrapped
}

// variables returns the names that top-level statements define, each with the number of its
// statement.
func (c *goCheck) variables() map[string]int {
	vars := map[string]int{}
	for i, s := range c.src.stmts {
		switch s := s.(type) {
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE {
				for _, l := range s.Lhs {
					if n, ok := l.(*ast.Ident); ok {
						vars[n.Name] = i
					}
				}
			}
		case *ast.DeclStmt:
			for _, spec := range s.Decl.(*ast.GenDecl).Specs {
				if v, ok := spec.(*ast.ValueSpec); ok && s.Decl.(*ast.GenDecl).Tok == token.VAR {
					for _, n := range v.Names {
						vars[n.Name] = i
					}
				}
			}
		}
	}

	return vars
}

// hoist separates the declarations that can run first from those that use the snippet's variables,
// directly or through functions that they call.
func (c *goCheck) hoist(decls []ast.Node, vars map[string]int) (early, late []ast.Node) {
	bad := map[string]bool{}
	for name := range vars {
		bad[name] = true
	}
	for again := true; again; {
		again, early, late = false, nil, nil
		for _, d := range decls {
			if !mentionsAny(d, bad) {
				early = append(early, d)
				continue
			}
			late = append(late, d)
			if f, ok := d.(*ast.FuncDecl); ok && !bad[f.Name.Name] {
				bad[f.Name.Name], again = true, true
			}
		}
	}

	return early, late
}

func mentionsAny(root ast.Node, names map[string]bool) bool {
	found := false
	ast.Inspect(root, func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok && names[id.Name] {
			found = true
		}
		return !found
	})

	return found
}

// lastNeeded returns the number of the last statement that defines a variable of the late
// declarations.
func (c *goCheck) lastNeeded(late []ast.Node, vars map[string]int) int {
	last := -1
	for _, d := range late {
		ast.Inspect(d, func(n ast.Node) bool {
			if id, ok := n.(*ast.Ident); ok {
				if i, ok := vars[id.Name]; ok {
					last = max(last, i)
				}
			}
			return true
		})
	}

	return last
}

// chunk adds one node as a separate chunk.
func (c *goCheck) chunk(p *goPlan, n ast.Node) *goChunk {
	start, end := c.src.offset(n.Pos()), c.src.offset(n.End())
	p.chunks = append(p.chunks, goChunk{
		text: c.src.cut(start, end), line: c.src.line(n.Pos()), show: c.src.text[start:end],
	})
	return &p.chunks[len(p.chunks)-1]
}

// group adds declarations as one chunk, because they may refer to each other.
func (c *goCheck) group(p *goPlan, decls []ast.Node) {
	if len(decls) == 0 {
		return
	}
	slices.SortFunc(decls, func(a, b ast.Node) int { return int(a.Pos() - b.Pos()) })
	first := c.src.line(decls[0].Pos())
	var b strings.Builder
	line := first

	for i, d := range decls {
		here := c.src.line(d.Pos())
		if i > 0 && here == line {
			b.WriteByte(';')
		}
		b.WriteString(strings.Repeat("\n", here-line))
		b.WriteString(c.src.cut(c.src.offset(d.Pos()), c.src.offset(d.End())))
		line = c.src.line(d.End())
	}

	p.chunks = append(p.chunks, goChunk{text: b.String(), line: first, show: "declarations"})
}

// statement adds a statement. A statement with a block becomes a function, see wrapper.
func (c *goCheck) statement(p *goPlan, s ast.Stmt, last bool) {
	switch s := s.(type) {
	case *ast.EmptyStmt:
		return
	case *ast.AssignStmt, *ast.IncDecStmt, *ast.SendStmt, *ast.DeclStmt:
		c.chunk(p, s)
	case *ast.ExprStmt:
		c.chunk(p, s).echo = last && c.echoes(s.X)
	default:
		p.wrapped++
		n := c.known.wrapped + p.wrapped
		chunk := c.chunk(p, s)
		chunk.wrap = n
		p.chunks = append(p.chunks, goChunk{call: n, line: chunk.line, show: chunk.show})
	}
}

// echoes reports whether the value of a trailing expression is shown. It excludes calls that may
// return no value or several, and calls made for their output.
func (c *goCheck) echoes(e ast.Expr) bool {
	call, ok := e.(*ast.CallExpr)
	if !ok {
		return true
	}
	switch f := call.Fun.(type) {
	case *ast.Ident:
		n := c.own.results[f.Name] + c.known.results[f.Name]
		return n == 2 || n == 0 && quiet[f.Name] && !c.local[f.Name]
	case *ast.SelectorExpr:
		x, ok := f.X.(*ast.Ident)
		if !ok || c.local[x.Name] {
			return false
		}
		path := c.own.packages[x.Name] + c.known.packages[x.Name]
		symbol, ok := c.known.symbols[path+"/"+c.known.allowed[path]][f.Sel.Name]
		return ok && symbol.Kind().String() == "func" && symbol.Type().NumOut() == 1
	case *ast.ArrayType, *ast.MapType:
		return true
	}

	return false
}

// quiet are the builtins and conversions whose only effect is to return a value.
var quiet = set(
	"len", "cap", "string", "int", "int64", "float64", "byte", "rune", "append", "real", "imag",
	"complex",
)

// imports adds the session's new imports. The interpreter accepts each import once.
func (c *goCheck) imports(p *goPlan, d *ast.GenDecl) {
	for _, spec := range d.Specs {
		i, ok := spec.(*ast.ImportSpec)
		if !ok {
			continue
		}
		text := "import " + c.src.text[c.src.offset(i.Pos()):c.src.offset(i.End())]
		path := i.Path.Value[1 : len(i.Path.Value)-1]
		name := c.known.allowed[path]
		if i.Name != nil {
			name = i.Name.Name
		}

		if c.known.packages[name] != path && !p.imported[name] {
			p.imported[name] = true
			p.chunks = append(p.chunks, goChunk{text: text, line: c.src.line(i.Pos()), show: text})
		}
	}
}
