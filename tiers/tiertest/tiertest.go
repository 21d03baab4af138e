// Package tiertest is the suite that every tier must pass.
//
// A tier's own test calls [Run] with the tier; nothing else is needed:
//
//	func TestTier(t *testing.T) { tiertest.Run(t, mytier.New(), tiertest.Options{}) }
//
// # How it is made
//
// The language is tested in the language: testdata/lang holds a script for each
// feature and, beside it, what CPython 3.13 prints when it runs the script.
// testdata/raise does the same for scripts that an exception ends, and for the
// traceback. The package's own test runs all of them on CPython, so the golden
// files cannot drift from it; `go test ./tiers/tiertest -update` writes them anew.
//
// What a script cannot say (limits, host calls, state over snippets, attacks) is
// in tables of Go, one file a subject, each row a snippet and what must come of
// it. After every row that may damage a session, the session is asked whether it
// lives and whether it told the truth about what was lost.
//
// # What is left out
//
// Groups of cases that need a feature which the tier's Info does not name are
// skipped. Nothing else is, unless the tier may reject snippets, see [Options];
// then the suite counts what was really run.
package tiertest

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/rlmhq/rlm/tiers"
)

// Options say what a tier's Info does not.
type Options struct {
	// Patience bounds a single snippet, far above what any needs; a snippet that
	// takes longer fails its case instead of the whole test. Zero is two minutes.
	Patience time.Duration
	// Stop is the wall limit of the snippets that must be stopped by it. Zero is
	// 300 milliseconds; a tier with slow snippets needs more.
	Stop time.Duration
	// Memory is the memory limit of the snippets that exceed it, in bytes. Zero is
	// 96 MiB; the floods are a gibibyte.
	Memory int64
	// Sandboxes is how many the leak check opens. Zero is 50.
	Sandboxes int
	// MayReject is for a tier that runs a part of the language: a test is skipped
	// when the tier rejects a snippet of it that never ran. What it does run must
	// come out as in every other tier.
	MayReject bool
	// Minor is the minor version of a CPython 3 that is not the one of the golden
	// files. Zero is that one; otherwise only the groups run that do not depend on
	// it, without the rows that need a later one.
	Minor int
	// AtLeast is how many tests such a tier must run without a rejection.
	AtLeast int
	// AtOnce runs the tests of a group at the same time, as many as the test binary
	// allows: for a tier whose sandboxes start slowly.
	AtOnce bool
	// SameGuest is for a tier whose guest is, to the last byte, that of another tier,
	// which compares the lazy context with a str in all that a str can: thousands of
	// expressions, some hundred thousand requests. The handle's own tests run.
	SameGuest bool
	// SameSource is for a tier whose guest is of the same source as that of another
	// tier, which does those comparisons. This one does every third of them.
	SameSource bool
}

func (o Options) withDefaults() Options {
	if o.Patience == 0 {
		o.Patience = 2 * time.Minute
	}
	if o.Stop == 0 {
		o.Stop = 300 * time.Millisecond
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
	apart sync.Map // names of the tests that run beside others
}

// anyPython are the groups that run on each CPython 3 alike.
var anyPython = []string{"Contract", "Persistence", "HostCalls", "Async", "Move"}

// Run runs the whole suite against a tier.
func Run(t *testing.T, tier tiers.Tier, opt Options) {
	s := &suite{tier: tier, info: tier.Info(), opt: opt.withDefaults(), share: share{tests: map[string]struct{}{}}}
	s.usable(t)
	for _, group := range []struct {
		name  string
		needs tiers.Feature
		run   func(*testing.T)
	}{
		{name: "Contract", run: s.contract},
		{name: "Language", run: s.language},
		{name: "Contracts", run: s.contracts},
		{name: "Tracebacks", run: s.tracebacks},
		{name: "Persistence", run: s.persistence},
		{name: "Async", needs: tiers.FeatureAsync, run: s.async},
		{name: "HostCalls", run: s.hostCalls},
		{name: "Concurrency", needs: tiers.FeatureAsync, run: s.concurrency},
		{name: "Finish", run: s.finish},
		{name: "Limits", run: s.limits},
		{name: "Fuel", needs: tiers.FeatureFuel, run: s.fuel},
		{name: "Hostile", run: s.hostile},
		{name: "Source", run: s.source},
		{name: "Context", run: s.smallContext},
		{name: "HugeContext", needs: tiers.FeatureHugeContext, run: s.hugeContext},
		{name: "Move", needs: tiers.FeatureMove, run: s.move},
		{name: "Fork", needs: tiers.FeatureFork, run: s.fork},
		{name: "Leaks", run: s.leaks},
	} {
		if s.opt.Minor != 0 && !slices.Contains(anyPython, group.name) {
			continue
		}
		t.Run(group.name, func(t *testing.T) {
			if group.needs != "" {
				s.needs(t, group.needs)
			}
			group.run(t)
		})
	}
	if s.opt.MayReject {
		t.Run("Accepted", s.accepted)
	}
}

// quick leaves a test to a run without the race detector, which would make it
// take minutes: `make test` has both.
func quick(test func(*testing.T)) func(*testing.T) {
	return func(t *testing.T) {
		if raceDetector {
			t.Skip("takes too long with the race detector; make test runs it without")
		}
		test(t)
	}
}

// needs skips a test of what the tier does not claim to have.
func (s *suite) needs(t *testing.T, f tiers.Feature) {
	t.Helper()
	if !s.info.Has(f) {
		t.Skipf("tier %s has no feature %q", s.info.Name, f)
	}
}

// beside lets a test run at the same time as others of its group, if the tier's
// options say so. Each has sandboxes of its own, so that it does so from the first one
// on.
func (s *suite) beside(t *testing.T) {
	if s.opt.AtOnce {
		s.parallel(t)
	}
}

// parallel lets a test run at the same time as others of its group.
func (s *suite) parallel(t *testing.T) {
	if _, already := s.apart.LoadOrStore(t.Name(), true); !already {
		t.Parallel()
	}
}

// usable ends the test early, and once, if the tier cannot work here.
func (s *suite) usable(t *testing.T) {
	t.Helper()
	if s.info.Name == "" {
		t.Fatal("Info names no tier")
	}
	Require(t, s.info.Name, s.tier.Probe(t.Context()))
	if w, ok := s.tier.(tiers.Warmer); ok {
		if err := w.Warm(t.Context()); err != nil {
			t.Fatalf("cannot warm tier %s: %v", s.info.Name, err)
		}
	}
}

// stopping are limits that end an endless snippet soon.
func (s *suite) stopping() tiers.Limits { return tiers.Limits{Wall: s.opt.Stop} }

// patient returns a context that outlasts any snippet that behaves.
func (s *suite) patient(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), s.opt.Patience)
	t.Cleanup(cancel)
	return ctx
}
