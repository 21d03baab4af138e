// Package documenttruth creates files with commonly used tools, and compares rlm's reading of the
// files with that of the tools.
package documenttruth

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// File describes a file as read by the tool that made it.
type File struct {
	// Texts occur in this order in a document. Parts is the number of its parts, or 0.
	Texts []string
	Parts int
	// Problem is the reason why a document has no text: "encrypted" or "no text".
	Problem string
	// Type is the type of a file that is not a document, and SHA256 the digest of the file's text
	// in UTF-8, or of its bytes.
	Type, SHA256 string
	// Rows are the rows of a table.
	Rows []map[string]any
}

// Make creates the files, and returns their folder and their descriptions. It skips the test if no
// Python with the tools is available.
func Make(t *testing.T, scripts string) (dir string, files map[string]File) {
	t.Helper()
	python := findPython(t)
	dir = filepath.Join(t.TempDir(), "files")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	command := exec.CommandContext(t.Context(), python, filepath.Join(scripts, "documents", "make.py"), dir)
	truth, err := command.Output()
	if err != nil {
		t.Fatalf("%v: %s", err, command.Stderr)
	}
	if err := json.Unmarshal(truth, &files); err != nil {
		t.Fatal(err)
	}
	return dir, files
}

// findPython returns a Python with the packages of scripts/documents/requirements.txt.
func findPython(t *testing.T) string {
	t.Helper()
	const variable = "RLM_DOCUMENTS_PYTHON"
	python := os.Getenv(variable)
	if python == "" {
		t.Skip(variable + " names no Python with the tools")
	}
	return python
}

// FindMissing returns the first text that does not occur in got after the previous one, and the
// part of got that was searched.
func FindMissing(got string, texts []string) (missing, rest string) {
	rest = Simplify(got)
	for _, want := range texts {
		_, after, ok := strings.Cut(rest, Simplify(want))
		if !ok {
			return want, rest
		}
		rest = after
	}
	return "", rest
}

// Simplify removes everything that Markdown adds: escapes, emphasis and white space.
func Simplify(text string) string {
	text = strings.NewReplacer(`\`, "", "*", "", "_", "", "&lt;", "<", "&gt;", ">", "&amp;", "&", "<br>", " ").
		Replace(text)
	return strings.Join(strings.Fields(text), " ")
}
