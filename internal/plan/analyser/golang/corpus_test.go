package golang

import (
	"slices"
	"testing"

	"github.com/rlmhq/rlm/internal/plan/analyser/testdata/corpus"
	"github.com/rlmhq/rlm/tiers"
)

// TestCorpusNeedsAreAsLabelled compares the analyser's verdicts with labels by people.
func TestCorpusNeedsAreAsLabelled(t *testing.T) {
	all, err := corpus.All()
	if err != nil {
		t.Fatal(err)
	}
	share := map[string]int{}
	for _, s := range all {
		if s.Language != tiers.Go {
			continue
		}
		share[s.Tier]++
		v := analyse(t, s.Source)
		if (v.Invalid != nil) != (s.Tier == corpus.Invalid) || v.Unknown != "" {
			t.Errorf("%s: %+v %q, labelled %s", s.Name, v.Invalid, v.Unknown, s.Tier)
		}
		if v.Needs == nil {
			continue
		}
		var got []string
		for _, f := range v.Needs.Features {
			got = append(got, string(f.Feature))
		}
		slices.Sort(got)
		if want := slices.Sorted(slices.Values(s.Features)); !slices.Equal(slices.Compact(got),
			want) {
			t.Errorf("%s: needs %v, labelled %v", s.Name, v.Needs.Features, want)
		}
		for _, m := range s.Modules {
			if v.Needs.Imports[0].Module != m {
				t.Errorf("%s: imports %v, labelled %s", s.Name, v.Needs.Imports, m)
			}
		}
	}
	t.Logf("Go snippets by tier: %v", share)
}
