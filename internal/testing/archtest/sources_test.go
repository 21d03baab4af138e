package archtest

import (
	"flag"
	"fmt"
	"go/ast"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write docs/generated/seeds-*.md")

// sources are the documents that the loops are based on, by number.
var sources = map[string]string{
	"000": "the design of the Recursive Reflector of the Agentic Context Engine",
	"001": "the reference of ReflexionLoop",
	"004": "the reflection actions of The Edge Agent",
}

// sourceMark matches a paragraph in the comment of a test: "Source 001, repl/x.go: sentence".
var sourceMark = regexp.MustCompile(`^Source (\d{3}), (\S+): (.+)$`)

// covered is a sentence of a document, with the code that implements it and the test that
// demonstrates it.
type covered struct{ sentence, code, test string }

// TestPagesOfSourcesAreFresh checks the tables of sentences, code and tests, which are generated
// from the comments of the tests. With -update, it writes the pages.
func TestPagesOfSourcesAreFresh(t *testing.T) {
	found := map[string][]covered{}
	for _, f := range goFiles(t) {
		if !f.test {
			continue
		}
		for _, decl := range f.syntax.Decls {
			test, ok := decl.(*ast.FuncDecl)
			if !ok || test.Doc == nil {
				continue
			}
			collectMarks(t, f.path, test, found)
		}
	}

	for number, title := range sources {
		if len(found[number]) == 0 {
			t.Errorf("no test names a sentence of source %s", number)
		}
		name := filepath.Join(top, "docs/generated", "seeds-"+number+".md")
		want := pageOf(number, title, found[number])
		if *update {
			if err := os.WriteFile(name, []byte(want), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		got, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != want {
			t.Errorf("%s is stale: run go test ./internal/testing/archtest -run Sources -update", name)
		}
	}
}

// collectMarks adds the sentences named in the comment of a test.
func collectMarks(t *testing.T, file string, test *ast.FuncDecl, found map[string][]covered) {
	t.Helper()
	for paragraph := range strings.SplitSeq(test.Doc.Text(), "\n\n") {
		text := strings.Join(strings.Fields(paragraph), " ")
		mark := sourceMark.FindStringSubmatch(text)
		if mark == nil {
			continue
		}

		number, code := mark[1], mark[2]
		if sources[number] == "" || !strings.HasPrefix(test.Name.Name, "Test") {
			t.Errorf("%s: %s has a mark of source %s, which is none", file, test.Name.Name, number)
		}
		if _, err := os.Stat(filepath.Join(top, code)); err != nil {
			t.Errorf("%s: %s names code that is not there: %v", file, test.Name.Name, err)
		}
		found[number] = append(found[number], covered{mark[3], code, file + "#" + test.Name.Name})
	}
}

// pageOf returns the page about a document.
func pageOf(number, title string, rows []covered) string {
	var page strings.Builder
	fmt.Fprintf(&page, "# Source %s: sentences, code and tests\n\n", number)
	fmt.Fprintf(&page, "Source %s is %s.\nThe table is generated from the comments of the tests, by\n"+
		"`go test ./internal/testing/archtest -run Sources -update`.\n\n", number, title)
	page.WriteString("| sentence | code | test |\n| --- | --- | --- |\n")

	escape := strings.NewReplacer("|", `\|`, "<", "&lt;", "*", `\*`, "_", `\_`).Replace
	slices.SortStableFunc(rows, func(a, b covered) int { return strings.Compare(a.code, b.code) })
	for _, row := range rows {
		file, test, _ := strings.Cut(row.test, "#")
		fmt.Fprintf(&page, "| %s | [%s](../../%s) | [%s](../../%s) |\n", escape(row.sentence),
			path.Base(row.code), row.code, test, file)
	}
	return page.String()
}
