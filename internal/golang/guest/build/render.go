package build

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/printer"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/rlmhq/rlm/internal/golang/guest/run"
)

// runtimePath is the import path of the runtime in a program, and runtimeName is its name there.
const (
	runtimePath = Runtime
	runtimeName = "rlm__"
)

// hostFile returns the file with the names that the host provides to a session.
func (p *program) hostFile() string {
	var b, set strings.Builder
	fmt.Fprintf(&b, "package main\nimport %s %q\n", runtimeName, runtimePath)
	names := p.request.names()
	for _, name := range slices.Sorted(maps.Keys(names)) {
		unique := p.versions.unique(name, 0)
		text := strings.ReplaceAll(names[name], "NAME", unique)
		if value, ok := strings.CutPrefix(text, "="); ok {
			kind, value, _ := strings.Cut(value, "=")
			text = fmt.Sprintf("var %s %s", unique, kind)
			fmt.Fprintf(&set, "\t%s = %s\n", unique, value)
		}

		b.WriteString(text + "\n")
	}

	fmt.Fprintf(&b, "func main() {\n\t%s.Main(func() {\n%s\t}", runtimeName, set.String())
	for _, u := range p.units {
		fmt.Fprintf(&b, ", %s", u.entry())
	}
	b.WriteString(")\n}\n")
	return b.String()
}

// names returns the host's names. Each value is a declaration, or =type=initial value.
func (r *Request) names() map[string]string {
	names := map[string]string{
		"Text": "type NAME = rlm__.Text",
		"Call": "func NAME(name string, args ...any) (any, error) { return rlm__.CallHost(name, " +
			"args...) }",
		"Query": "func NAME(prompt string) (string, error) { return rlm__.Query(prompt) }",
		"QueryBatched": "func NAME(prompts []string) ([]string, error) { return " +
			"rlm__.QueryBatched(prompts) }",
		"FINAL":     "func NAME(v any) { rlm__.Finish(v) }",
		"FINAL_VAR": "func NAME(name string) { rlm__.FinishVar(name) }",
	}

	for _, name := range r.Functions {
		if _, taken := names[name]; !taken && token.IsIdentifier(name) &&
			types.Universe.Lookup(name) == nil && name != "main" && name != "init" {
			names[name] = fmt.Sprintf(
				"func NAME(args ...any) (any, error) { return rlm__.CallHost(%q, args...) }", name,
			)
		}
	}

	for i, kind := range r.Inputs {
		value := map[string]string{
			run.InputIsText:  fmt.Sprintf("=string=rlm__.InputText(%d)", i),
			run.InputIsLazy:  fmt.Sprintf("=*rlm__.Text=rlm__.InputLazy(%d)", i),
			run.InputIsValue: fmt.Sprintf("=any=rlm__.InputValue(%d)", i),
		}[kind]
		if value == "" {
			continue
		}

		names[fmt.Sprintf("Context_%d", i)] = value
		if i == 0 {
			names["Context"] = value
		}
	}

	return names
}

// render returns the files of a checked program.
func (p *program) render() (map[string]string, error) {
	files := map[string]string{"host.go": p.hostFile()}
	for i, u := range p.units {
		text, err := p.unitFile(u, p.imports[i])
		if err != nil {
			return nil, err
		}
		files[u.file()] = text
	}

	return files, nil
}

// unitFile returns the file of a unit for the compiler. It contains variables, declarations, and a
// function with the statements.
func (p *program) unitFile(u *unit, imports map[string]string) (string, error) {
	vars, pointers := p.globals(u, imports)
	stmts := p.statements(u)
	p.rewrite(u)
	var b bytes.Buffer
	b.WriteString("package main\n")
	fmt.Fprintf(&b, "import %s %q\n", runtimeName, runtimePath)
	used := p.usedImports(&unit{decls: u.decls, stmts: stmts})

	for _, name := range slices.Sorted(maps.Keys(imports)) {
		if used[name] || strings.HasPrefix(name, "rlm__") {
			fmt.Fprintf(&b, "import %s %q\n", name, imports[name])
		}
	}
	for _, i := range u.imports {
		if i.name == "_" {
			fmt.Fprintf(&b, "import _ %q\n", i.path)
		}
	}

	b.WriteString(vars)
	write := printer.Config{
		Mode: printer.SourcePos | printer.TabIndent | printer.UseSpaces, Tabwidth: 8,
	}
	if err := write.Fprint(&b, p.set, u.decls); err != nil {
		return "", fmt.Errorf("cannot write the declarations of snippet %d: %w", u.n, err)
	}

	fmt.Fprintf(
		&b, "\nfunc %s() {\n%s.Vars(map[string]any{%s})\n", u.entry(), runtimeName, pointers,
	)
	if err := write.Fprint(&b, p.set, stmts); err != nil {
		return "", fmt.Errorf("cannot write the statements of snippet %d: %w", u.n, err)
	}

	for i := range p.functions(u, "init__") {
		fmt.Fprintf(&b, "\ninit__%d_%d()", u.n, i)
	}
	if p.functions(u, "main__") > 0 {
		fmt.Fprintf(&b, "\nmain__%d()", u.n)
	}

	b.WriteString("\n}\n")
	return b.String(), nil
}

