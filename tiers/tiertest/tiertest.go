// Package tiertest is the suite that every tier must pass, also one from outside this
// module. A tier's test calls [Run]; that is enough:
//
//	func TestSuite(t *testing.T) { tiertest.Run(t, mytier.New(), tiertest.Options{}) }
//
// The suite skips groups of cases that need a feature which the tier's Info does not name.
// A tier that runs only a part of Python sets [Options.MinAccepted]. A tier that compiles
// Go calls [RunGo] as well.
package tiertest

import (
	"testing"
	"time"

	"github.com/rlmhq/rlm/internal/testing/gosuite"
	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/internal/testing/tiersuite"
	"github.com/rlmhq/rlm/tiers"
)

// Options describe what a tier's Info does not. The zero value runs everything.
type Options struct {
	// Patience bounds a single snippet, far above what any needs; a snippet that
	// takes longer fails its case instead of the whole test. Zero is two minutes.
	Patience time.Duration
	// StopAfter is the wall limit of endless snippets. Zero is 300 milliseconds; a
	// tier with slow snippets needs more.
	StopAfter time.Duration
	// Memory is the memory limit of the snippets that exceed it, in bytes. Zero is
	// 96 MiB; the snippets ask for a gibibyte.
	Memory int64
	// Sandboxes is the number that the leak check opens. Zero is 50.
	Sandboxes int
	// MinAccepted is for a tier that runs only a part of Python: a test is skipped
	// if the tier rejects its snippet, and at least MinAccepted tests must run. Zero
	// means that the tier runs all of Python, and a rejection fails.
	MinAccepted int
	// PythonMinor is the minor version of a CPython 3 that is not 3.13, the version
	// of the golden files. Then only the groups run that do not depend on the
	// version, without the rows that need a later one. Zero is 3.13.
	PythonMinor int
}

// Run runs the whole suite on a tier. If the tier's Probe fails, the test is skipped, or
// fails as [Require] says.
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

// Require skips a test if a tier is not usable here. The error is the one of its Probe; nil
// means that the tier is usable. If the variable RLM_REQUIRE_TIERS lists the tier, with
// commas between names, the test fails instead.
func Require(tb testing.TB, tier string, err error) {
	tb.Helper()
	skip.WithoutTier(tb, tier, err)
}
