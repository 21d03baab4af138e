package run_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
)

// TestCompatibility plays programs in the style of other libraries.
func TestCompatibility(t *testing.T) {
	files, err := filepath.Glob("testdata/compat/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("there are no files: %v", err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txtar"), func(t *testing.T) {
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			play(t, archive)
		})
	}
}
