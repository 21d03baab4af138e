// Package tiersuite is the Python suite that every tier must pass. Package tiers/tiertest is its
// public interface.
//
// The language is tested in the language itself: testdata/lang contains a script for each feature
// and, next to it, the output of CPython 3.13 for the script. testdata/raise does the same for
// scripts that end with an exception, and for the traceback. The package's own test runs all
// scripts on CPython, so the golden files always agree with CPython; `go test
// ./internal/testing/tiersuite -update` writes them again.
//
// Limits, host calls, state over several snippets and attacks do not fit into a script. Their tests
// are Go tables, one file per subject, and a row is a snippet with its required outcome. After
// every row that may damage a session, the suite checks that the session still works and has
// reported its losses correctly.
//
// A group of cases is skipped if it needs a feature that the tier's Info does not list. A tier that
// runs only a part of Python sets [Options.MinAccepted]. A rejected snippet then skips its test,
// and the suite counts the tests that ran.
package tiersuite

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/tiers"
)

// Options describe what a tier's Info does not. The zero value runs everything.
type Options struct {
	// Patience bounds the time of a single snippet, far above the time that any snippet needs. A
	// snippet that takes longer fails its case, but not the whole test. Zero means five minutes.
	Patience time.Duration
	// StopAfter is the wall limit of endless snippets. Zero means 300 milliseconds; a tier with
	// slow snippets needs more.
	StopAfter time.Duration
	// Memory is the memory limit of the snippets that exceed it, in bytes. Zero means 96 MiB; the
	// snippets request a gibibyte.
	Memory int64
	// Sandboxes is the number of sandboxes that the leak check opens. Zero means 50.
	Sandboxes int
	// MinAccepted is for a tier that runs only a part of Python. A test is skipped if the tier
	// rejects its snippet, but at least MinAccepted tests must run. Zero means that the tier runs
	// all of Python, and any rejection fails.
	MinAccepted int
	// PythonMinor is the minor version of a CPython 3 other than 3.13, the version of the golden
	// files. If it is set, the suite runs only the groups that do not depend on the version,
	// without the rows that need a later version. Zero means 3.13.
	PythonMinor int

	// Parallel runs the tests of a group in parallel, as many as the test binary allows, because
	// most of them wait for a limit or for a process. By default, they run one after another.
	Parallel bool
	// ShareSandboxes runs cases that leave a sandbox intact in a common sandbox. It is for tiers
	// with slow sandboxes. A case that fails there runs again in its own sandbox, and that run
	// decides.
	ShareSandboxes bool
	// KnownGuest skips contexts of some GiB, long tables, and some thousand expressions over long
	// contexts, with hundreds of thousands of requests. Another tier, whose guest has the same
	// source, runs these comparisons.
	KnownGuest bool
	// KnownProcess runs one in three of the attacks, of the snippets that exceed a limit, and of
	// the scripts that move. It lets attacks that lose nothing share a sandbox, and leaves later
	// cases in the state that the attacks left. It skips sources that are megabytes long,
	// comparisons of long contexts that are a str, long lists and tables, and values that spoil a
	// move. Another tier or engine runs the same process, with a separate sandbox for each attack.
	KnownProcess bool
	// Groups, if set, are the only groups to run. They are for a tier that is another tier behind a
	// wall, if that other tier passes all groups.
	Groups []string
}

func (o Options) withDefaults() Options {
	if o.Patience == 0 {
		o.Patience = 5 * time.Minute
	}
	if o.StopAfter == 0 {
		o.StopAfter = 300 * time.Millisecond
	}
	if o.Memory == 0 {
		o.Memory = 96 << 20
	}
	if o.Sandboxes == 0 {
		o.Sandboxes = 50
	}

	return o
}

// suite is a tier under test.
type suite struct {
	tier tiers.Tier
	info tiers.Info
	opt  Options

	share share
	apart sync.Map // the names of the tests that run in parallel with others
}

func newSuite(tier tiers.Tier, opt Options) *suite {
	return &suite{
		tier: tier, info: tier.Info(), opt: opt.withDefaults(),
		share: share{tests: map[string]struct{}{}},
	}
}

