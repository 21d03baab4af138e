package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestTheCopyAnswersAsTheLibrary makes the copy, and runs the tests of package schema with it.
func TestTheCopyAnswersAsTheLibrary(t *testing.T) {
	const top = "../.."
	if err := os.MkdirAll(filepath.Join(top, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	made, err := os.MkdirTemp(filepath.Join(top, "bin"), "lazyinit-") //nolint:usetesting // in the tree
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(made); err != nil {
			t.Error(err)
		}
	})
	folder := filepath.Join("bin", filepath.Base(made))
	if err := write(t.Context(), top, folder); err != nil {
		t.Fatal(err)
	}

	text, err := os.ReadFile(filepath.Join(made, "jsonschema", "draft.go"))
	if err != nil || strings.Contains(string(text), "func init()") {
		t.Errorf("the copy still has a part that runs at the start (%v)", err)
	}
	test := exec.CommandContext(
		t.Context(), "go", "test", "-short", "-vet=off", "-modfile", filepath.Join(folder, "go.mod"), "./schema",
	)
	test.Dir = top
	if out, err := test.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}

func TestAnotherLibraryIsRefused(t *testing.T) {
	for name := range changes {
		if _, err := change(name, "package jsonschema\n"); err == nil {
			t.Errorf("%s without the texts was changed", name)
		}
	}
}
