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
// skipped. Nothing else is.
package tiertest

import (
	"context"
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
}

// Run runs the whole suite against a tier.
func Run(t *testing.T, tier tiers.Tier, opt Options) {
	s := &suite{tier: tier, info: tier.Info(), opt: opt.withDefaults()}
	s.usable(t)
	for _, group := range []struct {
		name  string
		needs tiers.Feature
		run   func(*testing.T)
	}{
		{name: "Contract", run: s.contract},
		{name: "Language", run: s.language},
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
		{name: "Fork", needs: tiers.FeatureFork, run: s.fork},
		{name: "Leaks", run: s.leaks},
	} {
		t.Run(group.name, func(t *testing.T) {
			if group.needs != "" && !s.info.Has(group.needs) {
				t.Skipf("tier %s has no feature %q", s.info.Name, group.needs)
			}
			group.run(t)
		})
	}
}

// usable fails the test early, and once, if the tier cannot work here.
func (s *suite) usable(t *testing.T) {
	t.Helper()
	if s.info.Name == "" {
		t.Fatal("Info names no tier")
	}
	if err := s.tier.Probe(t.Context()); err != nil {
		t.Fatalf("tier %s cannot be tested here: %v", s.info.Name, err)
	}
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
