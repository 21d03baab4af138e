package archtest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/token"
	"go/types"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// mostNames bounds the exported names of all public packages together: top-level names, and methods
// of exported types. A feature that needs a few more names raises the bound in the same change.
const mostNames = 616

func TestThePublicSurfaceIsSmall(t *testing.T) {
	perFolder, sum := map[string]int{}, 0
	for _, f := range goFiles(t) {
		if !f.test && isPublic(f.folder()) {
			n := len(exportedNames(f.syntax))
			perFolder[f.folder()] += n
			sum += n
		}
	}

	if sum > mostNames {
		t.Errorf("the public packages export %d names, %d are allowed: make some of them private. "+
			"Each package has: %v", sum, mostNames, perFolder)
	}
}

// isPublic reports whether other programs may import the package in a folder.
func isPublic(folder string) bool {
	first, _, _ := strings.Cut(folder, "/")
	switch {
	case first == "cmd", first == "scripts", first == "examples", strings.HasPrefix(folder, "images/go/"):
		return false
	}
	return !slices.Contains(strings.Split(folder, "/"), "internal")
}

// exportedNames returns the exported top-level names of a file, and the methods of exported
// types as Type.Method.
func exportedNames(syntax *ast.File) []string {
	var all []string
	for _, decl := range syntax.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			if d.Name.IsExported() && receiverIsExported(d) {
				all = append(all, d.Name.Name)
			}
		case *ast.GenDecl:
			for _, name := range declaredNames(d) {
				if name.IsExported() {
					all = append(all, name.Name)
				}
			}
		}
	}
	return all
}

// declaredNames returns the names declared by a declaration of constants, variables or types.
func declaredNames(d *ast.GenDecl) []*ast.Ident {
	var all []*ast.Ident
	for _, spec := range d.Specs {
		switch s := spec.(type) {
		case *ast.TypeSpec:
			all = append(all, s.Name)
		case *ast.ValueSpec:
			all = append(all, s.Names...)
		}
	}
	return all
}

