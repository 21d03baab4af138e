package loops

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
)

// TestARecordLosesOnlyItsCutLine reads the record of a killed run. It also checks that links out of
// the folder are refused.
func TestARecordLosesOnlyItsCutLine(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"run/events.jsonl":              `{"kind": "run_started"}` + "\n" + `{"kind": "repl`,
		"run/trajectory.jsonl":          `{"type": "metadata"}`,
		"run/sub_0001/trajectory.jsonl": `{"type": "metadata"}` + "\n" + `{"type": "iteration"}` + "\n",
		"outside.json":                  `{"reasoning": "r"}`,
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	run := filepath.Join(dir, "run")
	found, err := collectTraces(&cli.Env{}, []string{run}, maxTrace)
	if err != nil {
		t.Fatal(err)
	}
	lines := []string{
		`{"kind": "run_started"}`, `{"type": "metadata"}`, `{"type": "metadata"}`,
		`{"type": "iteration"}`, "",
	}
	if len(found.sources) != 1 || found.sources[0].text != strings.Join(lines, "\n") {
		t.Errorf("the record is read as %q", found.sources)
	}
	if want := []string{run + ": the last line is incomplete and was skipped"}; !slices.Equal(found.notes, want) {
		t.Errorf("the notes are %q", found.notes)
	}

	links := filepath.Join(dir, "links")
	if err := os.Mkdir(links, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(dir, "outside.json"), filepath.Join(links, "in.json")); err != nil {
		t.Skipf("the system makes no links: %v", err)
	}
	if found, err := collectTraces(&cli.Env{}, []string{links}, maxTrace); err == nil {
		t.Errorf("a link leads to %q", found.sources)
	}
}
