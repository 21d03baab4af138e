package archtest

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func TestLinksLeadSomewhere(t *testing.T) {
	pages := readPages(t)
	for name, text := range pages {
		if isTextForModels(name) {
			continue
		}
		for _, problem := range checkLinks(name, text, pages, exists) {
			t.Errorf("%s: %s", name, problem)
		}
	}
}

// readPages returns the text of every Markdown page by its path from the top.
func readPages(t *testing.T) map[string]string {
	t.Helper()
	pages := map[string]string{}
	for _, name := range files(t) {
		if !strings.HasSuffix(name, ".md") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(top, name))
		if err != nil {
			t.Fatal(err)
		}
		pages[name] = string(text)
	}
	return pages
}

var (
	target  = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	scheme  = regexp.MustCompile(`^[a-z]+:`)
	heading = regexp.MustCompile(`(?m)^#+ +(.+)$`)
)

// checkLinks returns what is wrong with the relative links of one page: a file that does not
// exist, or a heading that the other page does not have.
func checkLinks(name, text string, pages map[string]string, exists func(string) bool) []string {
	var problems []string
	for _, found := range target.FindAllStringSubmatch(cutCode(text), -1) {
		to := found[1]
		if scheme.MatchString(to) {
			continue
		}

		file, anchor, _ := strings.Cut(to, "#")
		page := name
		if file != "" {
			page = path.Join(path.Dir(name), file)
		}

		switch {
		case !exists(page):
			problems = append(problems, fmt.Sprintf("the link %s leads to no file", to))
		case anchor != "" && !slices.Contains(listAnchors(pages[page]), anchor):
			problems = append(problems, fmt.Sprintf("%s has no heading #%s", page, anchor))
		}
	}
	return problems
}

// cutCode removes the code blocks of a page.
func cutCode(text string) string {
	var kept strings.Builder
	inCode := false
	for line := range strings.Lines(text) {
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			inCode = !inCode
		} else if !inCode {
			kept.WriteString(line)
		}
	}
	return kept.String()
}

// listAnchors returns the anchors of a page's headings, as GitHub makes them.
func listAnchors(text string) []string {
	var all []string
	for _, found := range heading.FindAllStringSubmatch(cutCode(text), -1) {
		title := regexp.MustCompile(`\[([^\]]*)\]\([^)]*\)`).ReplaceAllString(found[1], "$1")
		title = regexp.MustCompile(`[^\p{L}\p{N}_ -]`).ReplaceAllString(strings.ToLower(title), "")
		all = append(all, strings.ReplaceAll(strings.TrimSpace(title), " ", "-"))
	}
	return all
}

func TestBrokenLinksAreFound(t *testing.T) {
	pages := map[string]string{
		"docs/a.md": "# A\n\n[b](b.md#what-is-in-it) [c](c.md) [b](b.md#nothing) [top](#a) " +
			"[web](https://example.com)\n```\n[not](a-link)\n```\n",
		"docs/b.md": "# B\n\n## What is in `it`?\n",
	}
	got := checkLinks("docs/a.md", pages["docs/a.md"], pages, func(name string) bool {
		return pages[name] != ""
	})
	want := []string{"the link c.md leads to no file", "docs/b.md has no heading #nothing"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// documentPath is the path of a document as comments and messages write it.
var documentPath = regexp.MustCompile(`\bdocs/[\w./-]+\.(?:md|json|svg|png)\b`)

// TestDocumentsInTheCodeExist checks the documents that comments, messages, scripts and
// settings name. Tests make up documents, so they are not read.
func TestDocumentsInTheCodeExist(t *testing.T) {
	for _, name := range files(t) {
		if strings.HasSuffix(name, "_test.go") || strings.Contains(name, "testdata/") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(top, name))
		if err != nil {
			t.Fatal(err)
		}
		if isBinary(text) {
			continue
		}

		for _, document := range documentPath.FindAllString(string(text), -1) {
			if !exists(document) {
				t.Errorf("%s names %s, which does not exist", name, document)
			}
		}
	}
}

// TestTheIndexHasEveryPage: docs/README.md links each page of the shelves, and no report.
func TestTheIndexHasEveryPage(t *testing.T) {
	pages := readPages(t)
	index := pages["docs/README.md"]
	for name := range pages {
		page, ok := strings.CutPrefix(name, "docs/")
		if !ok || page == "README.md" || strings.HasPrefix(page, "pictures/") {
			continue
		}

		isReport := strings.HasPrefix(page, "generated/")
		if isListed := strings.Contains(index, "]("+page+")"); isListed == isReport {
			t.Errorf("docs/README.md must link every page but those in docs/generated: %s", name)
		}
	}
}
