package build

import (
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"io"
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// program is a session that is being compiled.
type program struct {
	request  *Request
	set      *token.FileSet
	units    []*unit
	versions versions
	imports  []map[string]string // names used by each unit
	own      map[*ast.Ident]bool // identifiers that declare a top-level name themselves
	info     types.Info
	checked  *types.Package
	unused   map[token.Pos]bool
	errors   []string
}

// stdlib reads the standard library's export data and caches the packages.
type stdlib struct {
	exports  map[string]string
	importer types.Importer
}

func newStdlib() *stdlib {
	s := &stdlib{}
	s.importer = importer.ForCompiler(
		token.NewFileSet(),
		"gc",
		func(path string) (io.ReadCloser, error) {
			name, ok := s.exports[path]
			if !ok {
				return nil, fmt.Errorf("package %s is not in std", path)
			}
			return os.Open(name)
		},
	)

	return s
}

// analyse parses and checks the first snippets of a request, and finds the refs of the last one
// if they are missing.
func analyse(request *Request, std *stdlib, count int) (*program, *CompileError) {
	for {
		p := &program{
			request:  request,
			set:      token.NewFileSet(),
			versions: versions{},
			own:      map[*ast.Ident]bool{},
			unused:   map[token.Pos]bool{},
			info: types.Info{
				Types: map[ast.Expr]types.TypeAndValue{},
				Defs:  map[*ast.Ident]types.Object{},
				Uses:  map[*ast.Ident]types.Object{},
			},
		}

		for name := range request.names() {
			p.versions[name] = []version{{}}
		}
		for i, s := range request.Snippets[:count] {
			u, err := parseUnit(p.set, i+1, s.Source)
			if err != nil {
				return nil, err
			}
			p.units = append(p.units, u)
			p.versions.add(u)
		}

		last := p.units[count-1]
		if err := p.importable(last); err != nil {
			return nil, err
		}
		for i, u := range p.units {
			if refs := request.Snippets[i].Refs; refs != nil {
				p.imports = append(p.imports, p.rename(u, refs))
			} else {
				p.imports = append(p.imports, p.candidates(u))
			}
		}

		p.check(std)
		if request.Snippets[count-1].Refs == nil {
			refs, again, err := p.resolve(last)
			if err != nil {
				return nil, err
			}
			request.Snippets[count-1].Refs = refs
			if again {
				continue
			}
		}

		if len(p.errors) > 0 {
			return nil, failed("CompileError", p.errors...)
		}
		return p, nil
	}
}

// importable checks that the packages of a unit's imports exist.
func (p *program) importable(u *unit) *CompileError {
	for _, i := range u.imports {
		if p.request.Toolchain.Exports[i.path] == "" && i.path != "unsafe" || !Importable(i.path) {
			return failed(
				"CompileError",
				fmt.Sprintf("%s: package %s is not in std", p.set.Position(i.pos), i.path),
			)
		}
	}

	return nil
}

// importPath matches import paths of the standard library.
var importPath = regexp.MustCompile(`^[a-z0-9]+(/[a-z0-9]+)*$`)

// Importable reports whether a path looks like a package of the standard library that programs
// may import.
func Importable(path string) bool {
	return len(path) < 100 && importPath.MatchString(path) && path != "main" &&
		!slices.ContainsFunc(
			strings.Split(path, "/"),
			func(part string) bool { return part == "internal" || part == "vendor" || part == "cmd" },
		)
}

// check type-checks the program with all variables at its top level, where the checker can infer
// their types in any order.
func (p *program) check(std *stdlib) {
	std.exports = p.request.Toolchain.Exports
	host, err := parser.ParseFile(p.set, "host.go", p.hostFile(), parser.SkipObjectResolution)
	if err != nil {
		p.errors = append(p.errors, err.Error())
		return
	}

	files := []*ast.File{host}
	for i, u := range p.units {
		files = append(files, p.checkFile(u, p.imports[i]))
	}
	config := types.Config{
		Importer:  std.importer,
		GoVersion: p.request.Toolchain.Version,
		Sizes:     types.SizesFor("gc", p.request.Toolchain.Arch),
		Error:     p.complain,
	}

	// complain receives every error.
	p.checked, _ = config.Check("main", p.set, files, &p.info)
}

// complain records an error of the checker, unless sessions tolerate it.
func (p *program) complain(err error) {
	e, ok := err.(types.Error) //nolint:errorlint // the checker returns it unwrapped
	switch {
	case !ok:
		p.errors = append(p.errors, err.Error())
	case strings.Contains(e.Msg, "declared and not used"):
		p.unused[e.Pos] = true
	case strings.Contains(e.Msg, "imported and not used"),
		strings.Contains(e.Msg, "imported as") && strings.Contains(e.Msg, "not used"):
	case strings.HasSuffix(e.Msg, "is not used") && p.echoed(e.Pos):
	case strings.HasPrefix(e.Msg, "initialization cycle"), strings.HasPrefix(e.Msg, "\t"):
	default:
		text := fmt.Sprintf("%s: %s", p.set.Position(e.Pos), e.Msg)
		p.errors = append(p.errors, suffix.ReplaceAllString(text, ""))
	}
}

// echoed reports whether a position is in the trailing expression of a unit.
func (p *program) echoed(pos token.Pos) bool {
	for _, u := range p.units {
		if e := u.trailing(); e != nil && e.Pos() <= pos && pos < e.End() {
			return true
		}
	}
	return false
}

// trailing returns a snippet's last statement if it is an expression.
func (u *unit) trailing() *ast.ExprStmt {
	if len(u.stmts) == 0 || u.whole {
		return nil
	}
	e, _ := u.stmts[len(u.stmts)-1].(*ast.ExprStmt)
	return e
}

// checkFile returns the file of a unit for the checker.
func (p *program) checkFile(u *unit, imports map[string]string) *ast.File {
	file := &ast.File{
		Name:      ast.NewIdent("main"),
		FileStart: u.regions[1].file.Pos(0),
		FileEnd:   u.regions[1].file.Pos(0),
	}
	for _, name := range slices.Sorted(maps.Keys(imports)) {
		spec := &ast.ImportSpec{
			Name: ast.NewIdent(name),
			Path: &ast.BasicLit{Kind: token.STRING, Value: strconv.Quote(imports[name])},
		}
		file.Imports = append(file.Imports, spec)
		file.Decls = append(file.Decls, &ast.GenDecl{Tok: token.IMPORT, Specs: []ast.Spec{spec}})
	}

	file.Decls = append(file.Decls, p.topLevel(u)...)
	body := &ast.BlockStmt{}
	for _, s := range u.stmts {
		if specs := p.variables(u, s); specs != nil {
			file.Decls = append(file.Decls, &ast.GenDecl{Tok: token.VAR, Specs: specs})
			continue
		}
		body.List = append(body.List, s)
	}

	file.Decls = append(file.Decls, &ast.FuncDecl{
		Name: ast.NewIdent(u.entry()),
		Type: &ast.FuncType{Params: &ast.FieldList{}},
		Body: body,
	},
	)

	return file
}

// entry returns the name of the function that runs a unit's statements.
func (u *unit) entry() string { return fmt.Sprintf("rlm__%d", u.n) }

// topLevel returns the declarations of a unit. Its main and init become plain
// functions.
func (p *program) topLevel(u *unit) []ast.Decl {
	inits := 0
	for _, d := range u.decls {
		switch d := d.(type) {
		case *ast.FuncDecl:
			switch {
			case d.Recv != nil:
			case d.Name.Name == "init":
				d.Name.Name = fmt.Sprintf("init__%d_%d", u.n, inits)
				inits++
			case d.Name.Name == "main":
				d.Name.Name = p.versions.unique("main", u.n)
				fallthrough
			default:
				p.own[d.Name] = true
			}
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch spec := spec.(type) {
				case *ast.TypeSpec:
					p.own[spec.Name] = true
				case *ast.ValueSpec:
					p.owns(spec.Names)
				}
			}
		}
	}

	return u.decls
}

func (p *program) owns(names []*ast.Ident) {
	for _, name := range names {
		p.own[name] = name.Name != "_"
	}
}

// variables returns the top-level variables that a statement declares, or nil for other statements.
func (p *program) variables(u *unit, s ast.Stmt) []ast.Spec {
	switch s := s.(type) {
	case *ast.DeclStmt:
		g, _ := s.Decl.(*ast.GenDecl) // sort left no other kind
		for _, spec := range g.Specs {
			if v, ok := spec.(*ast.ValueSpec); ok {
				p.owns(v.Names)
			}
		}
		return g.Specs
	case *ast.AssignStmt:
		if s.Tok != token.DEFINE {
			return nil
		}
		spec := &ast.ValueSpec{Values: s.Rhs}
		for _, e := range s.Lhs {
			name, _ := e.(*ast.Ident) // ensured by define
			if name.Name != "_" {
				p.own[name] = true
				if u.defs[base(name.Name)].end != s.End() { // := only assigns to this variable
					name = &ast.Ident{Name: "_", NamePos: name.NamePos}
				}
			}

			spec.Names = append(spec.Names, name)
		}
		return []ast.Spec{spec}
	}

	return nil
}
