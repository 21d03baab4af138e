//go:build linux && (amd64 || arm64)

package wasm

import (
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
)

var resultsFile = flag.String("results", "", "file of results, by an absolute path: compare with it, or write it")

// TestProcessorsAgree runs snippets in deterministic sessions of engine aot, and compares their
// results, fuel and memory with those of another processor, which wrote the file (make arm64).
// Without the file, it runs them twice.
func TestProcessorsAgree(t *testing.T) {
	got := runAgreeing(t)

	want := got
	if *resultsFile == "" {
		want = runAgreeing(t)
	} else if data, err := os.ReadFile(*resultsFile); err == nil {
		want = strings.SplitAfter(strings.TrimSuffix(string(data), "\n"), "\n")
		want[len(want)-1] += "\n"
	} else if !errors.Is(err, fs.ErrNotExist) {
		t.Fatal(err)
	} else if err := os.WriteFile(*resultsFile, []byte(strings.Join(got, "")), 0o600); err != nil {
		t.Fatal(err)
	}

	if !slices.Equal(got, want) {
		t.Errorf("the results are\n%swant\n%s", strings.Join(got, ""), strings.Join(want, ""))
	}
}

// runAgreeing returns a line for each snippet.
func runAgreeing(t *testing.T) (lines []string) {
	t.Helper()
	e := readyEngineWith(t, engineAOT)
	for _, source := range agreeing {
		r := runOnce(t, e, agreeingConfig, source)
		said := sha256.Sum256([]byte(r.Stdout + "\x00" + r.Stderr + "\x00" + describe(r)))
		lines = append(lines, fmt.Sprintf("%.50q: %s %s, %d fuel, %d bytes, %x\n",
			source, r.Status, r.Limit, r.Usage.Fuel, r.Usage.PeakMemory, said[:8]))
	}
	return lines
}
