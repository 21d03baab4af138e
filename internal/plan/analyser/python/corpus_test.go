package python

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm/internal/plan/analyser/testdata/corpus"
	"github.com/rlmhq/rlm/router"
	"github.com/rlmhq/rlm/tiers"
)

// deciding holds the features that distinguish tiers for Python.
var deciding = []tiers.Feature{
	tiers.FeatureThreads, tiers.FeatureProcesses, tiers.FeatureSockets, tiers.FeatureFiles,
	tiers.FeatureNative, tiers.FeatureDynamic,
}

// snippets returns the corpus's Python snippets.
func snippets(tb testing.TB) []corpus.Snippet {
	tb.Helper()
	all, err := corpus.All()
	if err != nil {
		tb.Fatal(err)
	}
	return slices.DeleteFunc(all, func(s corpus.Snippet) bool { return s.Language != tiers.Python })
}

// logText is the context of the corpus's snippets.
var logText = strings.Repeat(`2024-03-01T10:00:00 INFO user=ann took 12ms GET /a "200" web
2024-03-01T10:00:05 ERROR user=bob timeout after 300ms mail bob@example.org from 10.1.2.3 db
{"level": "WARN", "service": "cache", "n": 3}
name,qty,price

# Notes
The magic number is 4711.
`, 5)