func TestExportedNamesAreCounted(t *testing.T) {
	const source = `package p
const A, b = 1, 2
type T[P any] struct{ Field int }
func (*T[P]) Method() {}
func (t) Method() {}
type t struct{}
func F() {}
`
	got := exportedNames(parseSource(t, source))
	if want := []string{"A", "T", "Method", "F"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestPublicSignaturesUseNoInternalType(t *testing.T) {
	for _, p := range loadPublicPackages(t) {
		folder := folderOf(p.Path())
		for _, leak := range findLeaks(p) {
			t.Errorf("%s: %s, a type that other programs cannot name", folder, leak)
		}
	}
}

// folderOf returns the folder of a package of this module.
func folderOf(importPath string) string {
	folder := strings.TrimPrefix(strings.TrimPrefix(importPath, module), "/")
	if folder == "" {
		return "."
	}
	return folder
}

// loadPublicPackages returns the types of the public packages. It loads them from the compiler's
// cache, so nothing is compiled twice.
func loadPublicPackages(t *testing.T) []*types.Package {
	t.Helper()

	list := exec.CommandContext(t.Context(), "go", "list", "-export", "-deps", "-json=ImportPath,Export", "./...")
	list.Dir = top
	list.Env = append(os.Environ(), "CGO_ENABLED=0") // like `make build`, even under `make race`
	list.Stderr = os.Stderr
	out, err := list.Output()
	if err != nil {
		t.Fatalf("cannot list the packages: %v", err)
	}

	exports := map[string]string{}
	var public []string
	for decoder := json.NewDecoder(bytes.NewReader(out)); ; {
		var p struct{ ImportPath, Export string }
		if err := decoder.Decode(&p); err == io.EOF {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		exports[p.ImportPath] = p.Export
		if (p.ImportPath == module || strings.HasPrefix(p.ImportPath, module+"/")) && isPublic(folderOf(p.ImportPath)) {
			public = append(public, p.ImportPath)
		}
	}

	from := importer.ForCompiler(token.NewFileSet(), "gc", func(path string) (io.ReadCloser, error) {
		return os.Open(exports[path])
	})
	all := make([]*types.Package, len(public))
	for i, path := range public {
		if all[i], err = from.Import(path); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// findLeaks describes the public declarations of a package that use a type of an internal
// package of this module.
func findLeaks(p *types.Package) []string {
	s := search{own: p, seen: map[types.Type]bool{}, aliased: map[*types.TypeName]bool{}}
	for _, name := range p.Scope().Names() {
		if object, is := p.Scope().Lookup(name).(*types.TypeName); is && object.Exported() && object.IsAlias() {
			if named, is := types.Unalias(object.Type()).(*types.Named); is {
				s.aliased[named.Obj()] = true
			}
		}
	}
	for _, name := range p.Scope().Names() {
		if object := p.Scope().Lookup(name); object.Exported() {
			s.visitObject(object)
		}
	}
	return s.leaks
}

// search is a search through the public declarations of one package.
type search struct {
	own   *types.Package
	seen  map[types.Type]bool
	leaks []string
	// aliased are the types that the package exports under another name.
	aliased map[*types.TypeName]bool
}

// visitObject checks the type of an exported name, and everything reachable from that type.
func (s *search) visitObject(object types.Object) {
	if name, ok := object.(*types.TypeName); ok && name.IsAlias() {
		s.visit(object.Name(), types.Unalias(object.Type()))
		return
	}
	s.visit(object.Name(), object.Type())
}

// visit follows a type. where describes how it was reached.
func (s *search) visit(where string, t types.Type) {
	if t == nil || s.seen[t] {
		return
	}

	switch t := t.(type) {
	case *types.Alias:
		s.check(where, t.Obj())
		s.visit(where, t.Rhs())
	case *types.Named:
		s.visitNamed(where, t)
	case *types.Map:
		s.visit(where, t.Key())
		s.visit(where, t.Elem())
	case interface{ Elem() types.Type }: // a pointer, a slice, an array, a channel
		s.visit(where, t.Elem())
	case *types.Signature:
		s.visitTuple(where, t.Params())
		s.visitTuple(where, t.Results())
	case *types.Struct:
		for field := range t.Fields() {
			if field.Exported() || field.Embedded() {
				s.visit(where+"."+field.Name(), field.Type())
			}
		}
	case *types.Interface:
		for method := range t.Methods() {
			if method.Exported() {
				s.visit(where+"."+method.Name(), method.Type())
			}
		}
	}
}

// visitNamed checks a named type and, if it belongs to the package, follows its methods and its
// fields.
func (s *search) visitNamed(where string, t *types.Named) {
	s.check(where, t.Obj())
	for argument := range t.TypeArgs().Types() {
		s.visit(where, argument)
	}
	if t.Obj().Pkg() != s.own {
		return
	}

	s.seen[t] = true
	s.visit(where, t.Underlying())
	for method := range t.Methods() {
		if method.Exported() {
			s.visit(where+"."+method.Name(), method.Type())
		}
	}
}

func (s *search) visitTuple(where string, tuple *types.Tuple) {
	for v := range tuple.Variables() {
		s.visit(where, v.Type())
	}
}

// check records a type of an internal package of this module.
func (s *search) check(where string, name *types.TypeName) {
	p := name.Pkg()
	if p == nil || p == s.own || !strings.HasPrefix(p.Path()+"/", module+"/") {
		return
	}
	if s.aliased[name] || isPublic(folderOf(p.Path())) {
		return
	}
	s.leaks = append(s.leaks, fmt.Sprintf("%s uses %s.%s", where, folderOf(p.Path()), name.Name()))
}

func TestLeaksAreFound(t *testing.T) {
	inner := types.NewPackage(module+"/internal/inner", "inner")
	hidden := types.NewNamed(types.NewTypeName(token.NoPos, inner, "Hidden", nil), types.NewStruct(nil, nil), nil)
	outer := types.NewPackage(module+"/outer", "outer")

	private := types.NewField(token.NoPos, outer, "private", hidden, false)
	field := types.NewField(token.NoPos, outer, "Field", types.NewSlice(hidden), false)
	for name, c := range map[string]struct {
		declared types.Type
		want     []string
	}{
		"Field":   {types.NewStruct([]*types.Var{field}, nil), []string{"Field.Field uses internal/inner.Hidden"}},
		"Private": {types.NewStruct([]*types.Var{private}, nil), nil},
		"Pointer": {types.NewPointer(hidden), []string{"Pointer uses internal/inner.Hidden"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := search{own: outer, seen: map[types.Type]bool{}}
			s.visitObject(types.NewVar(token.NoPos, outer, name, c.declared))
			if !slices.Equal(s.leaks, c.want) {
				t.Errorf("%s: %q, want %q", name, s.leaks, c.want)
			}
		})
	}
}

func TestEveryPublicPackageHasARunnableExample(t *testing.T) {
	has := map[string]bool{}
	for _, f := range goFiles(t) {
		if isPublic(f.folder()) {
			has[f.folder()] = has[f.folder()] || f.test && hasExample(f.syntax)
		}
	}

	for folder, ok := range has {
		if !ok {
			t.Errorf("%s has no runnable example: write func Example in %s with an // Output: comment",
				folder, filepath.Join(folder, "example_test.go"))
		}
	}
}

// hasExample reports whether a file has an example that `go test` runs.
func hasExample(syntax *ast.File) bool {
	for _, decl := range syntax.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || f.Recv != nil || !strings.HasPrefix(f.Name.Name, "Example") {
			continue
		}
		for _, comment := range syntax.Comments {
			if f.Body.Pos() < comment.Pos() && comment.End() < f.Body.End() && isOutput(comment.Text()) {
				return true
			}
		}
	}
	return false
}

// isOutput reports whether a comment states what an example prints.
func isOutput(text string) bool {
	text = strings.ToLower(text)
	return strings.HasPrefix(text, "output:") || strings.HasPrefix(text, "unordered output:")
}

func TestExamplesMustRun(t *testing.T) {
	for source, want := range map[string]bool{
		"package p\nfunc Example() {\n\t// Output: 1\n}\n":  true,
		"package p\nfunc Example() {\n\t// no output\n}\n":  false,
		"package p\nfunc TestIt() {\n\t// Output: 1\n}\n":   false,
		"package p\nfunc ExampleT() {\n}\n// Output: far\n": false,
	} {
		t.Run(source, func(t *testing.T) {
			if hasExample(parseSource(t, source)) != want {
				t.Errorf("an example that runs: want %v of\n%s", want, source)
			}
		})
	}
}