// anyPython are the groups that run alike on every CPython 3.
var anyPython = []string{"Contract", "Persistence", "HostCalls", "Async", "Move"}

// Run runs the whole suite on a tier.
func Run(t *testing.T, tier tiers.Tier, opt Options) {
	s := newSuite(tier, opt)
	s.requireUsable(t)
	for _, group := range []struct {
		name  string
		needs tiers.Feature
		run   func(*testing.T)
	}{
		{name: "Contract", run: s.testContract},
		{name: "Language", run: s.testLanguage},
		{name: "Contracts", run: s.testContracts},
		{name: "Tracebacks", run: s.testTracebacks},
		{name: "Persistence", run: s.testPersistence},
		{name: "Async", needs: tiers.FeatureAsync, run: s.testAsync},
		{name: "HostCalls", run: s.testHostCalls},
		{name: "Concurrency", needs: tiers.FeatureAsync, run: s.testConcurrency},
		{name: "Parallel", needs: tiers.FeatureThreads, run: s.testParallel},
		{name: "Finish", run: s.testFinish},
		{name: "Results", needs: tiers.FeatureDynamic, run: s.testResults},
		{name: "OutFolder", needs: tiers.FeatureOut, run: s.testOutFolder},
		{name: "Packages", needs: tiers.FeaturePackages, run: s.testPackages},
		{name: "Limits", run: s.testLimits},
		{name: "Fuel", needs: tiers.FeatureFuel, run: s.testFuel},
		{name: "Hostile", run: s.testHostile},
		{name: "Source", run: s.testSource},
		{name: "Context", run: s.testSmallContext},
		{name: "HugeContext", needs: tiers.FeatureHugeContext, run: s.testHugeContext},
		{name: "Move", needs: tiers.FeatureMove, run: s.testMove},
		{name: "Fork", needs: tiers.FeatureFork, run: s.testFork},
		{name: "Leaks", run: s.testLeaks},
	} {
		if s.opt.PythonMinor != 0 && !slices.Contains(anyPython, group.name) {
			continue
		}
		if s.opt.Groups != nil && !slices.Contains(s.opt.Groups, group.name) {
			continue
		}
		t.Run(group.name, func(t *testing.T) {
			if group.needs != "" {
				s.requireFeature(t, group.needs)
			}
			group.run(t)
		})
	}

	if s.opt.MinAccepted > 0 {
		t.Run("Accepted", s.testAccepted)
	}
}

// requireFeature skips the test if the tier does not claim a feature.
func (s *suite) requireFeature(t *testing.T, f tiers.Feature) {
	t.Helper()
	if !s.info.Has(f) {
		t.Skipf("tier %s has no feature %q", s.info.Name, f)
	}
}

// runBeside runs a test in parallel with others of its group, if the tier's options allow it. Such
// a test must have its own sandboxes, so runBeside is called before the first sandbox is opened.
func (s *suite) runBeside(t *testing.T) {
	if s.opt.Parallel {
		s.runParallel(t)
	}
}

// runParallel runs a test in parallel with others of its group.
func (s *suite) runParallel(t *testing.T) {
	if _, already := s.apart.LoadOrStore(t.Name(), true); !already {
		t.Parallel()
	}
}

// requireUsable ends the test early, with a single message, if the tier cannot work here.
func (s *suite) requireUsable(t *testing.T) {
	t.Helper()
	if s.info.Name == "" {
		t.Fatal("Info names no tier")
	}
	skip.WithoutTier(t, s.info.Name, s.tier.Probe(t.Context()))
	if err := s.tier.Warm(t.Context()); err != nil {
		t.Fatalf("cannot warm tier %s: %v", s.info.Name, err)
	}
}

// stopLimits returns limits that end an endless snippet quickly.
func (s *suite) stopLimits() tiers.Limits { return tiers.Limits{Wall: s.opt.StopAfter} }

// patientContext returns a context that outlasts any well-behaved snippet.
func (s *suite) patientContext(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), s.opt.Patience)
	t.Cleanup(cancel)
	return ctx
}
