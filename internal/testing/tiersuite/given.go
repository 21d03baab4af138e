package tiersuite

import (
	"testing"

	"github.com/rlmhq/rlm/tiers"
)

// given returns functions that provide variables of the host.
func given(query string) []tiers.Function {
	return []tiers.Function{
		{Name: "query", Value: tiers.Value(query)},
		{Name: "depth", Value: tiers.Value(`0`)},
		{Name: "history", Value: tiers.Value(`[{"role": "user"}]`)},
	}
}

// testGiven provides variables to a session. Snippets may rebind their names; the other names have
// the host's current values.
func (s *suite) testGiven(t *testing.T) {
	cfg := func() tiers.Config { return tiers.Config{Host: newHost(), Functions: given(`"first"`)} }
	s.playScenarios(t, cfg, []scenario{
		{name: "there at the start", steps: []step{
			{source: "print(query, depth, history)", out: "first 0 [{'role': 'user'}]\n"},
			{source: "SHOW_VARS()", out: "No variables yet.\n"},
			{source: "FINAL_VAR('query')", final: `"first"`, named: "query"},
		}},
		{name: "taken by a snippet", steps: []step{
			{source: "query, depth = 5, query"},
			{source: "print(query, depth)", out: "5 first\n"},
			{source: "SHOW_VARS()", says: []string{"query: int", "depth: str (5)"}},
			{source: "1/0", raises: "ZeroDivisionError"},
			{source: "print(query, depth)", out: "5 first\n"},
		}},
	})

	t.Run("FollowTheHost", s.testGivenAgain)
}

// testGivenAgain provides variables again, and moves the session.
func (s *suite) testGivenAgain(t *testing.T) {
	from := s.open(t, tiers.Config{Host: newHost(), Functions: given(`"first"`)})
	extender, ok := from.box.(tiers.Extender)
	if !ok {
		t.Skipf("sandboxes of tier %s are not Extenders", s.info.Name)
	}
	from.mustRun(t, "depth = 'mine'\nhistory.append('mine, too')")

	if err := extender.Extend(t.Context(), nil, given(`"second"`)); err != nil {
		t.Fatal(err)
	}
	look := "print(query, depth, history)"
	from.mustPrint(t, look, "second mine [{'role': 'user'}, 'mine, too']\n")

	bad := []tiers.Function{{Name: "FINAL", Value: tiers.Value("1")}, {Name: "context", Value: tiers.Value("1")}}
	for _, f := range append(bad, tiers.Function{Name: "x", Value: tiers.Value("nan")}) {
		if err := extender.Extend(t.Context(), nil, []tiers.Function{f}); err == nil {
			t.Errorf("%s = %s was given", f.Name, f.Value)
		}
	}

	if _, moves := from.box.(tiers.Exporter); !moves {
		return
	}
	to := s.open(t, tiers.Config{Host: newHost(), Functions: given(`"third"`)})
	moveTo(t, from, to)
	to.mustPrint(t, look, "third mine [{'role': 'user'}, 'mine, too']\n")
}
