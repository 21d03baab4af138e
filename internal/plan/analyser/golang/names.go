package golang

import (
	"go/ast"
	"go/doc"
	"go/token"

	"github.com/rlmhq/rlm/router"
)

// isUniverse reports whether the parser found no declaration of a name in its part, because the
// name is predeclared, or a package, or declared elsewhere.
func isUniverse(name *ast.Ident) bool {
	return name.Obj == nil
}

// findNames fills in the names that are read, written, called and defined.
func findNames(files []part, packages map[string]string, n *router.Needs) {
	w := &names{assigned: map[*ast.Ident]bool{}}
	for _, file := range files {
		w.findDefinitions(file)
	}
	for _, file := range files {
		ast.Inspect(file.syntax, w.inspect)
	}
	known := func(name string) bool {
		_, imported := packages[name]
		return imported || name == "_" || doc.IsPredeclared(name) || w.defines.has[name]
	}
	for _, file := range files {
		// In statements, a name that the snippet declares only later refers to an older
		// declaration.
		own := func(name string) bool {
			return known(name) || file.statements == nil && w.top.has[name]
		}
		for _, name := range file.syntax.Unresolved {
			if own(name.Name) {
				continue
			}
			if w.assigned[name] {
				w.writes.add(name.Name)
				continue
			}

			w.reads.add(name.Name)
		}
	}

	for _, name := range w.called.list {
		if !known(name) && !w.top.has[name] {
			n.Calls = append(n.Calls, name)
		}
	}

	n.Reads, n.Writes, n.Defines = w.reads.list, w.writes.list, w.defines.list
}

// names collects a snippet's uses of names.
type names struct {
	top      set // declared at the snippet's top level
	reads    set
	writes   set
	defines  set
	called   set                 // called by plain name
	assigned map[*ast.Ident]bool // on the left of a plain assignment
}

// set is a set of names in order of appearance.
type set struct {
	list []string
	has  map[string]bool
}

func (s *set) add(name string) {
	if s.has == nil {
		s.has = map[string]bool{}
	}
	if !s.has[name] {
		s.has[name] = true
		s.list = append(s.list, name)
	}
}

func (w *names) bindName(name *ast.Ident, defines bool) {
	if name == nil || name.Name == "_" || name.Name == "init" {
		return
	}
	w.top.add(name.Name)
	w.writes.add(name.Name)
	if defines {
		w.defines.add(name.Name)
	}
}

// findDefinitions finds the names that a part declares at its top level.
func (w *names) findDefinitions(file part) {
	if file.statements != nil {
		for _, s := range file.statements.List {
			switch s := s.(type) {
			case *ast.DeclStmt:
				w.addDeclaration(s.Decl)
			case *ast.AssignStmt:
				if s.Tok == token.DEFINE {
					for _, e := range s.Lhs {
						if name, ok := e.(*ast.Ident); ok {
							w.bindName(name, false)
						}
					}
				}
			}
		}
		return
	}

	for _, d := range file.syntax.Decls {
		w.addDeclaration(d)
	}
}

func (w *names) addDeclaration(d ast.Decl) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv == nil {
			w.bindName(d.Name, true)
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.TypeSpec:
				w.bindName(s.Name, true)
			case *ast.ValueSpec:
				for _, name := range s.Names {
					w.bindName(name, true)
				}
			}
		}
	}
}

func (w *names) inspect(node ast.Node) bool {
	switch n := node.(type) {
	case *ast.AssignStmt:
		if n.Tok == token.ASSIGN {
			for _, e := range n.Lhs {
				if name, ok := e.(*ast.Ident); ok {
					w.assigned[name] = true
				}
			}
		} else if n.Tok != token.DEFINE {
			w.noteChange(n.Lhs[0])
		}
	case *ast.IncDecStmt:
		w.noteChange(n.X)
	case *ast.CallExpr:
		if name, ok := n.Fun.(*ast.Ident); ok && isUniverse(name) {
			w.called.add(name.Name)
		}
	}

	return true
}

// noteChange records a variable that is both read and written: x += 1.
func (w *names) noteChange(e ast.Expr) {
	if name, ok := e.(*ast.Ident); ok && isUniverse(name) {
		w.writes.add(name.Name)
	}
}
