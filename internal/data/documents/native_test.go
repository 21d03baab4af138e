package documents_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/rlmhq/rlm/internal/data/documents"
	"github.com/rlmhq/rlm/internal/testing/documenttruth"
)

// TestTextsAreThoseOfOtherTools creates documents with the tools that people use, and compares the
// results with what these tools read from them.
func TestTextsAreThoseOfOtherTools(t *testing.T) {
	dir, all := documenttruth.Make(t, "../../../scripts")
	count := 0
	kinds := map[string]documents.Kind{
		".pdf": documents.PDF, ".eml": documents.Mail, ".mbox": documents.Mailbox, ".html": documents.HTML,
		".ipynb": documents.Notebook, ".rtf": documents.RTF, ".xls": documents.OLE,
	}
	for name, want := range all {
		if want.Type != "" {
			continue
		}
		count++
		t.Run(name, func(t *testing.T) {
			kind, ok := kinds[filepath.Ext(name)]
			if !ok {
				kind = documents.Zip
			}
			checkTruth(t, kind, filepath.Join(dir, name), want)
		})
	}
	if count < 23 {
		t.Errorf("there are %d documents only", count)
	}
}

func checkTruth(t *testing.T, kind documents.Kind, path string, want documenttruth.File) {
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
