package tiersuite

import (
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm/internal/testing/harm"
	"github.com/rlmhq/rlm/internal/testing/skip"
)

// TestHarmOnCPython is the negative control of the hostile snippets that every tier must survive.
// It checks that a session of CPython without a sandbox does not survive them.
func TestHarmOnCPython(t *testing.T) {
	skip.Short(t, "it waits until each attack has done its harm")
	python := skip.WithoutCPython(t)
	for group, attacks := range harmful {
		for _, a := range attacks {
			t.Run(group+"/"+a.name, func(t *testing.T) {
				t.Parallel()
				wall := 30 * time.Second // snippets that end by themselves depend on the speed of the machine
				if harm.Alike(a.harm, harm.Hangs) {
					wall = time.Second
				}
				if kind, said := harm.WatchPython(t, python, a.source, wall); !harm.Alike(kind, a.harm) {
					t.Errorf("it does %q, not %q: %s", kind, a.harm, excerpt(said))
				}
			})
		}
	}
}

// TestReachOnCPython is the negative control of the walls. It checks that files, processes, sockets
// and native code are accessible without a sandbox.
func TestReachOnCPython(t *testing.T) {
	python, port := skip.WithoutCPython(t), startListener(t)
	for _, a := range beyond {
		t.Run(a.name, func(t *testing.T) {
			source := strings.ReplaceAll(a.source, "PORT", port) + "\nprint('got there')"
			if kind, said := harm.WatchPython(t, python, source, 30*time.Second, "TMPDIR="+
				t.TempDir()); !strings.Contains(said, "got there\n") {
				t.Errorf("it does not get there: %s %s", kind, excerpt(said))
			}
		})
	}
}

// TestABareSessionKeepsAsItShould is the control of the controls. It checks that a harmless snippet
// does no harm.
func TestABareSessionKeepsAsItShould(t *testing.T) {
	python := skip.WithoutCPython(t)
	for _, source := range []string{
		"1 + 1", "1 / 0", "import sys\nsys.exit(3)", "print('x' * 100)",
		"x = bytearray(10 << 20)",
	} {
		t.Run(source, func(t *testing.T) {
			if kind, said := harm.WatchPython(t, python, source, 30*time.Second); kind != harm.None {
				t.Errorf("%s does %q: %s", source, kind, said)
			}
		})
	}
}
