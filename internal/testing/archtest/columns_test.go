package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// The maximum widths of a line, in columns, and the columns of a tab.
const (
	longestCode  = 120
	longestProse = 100
	tabWidth     = 4
)

func TestGoLinesFitOnAScreen(t *testing.T) {
	for _, f := range goFiles(t) {
		if f.generated {
			continue
		}
		for _, n := range findLongLines(f.text, longestCode) {
			t.Errorf("%s:%d is longer than %d columns: wrap it", f.path, n, longestCode)
		}
	}
}

// findLongLines returns the line numbers, from 1, of the lines that exceed a bound.
func findLongLines(text string, bound int) []int {
	var all []int
	n := 0
	for line := range strings.Lines(text) {
		n++
		if countColumns(line) > bound {
			all = append(all, n)
		}
	}
	return all
}

// countColumns returns the width of a line without its end.
func countColumns(line string) int {
	line = strings.TrimRight(line, "\r\n")
	return utf8.RuneCountInString(line) + (tabWidth-1)*strings.Count(line, "\t")
}

func TestLongLinesAreFound(t *testing.T) {
	got := findLongLines(`short
		345678
ääääääää
		3456789
`, 14)
	if fmt.Sprint(got) != "[4]" {
		t.Errorf("lines %d are longer than 14 columns, want line 4", got)
	}
}

func TestProseFitsOnAScreen(t *testing.T) {
	for _, name := range files(t) {
		if !strings.HasSuffix(name, ".md") || isTextForModels(name) {
			continue
		}
		text, err := os.ReadFile(filepath.Join(top, name))
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range findWideProse(string(text), longestProse) {
			t.Errorf("%s:%d is longer than %d columns: wrap it", name, n, longestProse)
		}
	}
}

// isTextForModels reports whether a page is a prompt or test data. The line breaks of such a page
// are part of its content.
func isTextForModels(name string) bool {
	return strings.Contains(name, "/prompts/") || strings.Contains(name, "testdata/")
}

// link matches parts of a line that cannot be wrapped: an image, the target of a link, a URL.
var link = regexp.MustCompile(`!\[[^\]]*\]\([^)\s]+\)|\]\([^)\s]+\)|https?://\S+`)

// findWideProse returns the line numbers of a page's lines that exceed a bound. It ignores tables,
// code blocks and the targets of links.
func findWideProse(text string, bound int) []int {
	var all []int
	n, inCode := 0, false
	for line := range strings.Lines(text) {
		n++
		trimmed := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(trimmed, "```"), strings.HasPrefix(trimmed, "~~~"):
			inCode = !inCode
		case inCode, strings.HasPrefix(trimmed, "|"), strings.HasPrefix(line, "    "):
		case countColumns(link.ReplaceAllString(line, "")) > bound:
			all = append(all, n)
		}
	}
	return all
}

func TestWideProseIsFound(t *testing.T) {
	const page = "12345678901\n| 12345678901 |\n```\n12345678901\n```\n[a](1234567890) b\n1234567890\n"
	if got := findWideProse(page, 10); fmt.Sprint(got) != "[1]" {
		t.Errorf("lines %d are too wide, want line 1", got)
	}
}

// The share of blank lines in the bodies of a package's functions, in per cent. The test skips
// packages with fewer than minBody lines in bodies.
const (
	leastBlank = 4.0
	mostBlank  = 8.0
	minBody    = 100
)

func TestFunctionsHaveAir(t *testing.T) {
	body, blank := map[string]int{}, map[string]int{}
	for _, f := range goFiles(t) {
		if f.test || f.generated {
			continue
		}
		lines, empty := countBodyLines(t, f.text)
		body[f.folder()] += lines
		blank[f.folder()] += empty
	}

	for folder, lines := range body {
		share := 100 * float64(blank[folder]) / float64(lines)
		if lines >= minBody && (share < leastBlank || share > mostBlank) {
			t.Errorf("%s: %.1f %% of the lines in functions are blank, want %g to %g: a blank line separates thoughts",
				folder, share, leastBlank, mostBlank)
		}
	}
}

// countBodyLines counts the lines between the braces of top-level functions, and how many of them
// are blank.
func countBodyLines(t *testing.T, text string) (lines, blank int) {
	t.Helper()
	set := token.NewFileSet()
	syntax, err := parser.ParseFile(set, "", text, parser.SkipObjectResolution)
	if err != nil {
		t.Fatal(err)
	}

	all := strings.Split(text, "\n")
	for _, decl := range syntax.Decls {
		f, ok := decl.(*ast.FuncDecl)
		if !ok || f.Body == nil {
			continue
		}
		from, to := set.Position(f.Body.Lbrace).Line, set.Position(f.Body.Rbrace).Line
		for i := from; i < to-1; i++ {
			lines++
			if strings.TrimSpace(all[i]) == "" {
				blank++
			}
		}
	}
	return lines, blank
}

func TestBodyLinesAreCounted(t *testing.T) {
	lines, blank := countBodyLines(t, "package p\n\nfunc f() {\n\ta()\n\n\tb()\n}\n\nfunc g() { c() }\n")
	if lines != 3 || blank != 1 {
		t.Errorf("%d lines, %d of them blank, want 3 and 1", lines, blank)
	}
}

// mostReadmeWords limits the README to one page, because details belong in docs. Commands and their
// output are not counted.
const mostReadmeWords = 900

func TestReadmeIsShort(t *testing.T) {
	text, err := os.ReadFile(path.Join(top, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	if words := len(strings.Fields(cutCode(string(text)))); words > mostReadmeWords {
		t.Errorf("README.md has %d words, %d are enough: move detail to docs", words, mostReadmeWords)
	}
}
