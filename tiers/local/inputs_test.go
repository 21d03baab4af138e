//go:build unix

package local_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/local"
	"github.com/rlmhq/rlm/tiers/tiertest"
)

func TestALongTextHasAFileInTheJail(t *testing.T) {
	tier := usual(t)
	content := strings.Repeat("a line of text\n", 1_000_000)
	for _, row := range []struct {
		mode os.FileMode
		want string
	}{{0o644, "/context/1 15000000 True\nrefused\nrefused\nNone\n"}, {
		0o600,
		"None\n",
	}} {
		path := filepath.Join(t.TempDir(), "long.txt")
		if err := os.WriteFile(path, []byte(content), row.mode); err != nil {
			t.Fatal(err)
		}
		text, err := bigtext.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = text.Close() })
		b := box(
			t, tier, tiers.Config{Inputs: []tiers.Input{{Value: tiers.Value(`1`)}, {Text: text}}},
		)
		r := run(t, b, `import os, subprocess
p = context_1.path
if p:
    n = subprocess.run(['wc', '-c', p], capture_output=True, text=True).stdout.split()[0]
    print(p, n, open(p).read(100) == context_1[:100])
    for f in (lambda: open(p, 'a'), lambda: os.listdir('/context')):
        try: f()
        except OSError: print('refused')
    print(context_1[5:].path)
else:
    print(p)`)
		if os.Getuid() != 0 && row.mode == 0o600 {
			continue // its owner can read it
		}
		if r.Stdout != row.want {
			t.Errorf("mode %o: %q %+v", row.mode, r.Stdout, r.Exception)
		}
	}
}

// TestANoteNamesTextsThatAreNoStr checks that the note appears once, when a snippet first does more
// than call methods that the host answers.
func TestANoteNamesTextsThatAreNoStr(t *testing.T) {
	tier := newTier(t, local.Options{Python: os.Getenv("RLM_PYTHON"), Warm: -1, AllowNested: true})
	tiertest.Require(t, local.Name, tier.Probe(t.Context()))
	path := filepath.Join(t.TempDir(), "long.txt")
	if err := os.WriteFile(path, []byte(strings.Repeat("a line of text\n", 1_000_000)), 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := bigtext.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = text.Close() })

	b := box(t, tier, tiers.Config{Inputs: []tiers.Input{{Text: text}}})
	for i, source := range []string{
		"print(context.count('line'))", "print(context[:6], isinstance(context, str))", "print(context[2:6])",
	} {
		r := run(t, b, source)
		notes := strings.Count(r.Stderr, "note: context is not a real str in this sandbox (this sandbox has no place")
		if i == 1 != (notes == 1) || i != 1 && r.Stderr != "" || r.Exception != nil {
			t.Errorf("%s: %q %+v", source, r.Stderr, r.Exception)
		}
	}
}
