// Package documenttruth makes files with the tools that people use, and compares texts with what
// these tools read in them.
package documenttruth

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// File is what the tool that made a file reads in it.
type File struct {
	// Texts occur in this order in a document, whose Parts are counted unless it has none.
	Texts []string
	Parts int
	// Problem says why a document has no text: "encrypted" or "no text".
	Problem string
	// Type is the type of a file that is no document, and SHA256 the digest of its text in
	// UTF-8, or of its bytes.
	Type, SHA256 string
	// Rows are those of a table.
	Rows []map[string]any
}

// Make makes the files, and returns their folder and what is known about each. It skips the test
// if no Python has the tools.
func Make(t *testing.T, scripts string) (dir string, files map[string]File) {
	t.Helper()
	const variable = "RLM_DOCUMENTS_PYTHON" // has the packages of scripts/documents/requirements.txt
	python := os.Getenv(variable)
	if python == "" {
		t.Skip(variable + " names no Python with the tools")
	}

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

// FindMissing returns the first text that does not occur in got behind the one before it, and
// what it was looked for in.
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

// Simplify removes what Markdown adds: escapes, emphasis and white space.
func Simplify(text string) string {
	text = strings.NewReplacer(`\`, "", "*", "", "_", "", "&lt;", "<", "&gt;", ">", "&amp;", "&", "<br>", " ").
		Replace(text)
	return strings.Join(strings.Fields(text), " ")
}
