package archtest

import (
	"go/ast"
	"go/token"
	"testing"
)

func TestEveryPackageHasAComment(t *testing.T) {
	documented := map[string]bool{}
	for _, f := range goFiles(t) {
		if !f.test {
			documented[f.folder()] = documented[f.folder()] || f.syntax.Doc != nil
		}
	}
	for folder, ok := range documented {
		if !ok {
			t.Errorf("the package in %s has no package comment", folder)
		}
	}
}

func TestEveryTierAndToolHasAReadme(t *testing.T) {
	for _, parent := range []string{"tiers", "repl/tools"} {
		t.Run(parent, func(t *testing.T) {
			for _, name := range folders(t, parent) {
				folder := parent + "/" + name
				if folder != suite && name != "testdata" && !exists(folder+"/README.md") {
					t.Errorf("%s has no README.md", folder)
				}
			}
		})
	}
}

func TestEveryPublicNameIsDocumented(t *testing.T) {
	for _, f := range goFiles(t) {
		if f.test || !isPublic(f.folder()) {
			continue
		}
		for _, decl := range f.syntax.Decls {
			for _, name := range undocumented(decl) {
				t.Errorf("%s: %s has no comment", f.path, name)
			}
		}
	}
}

// undocumented returns the exported names in a declaration that have no comment, not even on their
// group.
func undocumented(decl ast.Decl) []string {
	switch d := decl.(type) {
	case *ast.FuncDecl:
		if d.Doc == nil && d.Name.IsExported() && receiverIsExported(d) {
			return []string{d.Name.Name}
		}
	case *ast.GenDecl:
		if d.Doc != nil && d.Tok != token.TYPE {
			return nil
		}
		var names []string
		for _, spec := range d.Specs {
			names = append(names, undocumentedSpec(spec, d.Doc)...)
		}
		return names
	}
	return nil
}

// receiverIsExported reports whether a function is a method of an exported type, or not a method.
func receiverIsExported(d *ast.FuncDecl) bool {
	if d.Recv == nil {
		return true
	}
	receiver := d.Recv.List[0].Type
	if star, ok := receiver.(*ast.StarExpr); ok {
		receiver = star.X
	}
	if generic, ok := receiver.(*ast.IndexExpr); ok {
		receiver = generic.X
	}
	name, ok := receiver.(*ast.Ident)
	return !ok || name.IsExported()
}

// undocumentedSpec returns the exported names of one specification without a comment.
func undocumentedSpec(spec ast.Spec, group *ast.CommentGroup) []string {
	var names []*ast.Ident
	switch s := spec.(type) {
	case *ast.TypeSpec:
		if s.Doc == nil && s.Comment == nil && group == nil {
			names = []*ast.Ident{s.Name}
		}
	case *ast.ValueSpec:
		if s.Doc == nil && s.Comment == nil {
			names = s.Names
		}
	}
	var exported []string
	for _, name := range names {
		if name.IsExported() {
			exported = append(exported, name.Name)
		}
	}
	return exported
}
