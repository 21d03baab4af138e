//go:build unix

package local_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/internal/testing/tiersuite"
	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/local"
	"github.com/rlmhq/rlm/tiers/tiertest"
)

func TestMain(m *testing.M) {
	if os.Getenv(abandonEnv) != "" {
		abandon()
	}
	if err := os.Setenv("RLM_HOSTILE", "canary"); err != nil { // no guest may see it
		panic(err)
	}
	goleak.VerifyTestMain(m)
}

// newTier returns a tier that is closed at the end of the test.
func newTier(tb testing.TB, options local.Options) *local.Tier {
	tb.Helper()
	options.AllowSampled = true // some of the tests run as an ordinary user
	tier := local.New(options).(*local.Tier)
	tb.Cleanup(func() {
		if err := tier.Close(); err != nil {
			tb.Error(err)
		}
	})
	return tier
}

// usual returns a tier with the Python that RLM_PYTHON names, or the host's.
func usual(tb testing.TB) *local.Tier {
	tb.Helper()
	tier := newTier(tb, local.Options{Python: os.Getenv("RLM_PYTHON")})
	if err := tier.Probe(tb.Context()); err != nil {
		tiertest.Require(tb, local.Name, err)
	}
	return tier
}

func TestSuite(t *testing.T) {
	skip.Short(t, "tier wasm runs the same suite")
	tier := usual(t)
	version := tier.Info().Version
	if !strings.HasPrefix(version, "CPython 3.13.") {
		t.Skipf("the golden files are of CPython 3.13, this is %s: name one by RLM_PYTHON", version)
	}
	tiersuite.Run(t, tier, tiersuite.Options{
		Parallel: true, ShareSandboxes: true, KnownGuest: true, Sandboxes: 24,
	})
}

func TestLongTexts(t *testing.T) {
	skip.Short(t, "it reads long texts")
	tiersuite.LongTexts(t, usual(t))
}

// TestAJobDecidesOnRandom checks that a job sets the seed of module random. All other randomness is
// the system's.
func TestAJobDecidesOnRandom(t *testing.T) {
	tier := usual(t)
	outs := map[string]bool{}
	for _, seed := range []string{"one", "one", "two"} {
		box, err := tier.Open(t.Context(), tiers.Config{})
		if err != nil {
			t.Fatal(err)
		}
		job := tiers.Job{Source: "import random; print(random.random())", Seed: []byte(seed)}
		result, err := box.Run(t.Context(), job)
		if err != nil || result.Exception != nil {
			t.Fatal(err, result.Exception)
		}
		outs[result.Stdout] = true
		if err := box.Close(); err != nil {
			t.Error(err)
		}
	}
	if len(outs) != 2 {
		t.Errorf("two seeds gave %v", outs)
	}
}

// TestOlderPythons runs the tests that do not depend on the version of Python on every Python in
// RLM_OLD_PYTHONS.
func TestOlderPythons(t *testing.T) {
	skip.Short(t, "tier wasm runs the same suite")
	list := filepath.SplitList(os.Getenv("RLM_OLD_PYTHONS"))
	if len(list) == 0 {
		t.Skip(
			"RLM_OLD_PYTHONS is not set: list interpreters from CPython 3.9 on, with colons " +
				"between them",
		)
	}
	for _, python := range list {
		t.Run(python, func(t *testing.T) {
			tier, minor := newTier(t, local.Options{Python: python}), 0
			if err := tier.Probe(t.Context()); err != nil {
				t.Fatal(err)
			}
			version := tier.Info().Version
			if _, err := fmt.Sscanf(version, "CPython 3.%d", &minor); err != nil {
				t.Fatalf("cannot understand %s: %v", version, err)
			}
			tiersuite.Run(t, tier, tiersuite.Options{
				PythonMinor: minor, Parallel: true, ShareSandboxes: true,
			})
			t.Run("LongTexts", func(t *testing.T) { tiersuite.LongTexts(t, tier) })
		})
	}
}

func TestProbeSaysWhatToDo(t *testing.T) {
	for python, want := range map[string]string{
		"no-such-python": "install CPython, or name an interpreter with --python",
		"/bin/true":      "cannot use /bin/true: cannot parse its report",
		"/no/such/place": "cannot use --python /no/such/place",
	} {
		t.Run(python, func(t *testing.T) {
			err := newTier(t, local.Options{Python: python, Warm: -1}).Probe(t.Context())
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v, want %q", python, err, want)
			}
		})
	}
}

// TestModulesThatLackTheirHalfInCAreNotThere compares the modules that the tier lists with those
// that the interpreter can import.
func TestModulesThatLackTheirHalfInCAreNotThere(t *testing.T) {
	tier := newTier(t, local.Options{Python: "/usr/bin/python3", Warm: -1})
	tiertest.Require(t, local.Name, tier.Probe(t.Context()))
	for _, module := range []string{
		"tkinter", "turtle", "turtledemo", "idlelib", "curses",
		"sqlite3", "ssl", "lzma", "bz2", "ctypes", "json", "winreg",
	} {
		t.Run(module, func(t *testing.T) {
			can := exec.CommandContext(
				t.Context(), "/usr/bin/python3", "-I", "-c", "import "+module,
			).Run() == nil
			if has := tier.Info().Modules[module]; has != can {
				t.Errorf("%s: the tier says %v, the interpreter %v", module, has, can)
			}
		})
	}
}

func TestVersionNamesTheInterpreter(t *testing.T) {
	version := usual(t).Info().Version
	name, path, _ := strings.Cut(version, ", ")
	if !strings.HasPrefix(name, "CPython 3.") || !filepath.IsAbs(path) {
		t.Errorf("%q", version)
	}
}
