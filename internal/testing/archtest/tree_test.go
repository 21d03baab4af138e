package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/testing/skip"
)

const (
	module = "github.com/rlmhq/rlm"
	// top is the top of the tree, relative to this package.
	top = "../../.."
)

// skipped are folders without files of the project.
var skipped = []string{".git", "bin"}

// file is one Go file.
type file struct {
	path      string // relative to the top of the tree
	test      bool
	generated bool
	text      string
	lines     int
	syntax    *ast.File
	imports   []string // the imports from this module, relative to its root
}

// folder returns the folder of the file.
func (f file) folder() string { return path.Dir(f.path) }

// parsed caches the Go files, so that each is parsed only once for all rules.
var parsed []file

// goFiles parses every Go file of the tree, regardless of build constraints.
func goFiles(t *testing.T) []file {
	t.Helper()
	skip.UnderRace(t)
	if parsed != nil {
		return parsed
	}

	for _, name := range files(t) {
		if strings.HasSuffix(name, ".go") && !strings.Contains(name, "testdata/") {
			parsed = append(parsed, parseFile(t, name))
		}
	}
	return parsed
}

// parseFile parses one Go file.
func parseFile(t *testing.T, name string) file {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(top, name))
	if err != nil {
		t.Fatal(err)
	}
	set := token.NewFileSet()
	syntax, err := parser.ParseFile(set, name, text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}

	f := file{
		path:      name,
		test:      strings.HasSuffix(name, "_test.go"),
		generated: ast.IsGenerated(syntax),
		text:      string(text),
		lines:     set.File(syntax.FileStart).LineCount(),
		syntax:    syntax,
	}
	for _, spec := range syntax.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			t.Fatal(err)
		}
		if imported == module {
			f.imports = append(f.imports, ".")
		} else if inner, ok := strings.CutPrefix(imported, module+"/"); ok {
			f.imports = append(f.imports, inner)
		}
	}
	return f
}

// files lists the paths of all regular files of the tree, relative to the top.
func files(t *testing.T) []string {
	t.Helper()
	skip.UnderRace(t)
	var all []string
	err := filepath.WalkDir(top, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		inner, err := filepath.Rel(top, name)
		if err != nil {
			return err
		}
		if entry.IsDir() && slices.Contains(skipped, inner) {
			return filepath.SkipDir
		}
		if entry.Type().IsRegular() {
			all = append(all, filepath.ToSlash(inner))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// folders lists the folders in a folder. A folder that does not exist has none.
func folders(t *testing.T, name string) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(top, name))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	var all []string
	for _, entry := range entries {
		if entry.IsDir() {
			all = append(all, entry.Name())
		}
	}
	return all
}

// exists reports whether a file is in the tree.
func exists(name string) bool {
	_, err := os.Stat(filepath.Join(top, name))
	return err == nil
}

// parseSource parses the source of a file that a test invented.
func parseSource(t *testing.T, source string) *ast.File {
	t.Helper()
	syntax, err := parser.ParseFile(token.NewFileSet(), "made-up.go", source, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	return syntax
}
