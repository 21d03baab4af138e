package config

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the reference into docs/reference/configuration.md")

func TestTheManualHasEverySetting(t *testing.T) {
	const begin, end = "<!-- settings: begin -->\n", "\n<!-- settings: end -->"
	path := filepath.FromSlash("../../../../docs/reference/configuration.md")
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(data), begin)
	got, tail, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has not the marks around the reference", path)
	}
	want := strings.TrimSpace(Manual())
	if *update {
		if err := os.WriteFile(path, []byte(head+begin+want+end+tail), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if got != want {
		t.Errorf("%s is not what the table says:"+
			" go test ./cmd/rlm/internal/config -run TestTheManual -update", path)
	}
}
