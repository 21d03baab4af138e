// Command corpustable counts where the router sends the snippets of
// internal/plan/analyser/testdata/corpus, and where it is wrong. It prints the table in
// docs/reference/performance.md.
//
//	scripts/run.sh corpustable
//
// It runs no snippets. It makes the plans from the tiers' own descriptions, and compares them with
// labels by people. Tests of the analysers check the labels.
package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/internal/plan/analyser/golang"
	"github.com/rlmhq/rlm/internal/plan/analyser/python"
	"github.com/rlmhq/rlm/internal/plan/analyser/testdata/corpus"
	"github.com/rlmhq/rlm/internal/plan/runner"
	"github.com/rlmhq/rlm/router"
	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/interp"
	"github.com/rlmhq/rlm/tiers/local"
	"github.com/rlmhq/rlm/tiers/wasm"
)

func main() {
	cache, err := os.UserCacheDir()
	if err == nil {
		var t table
		if t, err = count(context.Background(), filepath.Join(cache, "rlm")); err == nil {
			fmt.Print(t)
		}
	}

	if err != nil {
		fmt.Fprintln(os.Stderr, "corpustable:", err)
		os.Exit(1)
	}
}

// places are the possible destinations of a snippet, cheapest first.
var places = []string{interp.Name, wasm.Name, local.Name, corpus.None, corpus.Invalid}

// table is the command's output.
type table struct {
	total                int
	share                map[string]int
	accepts, escalations []string // the snippets sent to a tier that is too low or too high
}

// count plans every snippet as the first of a session that may use local.
func count(ctx context.Context, cache string) (t table, err error) {
	all, err := corpus.All()
	if err != nil {
		return t, err
	}

	guest := wasm.New(wasm.Options{CacheDir: cache})
	analyser := python.New(guest)
	defer func() { err = errors.Join(err, analyser.Close(), guest.Close()) }()

	analysers := map[tiers.Language]runner.Analyser{
		tiers.Python: analyser,
		tiers.Go:     golang.Analyser{},
	}

	runner, err := runner.New(runner.Config{
		Tiers: describeTiers(all), Analysers: analysers, Policy: router.Policy{AllowLocal: true},
	})
	if err != nil {
		return t, err
	}
	defer func() { err = errors.Join(err, runner.Close()) }()

	t.share = map[string]int{}
	for _, s := range all {
		plan, err := runner.Explain(ctx, tiers.Job{Language: s.Language, Source: s.Source})
		if err != nil {
			return t, err
		}
		t.add(s, placeOf(plan))
	}
	return t, nil
}

// described is a tier that is only used for its description.
type described struct{ info tiers.Info }

func (d described) Info() tiers.Info { return d.info }

func (d described) Probe(context.Context) error { return nil }

func (d described) Warm(context.Context) error { return nil }

func (d described) Close() error { return nil }

func (d described) Open(context.Context, tiers.Config) (tiers.Sandbox, error) {
	return nil, errors.New("only plans are made here")
}

// describeTiers returns the tiers with their real descriptions, except that it assumes that local
// has, on any host, the packages that the corpus expects of docker.
func describeTiers(all []corpus.Snippet) []tiers.Tier {
	host := local.New(local.Options{}).Info()
	guest := wasm.New(wasm.Options{}).Info()
	host.Modules = maps.Clone(guest.Modules)

	for _, s := range all {
		for _, module := range s.Modules {
			if truth(s) == local.Name {
				host.Modules[module] = true
			}
		}
	}
	return []tiers.Tier{
		described{interp.New(interp.Options{}).Info()}, described{guest}, described{host},
	}
}

// placeOf returns where a plan sends a snippet.
func placeOf(plan router.Plan) string {
	switch {
	case plan.Invalid != "":
		return corpus.Invalid
	case len(plan.Chain) == 0:
		return corpus.None
	}
	return plan.Chain[0].Tier
}

// truth returns where a snippet belongs. local stands for docker, which some machines do not have.
// Small Python snippets are labelled interp, but belong in wasm, which is the cheaper of the two.
func truth(s corpus.Snippet) string {
	switch {
	case s.Tier == "docker":
		return local.Name
	case s.Tier == interp.Name && s.Language == tiers.Python:
		return wasm.Name
	}
	return s.Tier
}

func (t *table) add(s corpus.Snippet, to string) {
	t.total++
	t.share[to]++
	switch got, want := slices.Index(places, to), slices.Index(places, truth(s)); {
	case got < want:
		t.accepts = append(t.accepts, s.Name)
	case got > want:
		t.escalations = append(t.escalations, s.Name)
	}
}

// String returns the table in the form of docs/reference/performance.md.
func (t table) String() string {
	var b strings.Builder
	b.WriteString("| sent to | snippets | share |\n| --- | --- | --- |\n")
	for _, name := range places {
		fmt.Fprintf(&b, "| %s | %d | %s |\n", name, t.share[name], t.percent(t.share[name]))
	}

	for _, wrong := range []struct {
		what  string
		names []string
	}{{"false accepts", t.accepts}, {"false escalations", t.escalations}} {
		fmt.Fprintf(&b, "| %s | %d | %s |\n", wrong.what, len(wrong.names),
			t.percent(len(wrong.names)))
	}

	fmt.Fprintf(&b, "\nOf %d snippets.\n", t.total)
	writeList(&b, "False accepts", t.accepts)
	writeList(&b, "False escalations", t.escalations)
	return b.String()
}

func (t table) percent(n int) string {
	return fmt.Sprintf("%.1f %%", 100*float64(n)/float64(t.total))
}

// writeList writes names, each on its own line, since Markdown joins the lines of a paragraph.
func writeList(b *strings.Builder, title string, names []string) {
	if len(names) == 0 {
		fmt.Fprintf(b, "%s: none.\n", title)
		return
	}
	fmt.Fprintf(b, "%s: `%s`.\n", title, strings.Join(names, "`,\n`"))
}