// guest returns a sandbox of the wasm tier with a scripted model.
func guest(tb testing.TB, tier tiers.Tier) tiers.Sandbox {
	tb.Helper()
	text := tiers.Value(literal(logText))
	s, err := tier.Open(context.Background(), tiers.Config{
		Host:   tiers.HostFunc(scripted),
		Inputs: []tiers.Input{{Name: "log", Value: text}},
		Functions: []tiers.Function{
			{Name: "llm_query"},
			{Name: "llm_query_batched"},
			{Name: "rlm_query_batched"},
			{Name: "predict"},
			{Name: "ask_llm"},
		},
		Limits: tiers.Limits{Wall: 10 * time.Second},
	})
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func scripted(_ context.Context, call tiers.Call) (tiers.Value, error) {
	if strings.HasSuffix(call.Function, "_batched") {
		n := strings.Count(string(call.Args[0]), `", "`) + 1
		return tiers.Value("[" + strings.TrimSuffix(strings.Repeat(`"yes 42",`, n), ",") + "]"), nil
	}
	if call.Function == "predict" { // the answer has each field of the signature
		return tiers.Value(`{"sentiment":"good"}`), nil
	}
	return tiers.Value(`"yes 42"`), nil
}

// TestCorpusNeedsAreAsLabelled compares the analyser's verdicts with labels by people.
func TestCorpusNeedsAreAsLabelled(t *testing.T) {
	a, tier := open(t)
	for _, s := range snippets(t) {
		v, err := a.Analyse(context.Background(), s.Source)
		if err != nil {
			t.Fatal(err)
		}
		if (v.Invalid != nil) != (s.Tier == corpus.Invalid) || v.Unknown != "" {
			t.Errorf("%s: %+v %q, labelled %s", s.Name, v.Invalid, v.Unknown, s.Tier)
		}
		if v.Needs == nil {
			continue
		}
		var got []string
		for _, f := range deciding {
			if slices.ContainsFunc(v.Needs.Features,
				func(n router.FeatureNeed) bool { return n.Feature == f }) {
				got = append(got, string(f))
			}
		}
		slices.Sort(got)
		if want := slices.Sorted(slices.Values(s.Features)); !slices.Equal(got, want) {
			t.Errorf("%s: needs %v, labelled %v (%+v)", s.Name, got, want, v.Needs.Features)
		}
		missing, optional := absent(t, tier, v.Needs)
		if !slices.Equal(missing, slices.Sorted(slices.Values(s.Modules))) ||
			!slices.Equal(optional, s.Optional) {
			t.Errorf("%s: imports +%v ?%v, labelled +%v ?%v",
				s.Name, missing, optional, s.Modules, s.Optional)
		}
	}
}

var present = map[string]bool{} // whether the wasm tier has a top-level module; filled on demand

// absent returns the imported modules that the wasm tier lacks.
func absent(tb testing.TB, tier tiers.Tier, n *router.Needs) (missing, optional []string) {
	tb.Helper()
	for _, i := range n.Imports {
		top, _, _ := strings.Cut(i.Module, ".")
		if _, known := present[top]; !known {
			s, err := tier.Open(context.Background(), tiers.Config{})
			if err != nil {
				tb.Fatal(err)
			}
			r, err := s.Run(context.Background(), tiers.Job{Source: "import " + top})
			if err != nil {
				tb.Fatal(err)
			}
			present[top] = r.Status == tiers.StatusOK
			if err := s.Close(); err != nil {
				tb.Error(err)
			}
		}
		switch {
		case present[top]:
		case i.Guarded:
			optional = append(optional, top)
		case !slices.Contains(missing, top):
			missing = append(missing, top)
		}
	}
	slices.Sort(missing)
	return missing, optional
}

// TestCorpusRunsInTheWasmTier checks the labels: snippets labelled as running in the wasm tier do
// run there, and those labelled as needing another tier or as invalid do not.
func TestCorpusRunsInTheWasmTier(t *testing.T) {
	_, tier := open(t)
	for _, s := range snippets(t) {
		sandbox := guest(t, tier)
		r, err := sandbox.Run(context.Background(), tiers.Job{Source: s.Source})
		if err != nil {
			t.Fatal(err)
		}
		runs := r.Status == tiers.StatusOK || r.Status == tiers.StatusExited
		want := s.Tier == "wasm" || s.Tier == "interp"
		if !want && slices.Contains(s.Features, string(tiers.FeatureFiles)) {
			runs = false // looking for missing files may end well, but is useless
		}
		if runs != want {
			t.Errorf("%s, labelled %s: %s %+v", s.Name, s.Tier, r.Status, r.Exception)
		}
		if err := sandbox.Close(); err != nil {
			t.Error(err)
		}
	}
}

// order lists the tiers by cost, for TestCorpusTable.
var order = []string{"interp", "wasm", "docker", corpus.None, corpus.Invalid}

// TestCorpusTable bounds the snippets that are assigned to a wrong tier. With -v, it prints how
// many snippets go to each tier, without opening the tiers. The grammar of interp decides which
// snippets it accepts, so its snippets are counted with those of wasm.
func TestCorpusTable(t *testing.T) {
	a, tier := open(t)
	wasm := []tiers.Feature{
		tiers.FeatureAsync, tiers.FeatureClasses, tiers.FeatureGenerators, tiers.FeatureDynamic,
		tiers.FeatureThreads,
	}
	docker := slices.Concat(wasm, []tiers.Feature{
		tiers.FeatureProcesses, tiers.FeatureFiles, tiers.FeatureNative,
	})
	nowhere := tiers.ModuleSet("torch", "company_utils", "panda")
	share, total := map[string]int{}, 0
	var accepts, escalations []string
	for _, s := range snippets(t) {
		v, err := a.Analyse(context.Background(), s.Source)
		if err != nil {
			t.Fatal(err)
		}
		to := corpus.Invalid
		if v.Needs != nil {
			missing, _ := absent(t, tier, v.Needs)
			to = corpus.None
			for _, place := range []struct {
				name string
				has  tiers.Info
				ok   bool
			}{
				{"wasm", tiers.Info{Features: wasm}, len(missing) == 0},
				{
					"docker",
					tiers.Info{Features: docker},
					!slices.ContainsFunc(missing, func(module string) bool {
						top, _, _ := strings.Cut(module, ".")
						return nowhere[top]
					}),
				},
			} {
				lacks := slices.ContainsFunc(v.Needs.Features,
					func(f router.FeatureNeed) bool { return !place.has.Has(f.Feature) })
				if place.ok && !lacks {
					to = place.name
					break
				}
			}
		}
		truth := strings.Replace(s.Tier, "interp", "wasm", 1)
		share[to]++
		total++
		switch got, want := slices.Index(order, to), slices.Index(order, truth); {
		case got < want:
			accepts = append(accepts, s.Name)
		case got > want:
			escalations = append(escalations, s.Name)
		}
	}
	var b strings.Builder
	for _, name := range order[1:] {
		fmt.Fprintf(&b, "%-8s %4d  %4.1f %%\n", name, share[name],
			100*float64(share[name])/float64(total))
	}
	t.Logf("%d Python snippets\n%sfalse accepts %v\nfalse escalations %v",
		total, b.String(), accepts, escalations)
	if len(escalations) > total/50 || len(accepts) > total/20 {
		t.Errorf("%d false escalations and %d false accepts of %d",
			len(escalations), len(accepts), total)
	}
}
