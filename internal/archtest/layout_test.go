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

// topLevel are the patterns of what may lie at the top of the tree.
var topLevel = []string{
	"go.mod", "go.sum", "cmd", "router", "tiers", "repl", "schema", "images", "scripts",
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

// longFiles may be longer than 450 lines, for the reason beside them.
var longFiles = map[string]string{}

func TestFilesAreShort(t *testing.T) {
	needed := map[string]bool{}
	for _, f := range goFiles(t) {
		if f.test || f.lines <= 450 {
			continue
		}
		needed[f.path] = true
		if _, ok := longFiles[f.path]; !ok {
			t.Errorf("%s has %d lines, more than 450: look for a second idea in it", f.path, f.lines)
		}
	}
	reportStale(t, longFiles, needed)
}

// machinePath is a path that exists on one machine only.
var machinePath = regexp.MustCompile(`/(root|home)/[\w.-]+`)

// machinePaths may hold such paths, for the reason beside them.
var machinePaths = map[string]string{}

func TestNoPathOfAMachineIsWritten(t *testing.T) {
	needed := map[string]bool{}
	for _, name := range files(t) {
		text, err := os.ReadFile(filepath.Join(top, name))
		if err != nil {
			t.Fatal(err)
		}
		if isBinary(text) {
			continue
		}
		found := machinePath.Find(text)
		if found == nil {
			continue
		}
		needed[name] = true
		if _, ok := machinePaths[name]; !ok {
			t.Errorf("%s names %s, a path of one machine", name, found)
		}
	}
	reportStale(t, machinePaths, needed)
}

// isBinary reports whether content is no text.
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
