package archtest

import (
	"bytes"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestBuiltFilesAreExplained checks that each file that is not text is named in the README of its
// folder, and marked as binary in .gitattributes.
func TestBuiltFilesAreExplained(t *testing.T) {
	marks := readAttributes(t)
	found := 0
	for _, name := range files(t) {
		text, err := os.ReadFile(filepath.Join(top, name))
		if err != nil {
			t.Fatal(err)
		}
		if bytes.IndexByte(text, 0) < 0 || isExpectedOrFound(name) {
			continue
		}

		found++
		if !slices.Contains(marks.of(name), "binary") {
			t.Errorf("%s is not marked as binary in .gitattributes", name)
		}
		readme := path.Join(path.Dir(name), "README.md")
		says, err := os.ReadFile(filepath.Join(top, readme))
		if err != nil || !strings.Contains(string(says), "`"+path.Base(name)+"`") {
			t.Errorf("%s must say what %s is, and how to rebuild and verify it", readme, path.Base(name))
		}
	}
	if found == 0 {
		t.Error("no binary file was found")
	}
}

// isExpectedOrFound reports whether a binary file is the expected output of a test, an input found
// by fuzzing, or a leftover of a Python import.
func isExpectedOrFound(name string) bool {
	return strings.HasSuffix(name, ".stdout") || strings.Contains(name, "testdata/fuzz/") ||
		strings.Contains(name, "__pycache__/")
}

// TestGeneratedFilesAreMarked checks the marks of generated files, which reviews skip.
func TestGeneratedFilesAreMarked(t *testing.T) {
	marks := readAttributes(t)
	var generated []string
	for _, f := range goFiles(t) {
		if f.generated {
			generated = append(generated, f.path)
		} else if slices.Contains(marks.of(f.path), "linguist-generated") {
			t.Errorf("%s is marked as generated in .gitattributes, but does not say so", f.path)
		}
	}
	for _, name := range files(t) {
		if strings.HasPrefix(name, "docs/generated/") || path.Base(name) == "Cargo.lock" {
			generated = append(generated, name)
		}
	}

	for _, name := range generated {
		if !slices.Contains(marks.of(name), "linguist-generated") {
			t.Errorf("%s is not marked as linguist-generated in .gitattributes", name)
		}
	}
}

// attributes are the lines of .gitattributes.
type attributes []struct {
	pattern *regexp.Regexp
	words   []string
}

// readAttributes reads .gitattributes.
func readAttributes(t *testing.T) attributes {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(top, ".gitattributes"))
	if err != nil {
		t.Fatal(err)
	}
	return parseAttributes(string(text))
}

// parseAttributes parses the lines of a .gitattributes.
func parseAttributes(text string) attributes {
	var all attributes
	for line := range strings.Lines(text) {
		words := strings.Fields(line)
		if len(words) < 2 || strings.HasPrefix(words[0], "#") {
			continue
		}

		pattern := strings.NewReplacer(`\*\*/`, `(?:.*/)?`, `/\*\*`, `/.*`, `\*`, `[^/]*`).
			Replace(regexp.QuoteMeta(words[0]))
		if !strings.Contains(words[0], "/") {
			pattern = `(?:.*/)?` + pattern
		}
		all = append(all, struct {
			pattern *regexp.Regexp
			words   []string
		}{regexp.MustCompile("^" + pattern + "$"), words[1:]})
	}
	return all
}

// of returns the attributes of a file. An attribute -x in a later line removes x, and text removes
// binary.
func (a attributes) of(name string) []string {
	var all []string
	for _, line := range a {
		if !line.pattern.MatchString(name) {
			continue
		}
		for _, word := range line.words {
			taken := strings.TrimPrefix(word, "-")
			if word == "text" {
				taken = "binary"
			}

			if taken != word {
				all = slices.DeleteFunc(all, func(other string) bool { return other == taken })
			}
			if taken == word || word == "text" {
				all = append(all, word)
			}
		}
	}
	return all
}

func TestAttributesAreFound(t *testing.T) {
	marks := parseAttributes("# all\n* text=auto\n*.zst binary\n**/testdata/** text\na/b/** x\n" +
		"a/b/d -x\n**/testdata/*.bin binary\n")
	for name, want := range map[string]string{
		"a.go":                "[text=auto]",
		"a/code.zst":          "[text=auto binary]",
		"testdata/c/code.zst": "[text=auto text]",
		"c/testdata/d.bin":    "[text=auto text binary]",
		"a/b/c/d":             "[text=auto x]",
		"a/b/d":               "[text=auto]",
	} {
		if got := fmt.Sprint(marks.of(name)); got != want {
			t.Errorf("%s has %s, want %s", name, got, want)
		}
	}
}
