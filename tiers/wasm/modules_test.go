package wasm_test

import (
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/machine/cpython"
	"github.com/rlmhq/rlm/tiers"
)

// TestModules compares the tier's list of modules with the modules that can be imported.
func TestModules(t *testing.T) {
	box := openSandbox(t, warmTier(t), tiers.Config{Limits: tiers.Limits{Output: 1 << 20}})
	defer box.Close()
	r, err := box.Run(t.Context(), tiers.Job{Source: `
import sys
def has(name):
    try:
        __import__(name)
    except BaseException:
        return False
    return True
print(*sorted(n for n in set(sys.stdlib_module_names) | set(sys.builtin_module_names) if has(n)))
`})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := strings.Fields(r.Stdout), cpython.Modules(); strings.Join(
		got, " ",
	) != strings.Join(want, " ") {
		t.Errorf("modules.txt is not what imports:\n got %s\nwant %s\n%s", want, got, r.Stderr)
	}
}

// TestLibrariesAreDebians checks the versions that the libraries themselves report, because
// CPython's source contains an older copy of expat.
func TestLibrariesAreDebians(t *testing.T) {
	box := openSandbox(t, warmTier(t), tiers.Config{})
	defer box.Close()
	r, err := box.Run(t.Context(), tiers.Job{Source: `
import pyexpat, zlib
print(pyexpat.EXPAT_VERSION.removeprefix("expat_"), zlib.ZLIB_RUNTIME_VERSION)
`})
	if err != nil {
		t.Fatal(err)
	}

	sources := cpython.Manifest().Sources
	for i, name := range []string{"expat", "zlib"} {
		said := strings.Fields(r.Stdout)
		if len(said) != 2 || !strings.Contains(sources[name], said[i]+"-") {
			t.Errorf("%q %s: %s is %q in the manifest", r.Stdout, r.Stderr, name, sources[name])
		}
	}
}