// functions counts a unit's functions whose names begin with a prefix.
func (p *program) functions(u *unit, prefix string) (n int) {
	for _, d := range u.decls {
		if f, ok := d.(*ast.FuncDecl); ok && f.Recv == nil &&
			strings.HasPrefix(f.Name.Name, prefix) {
			n++
		}
	}
	return n
}

// usedImports returns the imports that a rewritten unit uses.
func (p *program) usedImports(u *unit) map[string]bool {
	used := map[string]bool{}
	u.idents(func(id *ast.Ident) {
		if _, ok := p.info.Uses[id].(*types.PkgName); ok {
			used[id.Name] = true
		}
	})
	return used
}

// globals declares the variables of a unit, and lists them for FINAL_VAR. Packages that only the
// types of the variables need are imported under generated names.
func (p *program) globals(u *unit, imports map[string]string) (declarations, pointers string) {
	var b, list strings.Builder
	names := map[string]string{} // by import path
	qualify := func(pkg *types.Package) string {
		if pkg == p.checked {
			return ""
		}
		if pkg.Path() == runtimePath {
			return runtimeName
		}

		if names[pkg.Path()] == "" {
			names[pkg.Path()] = fmt.Sprintf("rlm__%d_%d", u.n, len(names))
			imports[names[pkg.Path()]] = pkg.Path()
		}
		return names[pkg.Path()]
	}

	u.idents(func(id *ast.Ident) {
		v, ok := p.info.Defs[id].(*types.Var)
		if !ok || !p.own[id] || id.Name == "_" {
			return
		}
		fmt.Fprintf(&b, "var %s %s\n", id.Name, types.TypeString(v.Type(), qualify))
		fmt.Fprintf(&list, "%q: &%s, ", base(id.Name), id.Name)
	})

	return b.String(), list.String()
}

// statements returns a unit's statements. It replaces declarations of variables with assignments,
// and shows the trailing expression.
func (p *program) statements(u *unit) []ast.Stmt {
	var stmts []ast.Stmt
	for _, s := range u.stmts {
		switch s := s.(type) {
		case *ast.DeclStmt:
			g, _ := s.Decl.(*ast.GenDecl) // sort left no other kind
			for _, spec := range g.Specs {
				if a := assignment(spec); a != nil {
					stmts = append(stmts, a)
				}
			}
			continue
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE {
				s.Tok = token.ASSIGN
			}
		case *ast.ExprStmt:
			if s == u.trailing() && p.echoes(s.X) {
				s.X = &ast.CallExpr{Fun: own("Echo", s.Pos()), Args: []ast.Expr{s.X}}
			}
		}

		stmts = append(stmts, s)
	}

	if u.whole {
		p.order(stmts)
	}
	return stmts
}

// assignment returns the assignment that replaces a variable's declaration.
func assignment(spec ast.Spec) ast.Stmt {
	v, ok := spec.(*ast.ValueSpec)
	if !ok || len(v.Values) == 0 {
		return nil
	}
	a := &ast.AssignStmt{Tok: token.ASSIGN, TokPos: v.Pos(), Rhs: v.Values}
	blank := true

	for _, name := range v.Names {
		a.Lhs = append(a.Lhs, name)
		blank = blank && name.Name == "_"
	}
	if !blank || v.Type == nil {
		return a
	}

	return &ast.DeclStmt{Decl: &ast.GenDecl{Tok: token.VAR, TokPos: v.Pos(), Specs: []ast.Spec{v}}}
}

// order sorts the variables of a complete file into Go's order of initialisation.
func (p *program) order(stmts []ast.Stmt) {
	rank := map[types.Object]int{}
	for i, init := range p.info.InitOrder {
		for _, v := range init.Lhs {
			rank[v] = i
		}
	}

	of := func(s ast.Stmt) int {
		if a, ok := s.(*ast.AssignStmt); ok {
			for _, e := range a.Lhs {
				if id, ok := e.(*ast.Ident); ok && p.info.Defs[id] != nil {
					return rank[p.info.Defs[id]]
				}
			}
		}

		return len(rank)
	}

	slices.SortStableFunc(stmts, func(a, b ast.Stmt) int { return of(a) - of(b) })
}

// own returns an expression for a name of the runtime.
func own(name string, pos token.Pos) *ast.SelectorExpr {
	return &ast.SelectorExpr{
		X: &ast.Ident{Name: runtimeName, NamePos: pos}, Sel: &ast.Ident{Name: name, NamePos: pos},
	}
}

