package distill_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/internal/keep/trajectory"
	"github.com/rlmhq/rlm/internal/testing/looptest"
	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/repl/distill"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/scripted"
	"github.com/rlmhq/rlm/repl/run"
	"github.com/rlmhq/rlm/router"
	"github.com/rlmhq/rlm/tiers"
)

var shared *rlm.Engine

func TestMain(m *testing.M) { looptest.Main(m, &shared, rlm.Options{}) }

// model is a registry of one script.
type model struct{ llm.Provider }

func (m model) Resolve(name string) (llm.Model, error) {
	return llm.Model{
		Name: name, ID: name, Provider: m.Provider, Facts: llm.Facts{Window: 100_000},
	}, nil
}

func script(t *testing.T, rules ...scripted.Rule) ledger.Models {
	t.Helper()
	s, err := scripted.New(rules...)
	if err != nil {
		t.Fatal(err)
	}
	return model{s}
}

func rule(when scripted.When, reply string) scripted.Rule {
	return scripted.Rule{When: when, Reply: &reply}
}

// clustering returns a root model that clusters by the word before a colon.
func clustering() scripted.Rule {
	return rule(scripted.When{Purpose: "root", Any: "Group the failures"}, "```repl\n"+`
import json
rows = [json.loads(line) for line in context.splitlines() if line]
kinds = {}
for row in rows:
    kinds.setdefault(row["error"].split(":")[0], []).append(row["n"])
FINAL([{"name": k, "summary": k, "root_cause": "seen by code", "keywords": [k], "failures": v} `+
		`for k, v in kinds.items()])
`+"\n```")
}

// proposing returns a model that proposes two edits in one call.
func proposing() scripted.Rule {
	return rule(scripted.When{Purpose: "bypass", Any: "Propose up to"}, `[
		{"component": "disk", "kind": "tool_code", "change": "c", "rationale": "r", "prediction": "p",`+
		` "clusters": ["disk"], "impact": 0.25, "effort": "small"},
		{"component": "net", "kind": "middleware", "change": "c", "rationale": "r", "prediction": "p",`+
		` "clusters": ["net"], "impact": 0.5, "effort": "large"}]`)
}

func parse(tb testing.TB, text string) distill.Corpus {
	tb.Helper()
	c, err := distill.Parse(strings.NewReader(text), "auto")
	if err != nil {
		tb.Fatal(err)
	}
	return c
}

// traces returns n failures, four in five from the network and one in five from the disk.
func traces(n int) string {
	var b strings.Builder
	for i := range n {
		kind, why := "net", fmt.Sprintf("connection to 10.0.0.%d refused", i%200)
		if i%5 == 0 {
			kind, why = "disk", fmt.Sprintf("no space left for block %d", i)
		}
		fmt.Fprintf(
			&b, `{"id": "t%d", "component": "tool %s", "error": "%s: %s", "steps": [%d]}`+"\n", i,
			kind, kind, why, i,
		)
	}
	return b.String()
}

func config(models ledger.Models) distill.Config {
	return distill.Config{
		Run: run.Config{
			Models: models, Model: "root", Open: shared.Opener(router.Policy{Pin: "wasm"}),
		},
	}
}

