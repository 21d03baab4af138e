package session

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/tiers"
)

// TestFingerprintsDiffer checks that configurations that differ in any part have different
// fingerprints.
func TestFingerprintsDiffer(t *testing.T) {
	text := func(content string) tiers.Config {
		path := filepath.Join(t.TempDir(), "name")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		opened, err := bigtext.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = opened.Close() })
		return tiers.Config{Inputs: []tiers.Input{{Name: "name", Text: opened}}}
	}
	folder := func(name, content string) tiers.Config {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		opened, err := bigtext.OpenDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = opened.Close() })
		return tiers.Config{Inputs: []tiers.Input{{Name: "name", Dir: opened}}}
	}
	value := func(name, value string) tiers.Config {
		return tiers.Config{Inputs: []tiers.Input{{Name: name, Value: tiers.Value(value)}}}
	}
	packages := func(name, content string) tiers.Config {
		return tiers.Config{Packages: fstest.MapFS{name: {Data: []byte(content)}}}
	}
	function := func(name, doc string) tiers.Config {
		return tiers.Config{Functions: []tiers.Function{{Name: name, Doc: doc}}}
	}
	long := strings.Repeat("x", LongText+1)

	seen := map[string]string{}
	for name, cfg := range map[string]tiers.Config{
		"empty":  {},
		"files":  {Out: true},
		"memory": {Limits: tiers.Limits{Memory: 300 << 20}},

		"text":          text("one"),
		"another text":  text("two"),
		"a long text":   text(long),
		"a longer text": text(long + "x"),

		"folder":               folder("a", "one"),
		"file of another name": folder("b", "one"),
		"file of another size": folder("a", "1"),

		"value":         value("a", "[1]"),
		"another value": value("a", "[2]"),
		"another name":  value("b", "[1]"),

		"packages":        packages("a.py", "a = 1"),
		"another package": packages("b.py", "a = 1"),
		"another version": packages("a.py", "a = 2"),

		"function":            function("ask", "It asks."),
		"another description": function("ask", "It pays."),
	} {
		found := ""
		for range 2 {
			a, err := NewAccounts(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			for range 2 {
				again, err := a.Fingerprint(t.Context())
				if err != nil || found != "" && found != again {
					t.Errorf("%s: %s, then %s, %v", name, found, again, err)
				}
				found = again
			}
		}
		if other, isKnown := seen[found]; isKnown {
			t.Errorf("%s and %s have one fingerprint", name, other)
		}
		seen[found] = name
	}
}

// TestALargeConfigurationHasNoFingerprint checks that a configuration has no fingerprint if reading
// it would take too long.
func TestALargeConfigurationHasNoFingerprint(t *testing.T) {
	files := fstest.MapFS{"a.py": {Data: make([]byte, mostCompared/2)}, "b.py": {Data: make([]byte, mostCompared/2)}}
	a, err := NewAccounts(t.Context(), tiers.Config{Packages: files})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := a.Fingerprint(t.Context()); err == nil || !strings.Contains(err.Error(), "more than 64 MiB") {
		t.Error(err)
	}
}