// echoes reports whether the value of a trailing expression is shown. It does not show calls that
// may return several values or none, or calls that are made for their effect.
func (p *program) echoes(e ast.Expr) bool {
	value := p.info.Types[e]
	if !value.IsValue() || value.Type == nil {
		return false
	}
	if _, tuple := value.Type.(*types.Tuple); tuple {
		return false
	}

	call, ok := ast.Unparen(e).(*ast.CallExpr)
	if !ok {
		return true
	}
	if f := p.info.Types[call.Fun]; f.IsBuiltin() || f.IsType() {
		return true
	}

	return p.function(call.Fun)
}

// function reports whether an expression is a declared function, and not a method.
func (p *program) function(e ast.Expr) bool {
	switch f := e.(type) {
	case *ast.IndexExpr:
		return p.function(f.X)
	case *ast.IndexListExpr:
		return p.function(f.X)
	case *ast.SelectorExpr:
		return p.function(f.Sel)
	case *ast.Ident:
		fn, ok := p.info.Uses[f].(*types.Func)
		return ok && fn.Signature().Recv() == nil
	}

	return false
}

// rewrite replaces calls that would bypass the runtime, and adds a use of each unused variable.
func (p *program) rewrite(u *unit) {
	visit := func(n ast.Node) bool {
		if s, ok := n.(*ast.SelectorExpr); ok {
			if f, ok := p.info.Uses[s.Sel].(*types.Func); ok && f.FullName() == "os.Exit" {
				*s = *own("Exit", s.Pos())
			}
		}
		p.use(n)
		return true
	}

	for _, d := range u.decls {
		ast.Inspect(d, visit)
	}
	for _, s := range u.stmts {
		ast.Inspect(s, visit)
	}
}

// use adds uses of unused variables after the statements that declare them.
func (p *program) use(n ast.Node) {
	switch n := n.(type) {
	case *ast.BlockStmt:
		n.List = p.usedAfter(n.List)
	case *ast.CaseClause:
		n.Body = p.usedAfter(n.Body)
	case *ast.CommClause:
		n.Body = append(p.uses(n.Comm), p.usedAfter(n.Body)...)
	case *ast.IfStmt:
		n.Body.List = append(p.uses(n.Init), n.Body.List...)
	case *ast.ForStmt:
		n.Body.List = append(p.uses(n.Init), n.Body.List...)
	case *ast.RangeStmt:
		n.Body.List = append(p.unusedOf(n.Key, n.Value), n.Body.List...)
	case *ast.TypeSwitchStmt:
		if a, ok := n.Assign.(*ast.AssignStmt); ok && len(p.unusedOf(a.Lhs...)) > 0 {
			n.Assign = &ast.ExprStmt{X: a.Rhs[0]}
		}
	}
}

func (p *program) usedAfter(list []ast.Stmt) []ast.Stmt {
	if len(p.unused) == 0 {
		return list
	}
	var all []ast.Stmt
	for _, s := range list {
		all = append(append(all, s), p.uses(s)...)
	}

	return all
}

// uses returns assignments to _ of the unused variables that a statement declares.
func (p *program) uses(s ast.Stmt) []ast.Stmt {
	switch s := s.(type) {
	case *ast.AssignStmt:
		if s.Tok == token.DEFINE {
			return p.unusedOf(s.Lhs...)
		}
	case *ast.DeclStmt:
		if g, ok := s.Decl.(*ast.GenDecl); ok {
			var all []ast.Stmt
			for _, spec := range g.Specs {
				if v, ok := spec.(*ast.ValueSpec); ok {
					for _, name := range v.Names {
						all = append(all, p.unusedOf(name)...)
					}
				}
			}
			return all
		}
	}

	return nil
}

func (p *program) unusedOf(names ...ast.Expr) []ast.Stmt {
	var all []ast.Stmt
	for _, e := range names {
		if id, ok := e.(*ast.Ident); ok && p.unused[id.Pos()] {
			all = append(all, &ast.AssignStmt{
				Lhs:    []ast.Expr{&ast.Ident{Name: "_", NamePos: id.Pos()}},
				Tok:    token.ASSIGN,
				TokPos: id.Pos(),
				Rhs:    []ast.Expr{&ast.Ident{Name: id.Name, NamePos: id.Pos()}},
			})
		}
	}

	return all
}

// importConfig lists the files of packages for the compiler and linker.
func (r *Request) importConfig() string {
	var b strings.Builder
	for _, path := range slices.Sorted(maps.Keys(r.Toolchain.Exports)) {
		if name := r.Toolchain.Exports[path]; name != "" {
			fmt.Fprintf(
				&b, "packagefile %s=%s\n", path, strconv.Quote(name)[1:len(strconv.Quote(name))-1],
			)
		}
	}

	return b.String()
}
