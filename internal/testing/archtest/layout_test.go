package archtest

import (
	"bytes"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"testing"
	"unicode/utf8"
)

// topLevel are the patterns of the names allowed in the top folder.
var topLevel = []string{
	"go.mod", "go.sum", "cmd", "router", "tiers", "repl", "graph", "schema", "images", "inputs",
	"standard", "store", "tables", "hook", "server", "mcp", "viewer",
	"scripts", "deploy",
	"Makefile", "internal", "docs", "examples", "bin", "*.md", "LICENSE", "NOTICE",
	"*.go", ".?*",
}

func TestTheTopLevelIsGiven(t *testing.T) {
	entries, err := os.ReadDir(top)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if !matchesAny(t, topLevel, entry.Name()) {
			t.Errorf("%s does not belong at the top of the tree: see docs/architecture.md", entry.Name())
		}
	}
}

// matchesAny reports whether a name matches one of the patterns.
func matchesAny(t *testing.T, patterns []string, name string) bool {
	t.Helper()
	for _, pattern := range patterns {
		ok, err := path.Match(pattern, name)
		if err != nil {
			t.Fatal(err)
		}
		if ok {
			return true
		}
	}
	return false
}

// mostLines bounds the lines of files that are not tests.
const mostLines = 450

func TestFilesAreShort(t *testing.T) {
	for _, f := range goFiles(t) {
		if !f.test && f.lines > mostLines {
			t.Errorf("%s has %d lines, more than %d: look for a second idea in it", f.path, f.lines, mostLines)
		}
	}
}

// machinePath matches a path that exists only on one machine.
var machinePath = regexp.MustCompile(`/(root|home)/[\w.-]+`)

func TestNoPathOfAMachineIsWritten(t *testing.T) {
	for _, name := range files(t) {
		text, err := os.ReadFile(filepath.Join(top, name))
		if err != nil {
			t.Fatal(err)
		}
		if isBinary(text) {
			continue
		}

		if found := machinePath.Find(text); found != nil {
			t.Errorf("%s names %s, a path of one machine", name, found)
		}
	}
}

// isBinary reports whether content is not text.
func isBinary(content []byte) bool {
	return bytes.IndexByte(content, 0) >= 0 || !utf8.Valid(content)
}

func TestNamesSayWhatIsInside(t *testing.T) {
	vague := []string{"utils", "util", "common", "helpers", "types", "models", "misc"}
	for _, f := range goFiles(t) {
		if matchesAny(t, vague, path.Base(f.folder())) {
			t.Errorf("%s lies in a folder whose name says nothing", f.path)
		}
	}
}
