package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// underRace is a call that leaves a test out of a run with the race detector.
var underRace = regexp.MustCompile(`\bskip\.UnderRace\(|//go:build !race`)

// TestWhatTheRaceDetectorSkipsRunsWithoutIt compares the tests that skip under the race
// detector with the folders that make unraced tests: otherwise no run would have them.
func TestWhatTheRaceDetectorSkipsRunsWithoutIt(t *testing.T) {
	makefile, err := os.ReadFile(filepath.Join(top, "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	folders := unracedFolders(string(makefile))
	if len(folders) == 0 {
		t.Fatal("the Makefile sets no UNRACED")
	}

	for _, f := range goFiles(t) {
		if f.test && f.folder() != "internal/archtest" && underRace.MatchString(f.text) && !liesBelow(f.path, folders) {
			t.Errorf("%s skips under the race detector, and no folder of UNRACED in the Makefile has it", f.path)
		}
	}
}

// unracedFolders returns the folders that make unraced tests.
func unracedFolders(makefile string) []string {
	var all []string
	for line := range strings.Lines(makefile) {
		if list, ok := strings.CutPrefix(line, "UNRACED := "); ok {
			for _, pattern := range strings.Fields(list) {
				all = append(all, strings.TrimSuffix(strings.TrimPrefix(pattern, "./"), "..."))
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
	folders := unracedFolders("X := 1\nUNRACED := ./tiers/... ./scripts/wasm/...\n")
	if !liesBelow("tiers/wasm/a_test.go", folders) || liesBelow("repl/a_test.go", folders) {
		t.Errorf("%q", folders)
	}
}
