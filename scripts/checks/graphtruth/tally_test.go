package graphtruth

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/testing/skip"
)

const (
	suitesUpdate = "RLM_SUITES_UPDATE" // a run with this variable writes suitesDoc
	suitesDoc    = "../../../docs/generated/graph-suites.md"
	suitesBegin  = "## Tally\n" // the line of suitesDoc after which the test writes
)

// TestSuitesPassAsDocumented runs the suites. Passes and failures must agree with the document, so
// that a test whose result changes is noticed.
func TestSuitesPassAsDocumented(t *testing.T) {
	t.Parallel()
	skip.Short(t, "it runs 4,600 tests")
	skip.UnderRace(t)
	results := slices.Concat(sparqlResults(t), owlResults(t), cypherResults(t))

	document, err := os.ReadFile(suitesDoc)
	if err != nil {
		t.Fatal(err)
	}
	prose, tables, found := strings.Cut(string(document), suitesBegin)
	if !found {
		t.Fatalf("%s has no line %q", suitesDoc, suitesBegin)
	}
	want := describeResults(results)
	if os.Getenv(suitesUpdate) != "" {
		writeFile(t, suitesDoc, []byte(prose+suitesBegin+want))
		return
	}
	if want == tables {
		return
	}
	for line := range strings.Lines(want) {
		if !strings.Contains(tables, line) {
			t.Errorf("%s lacks the line %q: make graph-tally writes it anew", suitesDoc, line)
		}
	}
}

// describeResults returns the tally, and the failures.
func describeResults(results []result) string {
	var b strings.Builder
	b.WriteString("\n| suite | tests | pass | share |\n| --- | --- | --- | --- |\n")
	bySuite := map[string][]result{}
	var suites []string
	for _, r := range results {
		if bySuite[r.suite] == nil {
			suites = append(suites, r.suite)
		}
		bySuite[r.suite] = append(bySuite[r.suite], r)
	}
	for _, suite := range suites {
		all := bySuite[suite]
		passed := len(all) - len(failed(all))
		fmt.Fprintf(&b, "| %s | %d | %d | %.1f %% |\n", suite, len(all), passed,
			100*float64(passed)/float64(len(all)))
	}

	b.WriteString("\n## What fails\n")
	for _, suite := range suites {
		if len(failed(bySuite[suite])) == 0 {
			continue
		}
		fmt.Fprintf(&b, "\n### %s\n\n", suite)
		if suite == cypherReads || suite == cypherWrites {
			describeFeatures(&b, bySuite[suite])
			continue
		}
		b.WriteString("| test | what happens |\n| --- | --- |\n")
		for _, r := range failed(bySuite[suite]) {
			fmt.Fprintf(&b, "| %s | %s |\n", r.name, escapeCell(r.failure))
		}
	}
	return b.String()
}

// describeFeatures lists the failing scenarios by feature, since they are many.
func describeFeatures(b *strings.Builder, results []result) {
	byFeature := map[string][]result{}
	for _, r := range results {
		feature, _, _ := strings.Cut(r.name, "[")
		byFeature[feature] = append(byFeature[feature], r)
	}
	b.WriteString("| feature | pass | scenarios that fail |\n| --- | --- | --- |\n")
	for _, feature := range slices.Sorted(maps.Keys(byFeature)) {
		bad := failed(byFeature[feature])
		if len(bad) == 0 {
			continue
		}
		var names []string
		for _, r := range bad {
			number := strings.TrimPrefix(r.name, feature)
			names = append(names, strings.NewReplacer("[", "", "]", "").Replace(number))
		}
		total := len(byFeature[feature])
		fmt.Fprintf(b, "| %s | %d of %d | %s |\n", feature, total-len(bad), total, strings.Join(names, " "))
	}
}

func failed(results []result) []result {
	return slices.DeleteFunc(slices.Clone(results), func(r result) bool { return r.failure == "" })
}

// escapeCell returns the first 120 characters of a string for a table cell.
func escapeCell(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if runes := []rune(text); len(runes) > 120 {
		text = string(runes[:120]) + "…"
	}
	return strings.NewReplacer("|", `\|`, "<", `\<`, "*", `\*`, "_", `\_`, "`", "'").Replace(text)
}
