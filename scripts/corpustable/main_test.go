package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/testing/testcache"
)

// TestTheDocumentHasTheTable checks that the table in docs/reference/performance.md is up to date.
func TestTheDocumentHasTheTable(t *testing.T) {
	counted, err := count(t.Context(), testcache.Dir())
	if err != nil {
		t.Fatal(err)
	}
	document, err := os.ReadFile(filepath.FromSlash("../../docs/reference/performance.md"))
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(document), counted.String()) {
		t.Errorf("docs/reference/performance.md does not have the table that"+
			" scripts/run.sh corpustable prints:\n%s", counted)
	}
}

// TestTheCorpusIsLargeAndMostlyRoutedRight bounds the number of errors.
func TestTheCorpusIsLargeAndMostlyRoutedRight(t *testing.T) {
	counted, err := count(t.Context(), testcache.Dir())
	if err != nil {
		t.Fatal(err)
	}
	if counted.total < 300 || len(counted.accepts) > counted.total/20 ||
		len(counted.escalations) > counted.total/20 {
		t.Errorf("%v", counted)
	}
}
