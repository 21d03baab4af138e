package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The marks of tests that `make test` and `make race` omit: a call in a test, and a condition in a
// script.
var (
	leftOut       = regexp.MustCompile(`\bskip\.Short\(`)
	leftOutScript = regexp.MustCompile(`(?m)^\[short\]`)
)

// TestSlowTestsRunUnraced checks that `make unraced` tests the folders of all slow tests. Otherwise,
// no run would include them.
func TestSlowTestsRunUnraced(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(top, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	folders := unracedFolders(string(makefile))
	if len(folders) == 0 {
		t.Fatal("the Makefile sets no UNRACED")
	}

	for _, name := range testsLeftOut(t) {
		if !liesBelow(name, folders) {
			t.Errorf("make test leaves out a test of %s, and no folder of UNRACED in the Makefile has it", name)
		}
	}
}

// testsLeftOut returns the files with tests that `make test` omits.
func testsLeftOut(t *testing.T) []string {
	t.Helper()
	var all []string
	for _, f := range goFiles(t) {
		if f.test && f.folder() != "internal/testing/archtest" && leftOut.MatchString(f.text) {
			all = append(all, f.path)
		}
	}

	for _, name := range files(t) {
		if !strings.HasSuffix(name, ".txtar") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(top, name))
		if err != nil {
			t.Fatal(err)
		}
		if leftOutScript.Match(text) {
			all = append(all, name)
		}
	}
	return all
}

// unracedFolders returns the folders that `make unraced` tests.
func unracedFolders(makefile string) []string {
	var all []string
	for line := range strings.Lines(makefile) {
		for variable, module := range map[string]string{"UNRACED": "", "UNRACED_SCRIPTS": "scripts/"} {
			list, ok := strings.CutPrefix(line, variable+" := ")
			if !ok {
				continue
			}
			for _, pattern := range strings.Fields(list) {
				all = append(all, module+strings.TrimSuffix(strings.TrimPrefix(pattern, "./"), "..."))
			}
		}
	}
	return all
}

// liesBelow reports whether a path begins with one of the folders.
func liesBelow(name string, folders []string) bool {
	for _, folder := range folders {
		if strings.HasPrefix(name, folder) {
			return true
		}
	}
	return false
}

func TestUnracedFoldersAreRead(t *testing.T) {
	folders := unracedFolders("X := 1\nUNRACED := ./tiers/...\nUNRACED_SCRIPTS := ./wasm/...\n")
	if !liesBelow("tiers/wasm/a_test.go", folders) || !liesBelow("scripts/wasm/a_test.go", folders) ||
		liesBelow("repl/a_test.go", folders) {
		t.Errorf("%q", folders)
	}
}
