package run_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestCompatibility plays programs in the style of other libraries.
func TestCompatibility(t *testing.T) {
	playAll(t, "testdata/compat")
}

// libraries are the keys of testdata/compat.txt, and the names of the libraries on the page.
var libraries = [][2]string{
	{"official", "The official library, alexzhang13/rlm"},
	{"dspy", "dspy.RLM"},
	{"recursive-llm", "recursive-llm, ysz/recursive-llm"},
	{"fast-rlm", "fast-rlm, avbiswas/fast-rlm"},
	{"rlm-go", "rlm-go, XiaoConstantine/rlm-go"},
}

const compatHead = `# Compatibility

This page compares five other libraries of recursive language models with ` + "`rlm`" + `. Each
row names a feature of another library. The column "here" says whether ` + "`rlm`" + ` has the same
feature, a different one, or none (missing). For each row marked "same", a test proves
that ` + "`rlm`" + ` behaves like the other library. ` + "`go test ./repl/run -run Compat -update`" + `
generates this page from ` + "`repl/run/testdata/compat.txt`" + `.
`

// compatPage is generated.
const compatPage = "../../docs/generated/compat.md"

// TestTheCompatibilityPage generates docs/generated/compat.md and checks that the tests it names
// exist.
func TestTheCompatibilityPage(t *testing.T) {
	text, err := os.ReadFile("testdata/compat.txt")
	if err != nil {
		t.Fatal(err)
	}
	tables, named := map[string]string{}, map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line == "" || line[0] == '#' {
			continue
		}
		cells := strings.Split(line, " |")
		if len(cells) != 4 {
			t.Fatalf("a row has %d cells, want 4: %s", len(cells), line)
		}
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}

		status, why, explained := strings.Cut(cells[2], ": ")
		known := slices.Contains([]string{"same", "different", "missing"}, status)
		if !known || (status == "same") == explained || status == "same" && cells[3] == "" {
			t.Errorf("a row needs a status, the reason unless it is the same, and the test if it is: %s", line)
		}
		if explained {
			status += ": " + why
		}
		named[cells[3]] = true
		tables[cells[0]] += fmt.Sprintf("| %s | %s | %s |\n", cells[1], status, linkTest(t, cells[3]))
	}

	checkAllPlayed(t, named)
	var page bytes.Buffer
	page.WriteString(compatHead)
	for _, library := range libraries {
		fmt.Fprintf(&page, "\n## %s\n\n| there | here | test |\n| --- | --- | --- |\n%s",
			library[1], tables[library[0]])
		delete(tables, library[0])
	}
	if len(tables) > 0 {
		t.Errorf("rows of unknown libraries: %v", tables)
	}
	if *update {
		if err := os.WriteFile(compatPage, page.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if written, err := os.ReadFile(compatPage); err != nil || !bytes.Equal(written, page.Bytes()) {
		t.Errorf("docs/generated/compat.md is out of date: run with -update (%v)", err)
	}
}

// checkAllPlayed reports the programs that no row names.
func checkAllPlayed(t *testing.T, named map[string]bool) {
	t.Helper()
	files, err := filepath.Glob("testdata/compat/*.txtar")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if name := "compat/" + strings.TrimSuffix(filepath.Base(file), ".txtar"); !named[name] {
			t.Errorf("no row of compat.txt has the test %s", name)
		}
	}
}

// linkTest returns the link to a test, which must exist.
func linkTest(t *testing.T, test string) string {
	t.Helper()
	if test == "" {
		return ""
	}
	path, function, _ := strings.Cut(test, " ")
	switch {
	case function != "":
	case strings.HasSuffix(path, ".txtar"):
		function = strings.TrimSuffix(filepath.Base(path), ".txtar")
	default:
		function, path = filepath.Base(path), "repl/run/testdata/"+path+".txtar"
	}

	data, err := os.ReadFile(filepath.Join("../..", path))
	if err != nil {
		t.Errorf("a row names a test that is not there: %v", err)
	}
	if strings.HasSuffix(path, ".go") && !bytes.Contains(data, []byte("func "+function+"(t *testing.T)")) {
		t.Errorf("%s has no %s", path, function)
	}
	return fmt.Sprintf("[%s](../../%s)", function, path)
}
