package documents_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/rlmhq/rlm/internal/documents"
)

// nativePython names a Python with the packages of scripts/documents/requirements.txt.
const nativePython = "RLM_DOCUMENTS_PYTHON"

// truth is what the tool that made a file reads in it.
type truth struct {
	Texts   []string
	Parts   int
	Problem string
}

// TestTextsAreThoseOfOtherTools makes documents with the tools that people use, and compares
// with what these tools read in them.
func TestTextsAreThoseOfOtherTools(t *testing.T) {
	python := os.Getenv(nativePython)
	if python == "" {
		t.Skip(nativePython + " names no Python with the tools")
	}
	dir := t.TempDir()
	command := exec.CommandContext(t.Context(), python, "../../scripts/documents/make.py", dir)
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	data, err := os.ReadFile(filepath.Join(dir, "truth.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]truth
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	if len(all) < 17 {
		t.Errorf("there are %d files only", len(all))
	}

	kinds := map[string]documents.Kind{
		".pdf": documents.PDF, ".eml": documents.Mail, ".mbox": documents.Mailbox, ".html": documents.HTML,
		".ipynb": documents.Notebook, ".rtf": documents.RTF, ".xls": documents.OLE,
	}
	for name, want := range all {
		t.Run(name, func(t *testing.T) {
			kind, ok := kinds[filepath.Ext(name)]
			if !ok {
				kind = documents.Zip
			}
			checkTruth(t, kind, filepath.Join(dir, name), want)
		})
	}
}

func checkTruth(t *testing.T, kind documents.Kind, path string, want truth) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	text, about, err := convert(t, kind, data)

	if want.Problem != "" {
		problem, ok := errors.AsType[*documents.ProblemError](err)
		isEncrypted := ok && problem.Kind == documents.Encrypted
		isEmpty := ok && problem.Kind == documents.NoText
		if isEncrypted != (want.Problem == "encrypted") || isEmpty != (want.Problem == "no text") {
			t.Errorf("%v, want %s", err, want.Problem)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	checkOrder(t, text, want.Texts)
	if want.Parts > 0 && len(about.Parts) != want.Parts {
		t.Errorf("%d parts, want %d", len(about.Parts), want.Parts)
	}
}