func distilled(t *testing.T, corpus distill.Corpus, cfg distill.Config) distill.Outcome {
	t.Helper()
	r, err := distill.Run(t.Context(), corpus, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// outline returns each cluster as "name count".
func outline(r distill.Outcome) string {
	var parts []string
	for _, c := range r.Clusters {
		parts = append(parts, fmt.Sprint(c.Name, " ", c.Count))
		if len(c.Failures) != c.Count {
			parts = append(parts, "with other failures")
		}
	}
	return strings.Join(parts, ", ")
}

// TestTraceDistiller checks the documented threshold: a model clusters any number of failures, up
// to 500 of them in one call.
func TestTraceDistiller(t *testing.T) {
	direct := rule(scripted.When{Purpose: "bypass", Any: "Group the failures"}, `[{"name": "All.", `+
		`"summary": "s", "root_cause": "r", "keywords": [], "failures": [0, 1, 2]}]`)
	cfg := config(script(t, clustering(), direct))
	cfg.NoEdits = true
	few := distilled(t, parse(t, traces(3)), cfg)
	if few.Method != "rlm" || few.Spent.Calls != 1 || outline(few) != "All. 3" {
		t.Errorf("3 failures give %s by %s: %v", outline(few), few.Method, few.Notes)
	}
	many := distilled(t, parse(t, traces(501)), cfg)
	if many.Method != "rlm" || many.Spent.Calls != 1 ||
		outline(many) != "net 400, disk 101" {
		t.Errorf("501 failures give %s by %s: %v", outline(many), many.Method, many.Notes)
	}
	c := many.Clusters[1]
	if c.RootCause != "seen by code" || c.Components[0] != "tool disk" || c.Failures[1] != "t5" ||
		c.Share != 101.0/501 {
		t.Errorf("a cluster is %+v", c)
	}
	cfg.Run.Triggers.Traces = -1 // runs for clusters are switched off
	off := distilled(t, parse(t, traces(501)), cfg)
	if off.Method != "keywords" || off.Spent.Calls != 0 {
		t.Errorf("switched off it is %s by %s", outline(off), off.Method)
	}
	cfg.Run.Triggers.Traces, cfg.Run.Model = 0, ""
	none := distilled(t, parse(t, traces(501)), cfg)
	if none.Method != "keywords" || len(none.Notes) != 1 ||
		!strings.Contains(none.Notes[0], "name a model") {
		t.Errorf("without a model it is %s by %s: %v", outline(none), none.Method, none.Notes)
	}
}

func TestARunIsCheckedAndCounted(t *testing.T) {
	answer := `[{"name": "a", "summary": "s", "root_cause": "r", "keywords": [], "failures": [0, 1, 1]},
		{"name": "a", "summary": "s", "root_cause": "r", "keywords": [], "failures": [1, 2]},
		{"name": "b", "summary": "s", "root_cause": "r", "keywords": [], "failures": [0]}]`
	cfg := config(script(t, rule(scripted.When{}, "FINAL("+answer+")")))
	cfg.NoEdits, cfg.Run.Triggers.Traces = true, 1
	r := distilled(t, parse(t, traces(6)), cfg)
	if got := outline(r); got != "a 2, a (2) 1, unclustered 3" {
		t.Errorf("got %s: %v", got, r.Notes)
	}
	// A number that belongs to no failure violates the contract, and clustering falls back to
	// words.
	cfg.Run.Models = script(
		t,
		rule(
			scripted.When{},
			`FINAL([{"name": "a", "summary": "s", "root_cause": "r", "keywords": [], "failures": [6]}])`,
		),
	)
	cfg.Run.MaxTurns = 1
	r = distilled(t, parse(t, traces(6)), cfg)
	if r.Method != "keywords" || len(r.Clusters) != 2 || len(r.Notes) != 1 ||
		!strings.Contains(r.Notes[0], "no_answer") {
		t.Errorf("got %s by %s: %v", outline(r), r.Method, r.Notes)
	}
}

// TestEvolveAgent checks the documented edits: a prioritised list of typed proposals, which a run
// makes if there is much evidence.
func TestEvolveAgent(t *testing.T) {
	cfg := config(script(t, clustering(), proposing()))
	cfg.Run.Triggers.Traces = 1
	cfg.Run.Trace = filepath.Join(t.TempDir(), "trace")
	r := distilled(t, parse(t, traces(10)), cfg)
	if len(r.Edits) != 2 || r.Spent.Calls != 2 || r.Notes != nil {
		t.Fatalf("the edits are %+v, after %d calls: %v", r.Edits, r.Spent.Calls, r.Notes)
	}
	first, second := r.Edits[0], r.Edits[1]
	if first.Component != "net" || first.Priority != 1 || first.Gain != 0.4 ||
		len(first.Evidence) != 5 || first.Evidence[0] != "t1" {
		t.Errorf("the first is %+v", first)
	}
	if second.Priority != 2 || second.Gain != 0.05 || fmt.Sprint(second.Evidence) != "[t0 t5]" {
		t.Errorf("the second is %+v", second)
	}
	for _, name := range []string{"", "sub_0001", "sub_0002"} {
		if _, err := os.Stat(filepath.Join(cfg.Run.Trace, name, trajectory.EventsFile)); err != nil {
			t.Error(err)
		}
	}

	// Snippets read evidence that is too large for a prompt.
	reading := rule(scripted.When{Purpose: "root", Any: "Propose up to"}, "```repl\n"+`
import json
clusters = json.loads(str(context))
FINAL([{"component": c["components"][0], "kind": "tool_code", "change": "c", "rationale": `+
		`c["failures"][0]["id"], "prediction": "p",
        "clusters": [c["name"]], "impact": 1, "effort": "small"} for c in clusters])
`+"\n```")
	cfg = config(script(t, clustering(), reading))
	cfg.Run.Triggers.Traces, cfg.Run.Triggers.OutputChars = 1, 100
	r = distilled(t, parse(t, traces(10)), cfg)
	if len(r.Edits) != 2 || r.Edits[0].Component != "tool net" || r.Edits[0].Rationale != "t1" ||
		r.Spent.Calls != 2 {
		t.Errorf("got %+v, %v", r.Edits, r.Notes)
	}
}

// TestRunsCanAskGraphs checks that snippets can call an embedder's query functions, which the
// prompt mentions.
func TestRunsCanAskGraphs(t *testing.T) {
	var asked []string
	query := func(name, signature, answer string) repl.Tool {
		return repl.Tool{
			Name:      name,
			Signature: name + signature,
			Doc:       "Asks the knowledge graph.",
			Call: func(_ context.Context, args map[string]tiers.Value) (tiers.Value, error) {
				asked = append(asked, fmt.Sprintf("%s %s %s", name, args["cypher"], args["sparql"]))
				return tiers.Value(answer), nil
			},
		}
	}
	tools, err := repl.NewTools(
		query("graph_query", "(cypher, params=None)", `[{"cause": "no route"}]`),
		query("owl_query", "(sparql)", `["net"]`),
	)
	if err != nil {
		t.Fatal(err)
	}
	asking := rule(
		scripted.When{Purpose: "root", Any: "Group the failures[\\s\\S]*functions that query"},
		"```repl\n"+`
rows = await graph_query("MATCH (f:Failure) RETURN f.cause AS cause")
names = await owl_query("SELECT ?c WHERE { ?c a ?kind }")
FINAL([{"name": names[0], "summary": "s", "root_cause": rows[0]["cause"], "keywords": [], "failures": [0, 1]}])
`+"\n```",
	)
	cfg := config(script(t, asking))
	cfg.NoEdits, cfg.Run.Triggers.Traces, cfg.Run.Tools = true, 1, tools
	r := distilled(t, parse(t, traces(2)), cfg)
	if outline(r) != "net 2" || r.Clusters[0].RootCause != "no route" {
		t.Errorf("got %s: %+v, %v", outline(r), r.Clusters, r.Notes)
	}
	want := `[graph_query "MATCH (f:Failure) RETURN f.cause AS cause"  owl_query  "SELECT ?c ` +
		`WHERE { ?c a ?kind }"]`
	if fmt.Sprint(asked) != want {
		t.Errorf("asked were %q", asked)
	}
}

func TestTheBudgetIsForAllRuns(t *testing.T) {
	cfg := config(script(t, clustering(), proposing()))
	cfg.Run.Triggers.Traces, cfg.Run.Budget.Calls = 1, 1
	r := distilled(t, parse(t, traces(10)), cfg)
	if r.Method != "rlm" || !r.Partial || len(r.Edits) != 0 || r.Spent.Calls != 1 ||
		!strings.Contains(fmt.Sprint(r.Notes), "used up the budget") {
		t.Errorf("got %+v", r)
	}
	cfg.Run.Models = script(t, rule(scripted.When{}, "```repl\nprint(1)\n```"))
	r = distilled(t, parse(t, traces(10)), cfg)
	if r.Method != "keywords" || !r.Partial || len(r.Clusters) != 2 ||
		!strings.Contains(fmt.Sprint(r.Notes), "ended as partial") {
		t.Errorf("got %s by %s, %v", outline(r), r.Method, r.Notes)
	}
}

func TestBrokenTracesAreErrors(t *testing.T) {
	broken := scripted.Rule{Error: &llm.Error{Kind: llm.ErrServer}}
	cfg := config(script(t, broken))
	r, err := distill.Run(t.Context(), parse(t, traces(10)), cfg)
	if !errors.Is(err, llm.ErrServer) || len(r.Clusters) != 2 {
		t.Errorf("got %+v, %v", r, err)
	}
	for says, change := range map[string]func(*distill.Config){
		"clusters is 1":   func(c *distill.Config) { c.Clusters = 1 },
		"is negative":     func(c *distill.Config) { c.Run.Budget.Calls = -1 },
		"a depth of 9":    func(c *distill.Config) { c.Run.MaxDepth = 9 },
		"price":           func(c *distill.Config) { c.Run.Budget.USD = 1 },
		"clusters is 201": func(c *distill.Config) { c.Clusters = 201 },
	} {
		t.Run(says, func(t *testing.T) {
			cfg := config(script(t, broken))
			change(&cfg)
			_, err := distill.Run(t.Context(), parse(t, traces(2)), cfg)
			if err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %v", says, err)
			}
		})
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	gone := errors.New("gone")
	cancel(gone)
	if _, err := distill.Run(ctx, parse(t, traces(2)), distill.Config{}); !errors.Is(err, gone) {
		t.Errorf("got %v", err)
	}
}

func TestKeywordClustering(t *testing.T) {
	corpus := parse(t, `{"error": "TimeoutError: GET /users/17 took longer than 30s"}
{"error": "TimeoutError: GET /users/9 took longer than 5s", "tool": "http"}
{"error": "KeyError: 'price' in parse_order", "tool": "parser"}
{"error": "KeyError: 'total' in parse_order", "tool": "parser"}
{"error": "数据库连接失败"}
{"error": "数据库连接失败了"}
{"error": "12345"}
`)
	r := distilled(t, corpus, distill.Config{})
	var got strings.Builder
	for _, c := range r.Clusters {
		fmt.Fprintf(&got, "%v %v\n", c.Failures, c.Components)
	}
	want := "[line 1 line 2] [http]\n[line 3 line 4] [parser]\n[line 5 line 6] []\n[line 7] []\n"
	if sortedLines(got.String()) != sortedLines(want) {
		t.Errorf("got\n%s", got.String())
	}
	again := distilled(t, corpus, distill.Config{})
	again.Elapsed = r.Elapsed
	if a, b := jsonOf(t, r), jsonOf(t, again); a != b {
		t.Errorf("the same corpus gives\n%s\nand\n%s", a, b)
	}
}

// TestTheLargestGroupsAreClusters checks that the limit leaves out the rarest failures, not the
// latest, and that their cluster is the last.
func TestTheLargestGroupsAreClusters(t *testing.T) {
	var many strings.Builder
	for _, word := range strings.Fields("alpha beta gamma delta epsilon zeta eta theta theta theta zeta") {
		fmt.Fprintf(&many, "{\"error\": %q}\n", word)
	}
	r := distilled(t, parse(t, many.String()), distill.Config{Clusters: 2})
	if got := outline(r); got != "Theta. 3, Zeta. 2, other 6" {
		t.Errorf("got %s", got)
	}
}

// TestManyDifferentErrorsAreClustered checks the clusters of more errors than are compared with one
// another.
func TestManyDifferentErrorsAreClustered(t *testing.T) {
	var many strings.Builder
	letters := func(i int) string {
		return strings.Map(func(r rune) rune { return 'a' + r - '0' }, fmt.Sprint(10_000+i))
	}
	for i := range 1_500 {
		fmt.Fprintf(&many, "{\"error\": \"the disk %s is full\"}\n", letters(i))
		fmt.Fprintf(&many, "{\"error\": \"user %s timed out after the deadline\"}\n", letters(i))
	}
	r := distilled(t, parse(t, many.String()), distill.Config{Clusters: 3})
	if len(r.Clusters) != 2 || r.Clusters[0].Count != 1_500 || r.Clusters[1].Count != 1_500 {
		t.Errorf("got %s", outline(r))
	}
}

// TestErrorsAreComparedByTheirMessage checks that failures with the same message are in one
// cluster, whatever the form of the error.
func TestErrorsAreComparedByTheirMessage(t *testing.T) {
	c := parse(t, `{"error": {"type": "ToolError", "message": "the flight is sold out", "span": "ab12", "at": 17}}
{"error": {"error": {"message": "the flight is sold out", "type": "ToolError"}, "request": {"a": 1}}}
{"error": "{\"code\": \"ToolError\", \"detail\": \"the flight is sold out\"}"}
{"exception": "Traceback (most recent call last):\n  File \"a.py\", line 3\nlib.ToolError: the flight is sold out"}
{"error_type": "ToolError", "error_message": "the flight is sold out"}
`)
	for i, f := range c.Failures {
		if f.Type != "ToolError" || f.Error != "ToolError: the flight is sold out" {
			t.Errorf("line %d is %q of type %q", i+1, f.Error, f.Type)
		}
	}
	if r := distilled(t, c, distill.Config{}); outline(r) != "ToolError: the flight is sold out. 5" {
		t.Errorf("got %s", outline(r))
	}
}

// TestMarksOfFailures checks the marks that real traces have.
func TestMarksOfFailures(t *testing.T) {
	for line, want := range map[string]string{
		`{"passed": false}`:                             "no error is recorded",
		`{"passed": true, "error": "mended"}`:           "",
		`{"ok": false, "reason": "r"}`:                  "r",
		`{"ok": true, "status": "failed"}`:              "",
		`{"reward": 0.0, "feedback": "f"}`:              "f",
		`{"reward": 0.4}`:                               "no error is recorded",
		`{"reward": 1}`:                                 "",
		`{"level": "ERROR", "statusMessage": "s"}`:      "s",
		`{"level": "DEFAULT"}`:                          "",
		`{"error": true, "reason": "r"}`:                "r",
		`{"error": false}`:                              "",
		`{"error": ""}`:                                 "",
		`{"status": {"code": "ERROR", "message": "m"}}`: "m",
		`{"status": {"code": "STATUS_CODE_OK"}}`:        "",
		`{"status": {"code": "STATUS_CODE_UNSET"}}`:     "",
		`{"outcome": "failed"}`:                         "no error is recorded failed",
		`{"error": {"type": "E", "args": [1]}}`:         `{"type": "E", "args": [1]}`,
		`{"error": {"message": {"message": "deep"}}}`:   "deep",
	} {
		t.Run(line, func(t *testing.T) {
			c := parse(t, line)
			got := ""
			for _, f := range c.Failures {
				got = f.Error
			}
			if got != want {
				t.Errorf("%s: got %q, want %q", line, got, want)
			}
		})
	}
}

// TestEditsAreRepaired checks that any answer that a model means as a list of edits is read as one.
func TestEditsAreRepaired(t *testing.T) {
	const edit = `{"component": "net", "kind": "Tool Code", "change": "c", "clusters": "NET", ` +
		`"impact": "50%", "effort": "low"}`
	good := "net tool_code c [net] 0.5 small"
	for reply, want := range map[string]string{
		"[" + edit + "]": good,
		edit:             good,
		"Here:\n```json\n{\"edits\": [" + edit + "]}\n```\nGood luck!": good,
		`[{"target": "net", "type": "prompt", "edit": "c", "cluster": 1, "impact": 50, ` +
			`"effort": "?"}]`: "net system_prompt c [net] 0.5 medium",
		"[" + edit + `, {"component": "x"}, 7]`: good + "; edit 2 has no \"change\", so it is left out; " +
			"edit 3 is not an object, so it is left out",
		"[]": "",
	} {
		t.Run(fmt.Sprintf("%.60s", reply), func(t *testing.T) {
			cfg := config(script(t, clustering(), rule(scripted.When{Any: "Propose up to"}, reply)))
			cfg.Run.Triggers.Traces = 1
			r := distilled(t, parse(t, traces(10)), cfg)
			var got []string
			for _, e := range r.Edits {
				got = append(got, fmt.Sprint(
					e.Component, " ", e.Kind, " ", e.Change, " ", e.Clusters, " ", e.Impact, " ", e.Effort,
				))
			}
			if text := strings.Join(append(got, r.Notes...), "; "); text != want || r.Spent.Calls != 2 {
				t.Errorf("%s: got %s after %d calls", reply, text, r.Spent.Calls)
			}
		})
	}
}

// TestUnreadableEditsAreAskedForOnce checks that the model is asked once more, with the reason.
func TestUnreadableEditsAreAskedForOnce(t *testing.T) {
	again := rule(scripted.When{Any: "An earlier answer could not be read"},
		`[{"component": "net", "change": "c", "clusters": ["net"]}]`)
	for name, c := range map[string]struct {
		rules []scripted.Rule
		edits int
	}{
		"mended": {[]scripted.Rule{again, rule(scripted.When{Any: "Propose up to"}, `[{"component": "x"}]`)}, 1},
		"never":  {[]scripted.Rule{rule(scripted.When{Any: "Propose up to"}, `I would rather not.`)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := config(script(t, append([]scripted.Rule{clustering()}, c.rules...)...))
			cfg.Run.Triggers.Traces = 1
			r := distilled(t, parse(t, traces(10)), cfg)
			if len(r.Edits) != c.edits || r.Spent.Calls != 3 || (len(r.Notes) == 0) != (c.edits > 0) {
				t.Errorf("%s: got %+v and %v after %d calls", name, r.Edits, r.Notes, r.Spent.Calls)
			}
		})
	}
}

func sortedLines(text string) string {
	lines := strings.Split(text, "\n")
	for i := range lines {
		for j := i + 1; j < len(lines); j++ {
			if lines[j] < lines[i] {
				lines[i], lines[j] = lines[j], lines[i]
			}
		}
	}
	return strings.Join(lines, "\n")
}

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestParse(t *testing.T) {
	c := parse(t, `
{"id": "a", "error": "e", "component": "c"}
{"trace_id": 7, "exception": {"type": "E"}, "agent": "x", "tool": "y"}
{"success": false, "status": "ok"}
{"status": "failed"}
{"status": "Passed", "error": "was mended"}
{"success": true, "error": "e"}
{"steps": []}
{"error": null, "reason": "caf`+"\xe9"+`"}
`)
	want := `a c e|7 x {"type": "E"}|line 4  no error is recorded ok|line 5  no error is ` +
		`recorded failed|line 9  caf` + "\uFFFD"
	var got []string
	for _, f := range c.Failures {
		got = append(got, f.ID+" "+f.Component+" "+f.Error)
	}
	if text := strings.Join(got, "|"); text != want || c.Passed != 3 {
		t.Errorf("got %s, %d passed", text, c.Passed)
	}
	for text, says := range map[string]string{
		"":                   "has no traces",
		"\n\n":               "has no traces",
		"{}\n[1]\n":          "line 2: $: must be object",
		"{}\n{\n":            "line 2: $: the value is not JSON",
		`{"id": 1, "id": 2}`: "line 1: $",
		strings.Repeat(`{"a":`, 5000) + "1" + strings.Repeat("}", 5000): "nested deeper",
		"{}\n{\"a\": \"" + strings.Repeat("x", 1<<20) + "\"}":           "line 2 has more than 1048576 bytes",
		strings.Repeat("{}\n", 100_001):                                 "more than 100000",
	} {
		t.Run(fmt.Sprintf("%.60s", text), func(t *testing.T) {
			_, err := distill.Parse(strings.NewReader(text), "auto")
			if err == nil || !strings.Contains(err.Error(), says) {
				t.Errorf("%.40q: %v, want %q", text, err, says)
			}
		})
	}
	if c := parse(t, "{}\n"); len(c.Failures) != 0 || c.Passed != 1 {
		t.Errorf("an empty trace is %+v", c)
	}
	r := distilled(t, parse(t, "{}\n"), distill.Config{})
	if jsonOf(t, r.Clusters) != "[]" || jsonOf(t, r.Edits) != "[]" || r.Passed != 1 {
		t.Errorf("nothing to distil is %+v", r)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(traces(3)))
	f.Add([]byte("{\"success\": false}\r\n\xff{\"error\": [1, {}]}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := distill.Parse(bytes.NewReader(data), "auto")
		if err != nil {
			return
		}
		r, err := distill.Run(t.Context(), c, distill.Config{})
		if err != nil {
			t.Fatal(err)
		}
		n := 0
		for _, c := range r.Clusters {
			n += c.Count
		}
		if n != len(c.Failures) || len(r.Clusters) > 20 {
			t.Errorf("%d failures are %d in %d clusters", len(c.Failures), n, len(r.Clusters))
		}
	})
}

// BenchmarkKeywords measures clustering 5,000 failures of 150 different kinds.
func BenchmarkKeywords(b *testing.B) {
	var text strings.Builder
	for i := range 5_000 {
		fmt.Fprintf(
			&text, `{"error": "ValueError: field%c%c of %c%c%c is no number: %d"}`+"\n", 'a'+i%15,
			'a'+i%10, 'a'+i%3, 'k'+i%5, 'f'+i%7, i,
		)
	}
	corpus := parse(b, text.String())
	for b.Loop() {
		if _, err := distill.Run(b.Context(), corpus, distill.Config{Clusters: 200}); err != nil {
			b.Fatal(err)
		}
	}
}
