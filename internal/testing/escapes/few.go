package escapes

import (
	"os"
	"testing"

	"github.com/rlmhq/rlm/tiers"
)

// The classes of which a tier runs only a part, because another tier runs them in full, as in
// package tiersuite. With the number n, one in n cases of a class runs.
var (
	// KnownGuest is for a tier whose host reads requests and trees of calls as another tier's host
	// does. Each of these cases computes for a second.
	KnownGuest = map[string]int{"calltrees": 7, "amplification": 7}
	// KnownProcess is for a tier or an engine that runs the process of another tier or engine
	// behind a different wall. These cases attack the process and its messages.
	KnownProcess = map[string]int{
		"calltrees": 7, "amplification": 7, "session": 3, "restart": 3, "time": 3, "exhaustion": 3, "contexts": 3,
	}
)

// RunFew is like Run, but runs only a part of the classes that few names. If RLM_ESCAPE_UPDATE is
// set, it runs all cases.
func RunFew(t *testing.T, tier tiers.Tier, few map[string]int) {
	seen := map[string]int{}
	column := run(t, tier, func(c Case) bool {
		n := seen[c.Class]
		seen[c.Class]++
		return n%max(few[c.Class], 1) == 0 || runsAll()
	})
	settleColumn(t, tier.Info().Name, column)
}

// FewWithoutLayers returns one in three of the cases that a tier's layers contain. If
// RLM_ESCAPE_UPDATE is set, it returns all of them.
func FewWithoutLayers(t *testing.T, tier string) []Case {
	t.Helper()
	var few []Case
	n := 0
	for _, c := range Cases(t) {
		if c.Layers(tier) == nil {
			continue
		}
		if n%3 == 0 || runsAll() {
			few = append(few, c)
		}
		n++
	}
	return few
}

// runsAll reports whether this is a run of make escape, which includes every case.
func runsAll() bool { return os.Getenv(escapeUpdate) != "" }
