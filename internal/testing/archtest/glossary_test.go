package archtest

import (
	"go/ast"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// glossary is the page with one row for each term.
const glossary = "docs/reference/glossary.md"

// term is a row of the glossary.
type term struct {
	words   []string
	types   []string // as package.Type
	retired []string // words that must not be in any name
}

var (
	bold     = regexp.MustCompile(`\*\*([^*]+)\*\*`)
	typeName = regexp.MustCompile("`([a-z]+)\\.([A-Z]\\w*)`")
)

func readGlossary(t *testing.T) (terms []term) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(top, glossary))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(line, "|")
		if len(cells) < 5 || !strings.HasPrefix(strings.TrimSpace(cells[1]), "**") {
			continue
		}
		var one term
		for _, found := range bold.FindAllStringSubmatch(cells[1], -1) {
			one.words = append(one.words, found[1])
		}
		for _, found := range typeName.FindAllStringSubmatch(cells[2], -1) {
			one.types = append(one.types, found[1]+"."+found[2])
		}
		for _, found := range bold.FindAllStringSubmatch(cells[3], -1) {
			one.retired = append(one.retired, found[1])
		}
		terms = append(terms, one)
	}
	return terms
}

func TestEachWordHasOneRow(t *testing.T) {
	seen := map[string]bool{}
	for _, one := range readGlossary(t) {
		for _, word := range one.words {
			if seen[word] {
				t.Errorf("%s has two rows for %q: give one of the ideas another word", glossary, word)
			}
			seen[word] = true
		}
	}
	if len(seen) < 50 {
		t.Errorf("%s has only %d words: is it read?", glossary, len(seen))
	}
}

func TestTypesHaveTheWordsOfTheGlossary(t *testing.T) {
	declared := map[string]bool{} // types by package.Type
	for _, f := range goFiles(t) {
		for _, decl := range f.syntax.Decls {
			if d, is := decl.(*ast.GenDecl); is && !f.test {
				for _, name := range declaredNames(d) {
					declared[f.syntax.Name.Name+"."+name.Name] = true
				}
			}
		}
	}

	for _, one := range readGlossary(t) {
		for _, name := range one.types {
			method, _, _ := strings.Cut(name, "(")
			if !declared[method] {
				t.Errorf("%s names %s, which does not exist", glossary, name)
			}
		}
		for _, word := range one.retired {
			checkRetired(t, word)
		}
	}
}

// checkRetired fails if the name of a package, a type or a function has a word that the glossary
// retired.
func checkRetired(t *testing.T, word string) {
	t.Helper()
	has := func(name string) bool { return strings.Contains(strings.ToLower(name), word) }
	for _, f := range goFiles(t) {
		if has(path.Base(f.path)) || has(f.syntax.Name.Name) {
			t.Errorf("%s is named by %q, which the glossary retired", f.path, word)
		}
		for _, decl := range f.syntax.Decls {
			var names []*ast.Ident
			switch d := decl.(type) {
			case *ast.FuncDecl:
				names = append(names, d.Name)
			case *ast.GenDecl:
				names = declaredNames(d)
			}
			for _, name := range names {
				if has(name.Name) {
					t.Errorf("%s: %s is named by %q, which the glossary retired", f.path, name.Name, word)
				}
			}
		}
	}
}
