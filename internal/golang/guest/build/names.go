package build

import (
	"fmt"
	"go/ast"
	"go/token"
	"go/types"
	"slices"
)

// Snippet is one snippet of a session.
type Snippet struct {
	Source string `json:"source"`
	// Refs are the identifiers that refer to the session's top level, or nil before the snippet has
	// been checked.
	Refs []Ref `json:"refs"`
}

// Ref describes an identifier. It has its position, and the number of the snippet whose declaration
// or import it refers to. The host's names belong to snippet 0.
type Ref struct {
	At int `json:"at"`
	Of int `json:"of"`
}

// version is one declaration of a top-level name of the session.
type version struct {
	of   int
	path string // of an import
}

// versions are the declarations of each name, oldest first.
type versions map[string][]version

func (v versions) add(u *unit) {
	for name := range u.defs {
		v[name] = append(v[name], version{of: u.n})
	}
	for _, i := range u.imports {
		list := v[i.name]
		if i.name != "_" && (len(list) == 0 || list[len(list)-1].path != i.path) {
			v[i.name] = append(list, version{u.n, i.path})
		}
	}
}

// latest returns the declaration that a name refers to after snippet n.
func (v versions) latest(name string, n int) (version, bool) {
	list := v[name]
	for i := len(list) - 1; i >= 0; i-- {
		if list[i].of <= n {
			return list[i], true
		}
	}
	return version{}, false
}

// unique returns a declaration's name in the program. The newest declaration keeps the original
// name.
func (v versions) unique(name string, of int) string {
	list := v[name]
	if name == "main" || name == "init" || len(list) > 0 && list[len(list)-1].of != of {
		return fmt.Sprintf("%s__%d", name, of)
	}
	return name
}

// idents calls f for each identifier of a unit.
func (u *unit) idents(f func(*ast.Ident)) {
	visit := func(n ast.Node) bool {
		if id, ok := n.(*ast.Ident); ok {
			f(id)
		}
		return true
	}

	for _, d := range u.decls {
		ast.Inspect(d, visit)
	}
	for _, s := range u.stmts {
		ast.Inspect(s, visit)
	}
}

// rename renames the identifiers of a unit to their names in the program, and returns the used
// imports under those names.
func (p *program) rename(u *unit, refs []Ref) map[string]string {
	of := map[int]int{}
	for _, r := range refs {
		of[r.At] = r.Of
	}
	used := map[string]string{}
	u.idents(func(id *ast.Ident) {
		n, ok := of[u.offset(id.Pos())]
		if !ok {
			return
		}
		name := p.versions.unique(id.Name, n)
		for _, v := range p.versions[id.Name] {
			if v.of == n && v.path != "" {
				used[name] = v.path
			}
		}

		id.Name = name
	})

	return used
}

// candidates returns the imports that an unchecked unit may use.
func (p *program) candidates(u *unit) map[string]string {
	used := map[string]string{}
	u.idents(func(id *ast.Ident) {
		if v, ok := p.versions.latest(id.Name, u.n); ok && v.path != "" {
			used[id.Name] = v.path
		}
	})
	return used
}

// resolve finds the refs of the newest unit after its check. again means that the check resolved an
// identifier to a different declaration.
func (p *program) resolve(u *unit) (refs []Ref, again bool, err *CompileError) {
	u.idents(func(id *ast.Ident) {
		if err != nil {
			return
		}
		of, ok := -1, false
		if p.own[id] {
			of, ok = u.n, true
		} else if obj := p.info.Uses[id]; obj != nil {
			of, ok = p.meaning(u, id, obj)
		}

		if !ok {
			return
		}
		if d, own := u.defs[id.Name]; own && of == u.n && d.sequential && id.Pos() < d.end &&
			!p.own[id] && p.inStatements(u, id.Pos()) {
			before, known := p.versions.latest(id.Name, u.n-1)
			if !known {
				err = failed(
					"CompileError",
					fmt.Sprintf("%s: undefined: %s", p.set.Position(id.Pos()), id.Name),
				)
				return
			}
			of = before.of
		}

		again = again || p.versions.unique(id.Name, of) != id.Name
		refs = append(refs, Ref{u.offset(id.Pos()), of})
	})

	if refs == nil {
		refs = []Ref{}
	}
	return slices.DeleteFunc(refs, func(r Ref) bool { return r.At < 0 }), again, err
}

func (p *program) inStatements(u *unit, pos token.Pos) bool {
	return u.regions[1].file.Base() <= int(pos) &&
		int(pos) <= u.regions[1].file.Base()+u.regions[1].file.Size()
}

// meaning returns the snippet that declares the name of an object. An embedded field is named
// after its type and renamed with it.
func (p *program) meaning(u *unit, id *ast.Ident, obj types.Object) (int, bool) {
	switch o := obj.(type) {
	case *types.PkgName:
		v, ok := p.versions.latest(id.Name, u.n)
		return v.of, ok
	case *types.Var:
		if o.IsField() && !o.Embedded() {
			return 0, false
		}
		if o.IsField() {
			obj = typeName(o.Type())
		}
	}

	if obj == nil || obj.Pkg() != p.checked || obj.Parent() != p.checked.Scope() {
		return 0, false
	}
	v, ok := p.versions.latest(id.Name, u.n)
	return v.of, ok
}

// typeName returns the name of a type, or nil if the type has no name.
func typeName(t types.Type) types.Object {
	if pointer, ok := t.(*types.Pointer); ok {
		t = pointer.Elem()
	}
	switch t := t.(type) {
	case *types.Named:
		return t.Obj()
	case *types.Alias:
		return t.Obj()
	}

	return nil
}
