// Package tiertest is the suite that every tier must pass, including tiers from outside this
// module. A tier's test needs only to call [Run]:
//
//	func TestSuite(t *testing.T) { tiertest.Run(t, mytier.New(), tiertest.Options{}) }
//
// The suite skips groups of cases that need a feature missing from the tier's Info. A tier that
// runs only part of Python sets [Options.MinAccepted]. A tier that compiles Go also calls
// [RunGo].
package tiertest

import (
	"testing"
	"time"

	"github.com/rlmhq/rlm/internal/testing/gosuite"
	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/internal/testing/tiersuite"
	"github.com/rlmhq/rlm/tiers"
)

// Options describe properties of a tier that its Info does not. The zero value runs everything.
type Options struct {
	// Patience bounds a single snippet, far above what any snippet needs; a slower snippet fails
	// its case instead of the whole test. Zero means two minutes.
	Patience time.Duration
	// StopAfter is the wall limit of endless snippets. Zero means 300 milliseconds; a tier with
	// slow snippets needs more.
	StopAfter time.Duration
	// Memory is the memory limit of the snippets that exceed it, in bytes. Zero means 96 MiB; the
	// snippets allocate a gibibyte.
	Memory int64
	// Sandboxes is the number of sandboxes that the leak check opens. Zero means 50.
	Sandboxes int
	// MinAccepted is for a tier that runs only part of Python: a test is skipped if the tier
	// rejects its snippet, and at least MinAccepted tests must run. Zero means that the tier runs
	// the whole of Python, and that a rejection fails the test.
	MinAccepted int
	// PythonMinor is the minor version of a CPython 3 other than 3.13, the version of the golden
	// files. Then only the groups that do not depend on the version run, without the rows that need
	// a later version. Zero means 3.13.
	PythonMinor int
}

// Run runs the whole suite on a tier. If the tier's Probe fails, the test is skipped, or fails
// as described at [Require].
func Run(t *testing.T, tier tiers.Tier, options Options) {
	t.Helper()

	tiersuite.Run(t, tier, tiersuite.Options{
		Patience:    options.Patience,
		StopAfter:   options.StopAfter,
		Memory:      options.Memory,
		Sandboxes:   options.Sandboxes,
		MinAccepted: options.MinAccepted,
		PythonMinor: options.PythonMinor,
	})
}

// RunGo runs the suite of a tier that compiles Go. The tier must be usable.
func RunGo(t *testing.T, tier tiers.Tier) {
	t.Helper()
	gosuite.Run(t, tier)
}

// Require skips a test if a tier is not usable here. The error is that of its Probe; nil means that
// the tier is usable. If the variable RLM_REQUIRE_TIERS lists the tier, with names separated by
// commas, the test fails instead.
func Require(tb testing.TB, tier string, err error) {
	tb.Helper()
	skip.WithoutTier(tb, tier, err)
}
