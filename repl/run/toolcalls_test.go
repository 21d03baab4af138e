package run_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/tiers"
)

// TestToolCallsAreCountedInTheWholeTree checks that a sub-loop may make the calls that the root did
// not use, and that any further call raises an exception.
func TestToolCallsAreCountedInTheWholeTree(t *testing.T) {
	cfg := deeper(t, "price()\nsecret()\nFINAL(rlm_query('q', 'c'))",
		"try:\n    for n in range(9): price()\nexcept Exception as e:\n    FINAL(f'{n}: {e}')")
	cfg.Agents = nil
	cfg.Budget.ToolCalls = 5
	cfg.Trace = filepath.Join(t.TempDir(), "trace")

	var mu sync.Mutex
	var nodes, refusals []string
	cfg.Progress = func(e ledger.Event) {
		mu.Lock()
		defer mu.Unlock()
		switch e.Kind { //nolint:exhaustive // the others are not about tools
		case ledger.EventTool:
			nodes = append(nodes, e.Node+" "+e.Text)
			if e.Used.ToolCalls != 1 || e.Spent.ToolCalls != int64(len(nodes)) {
				t.Errorf("used %+v, spent %+v", e.Used, e.Spent)
			}
		case ledger.EventRefusal:
			refusals = append(refusals, e.Error)
		}
	}

	outcome := answered(t, cfg, "3: the run's budget of 5 tool calls is used up (5 used, 1 more needed)")
	if outcome.Spent.ToolCalls != 5 || outcome.Budget.ToolCalls != 5 {
		t.Errorf("spent %+v of %+v", outcome.Spent, outcome.Budget)
	}
	if text := outcome.Spent.String(); !strings.HasSuffix(text, ", 5 tool calls") {
		t.Error(text)
	}
	const want = "0 price()\n0 secret()\n0.1 price()\n0.1 price()\n0.1 price()"
	if got := strings.Join(nodes, "\n"); got != want {
		t.Errorf("the events are %s", got)
	}
	if len(refusals) != 1 || !strings.HasPrefix(refusals[0], "price: the run's budget") {
		t.Errorf("%q", refusals)
	}

	record, err := os.ReadFile(filepath.Join(cfg.Trace, "events.jsonl"))
	if err != nil || strings.Count(string(record), `"kind":"tool"`) != 5 {
		t.Errorf("%v, the record is %s", err, record)
	}
}

// TestTimedToolsAreFree checks that timed tools do not use the budget, because the snippet's limits
// bound them.
func TestTimedToolsAreFree(t *testing.T) {
	cfg := config(&models{script: []string{code("FINAL(sum(count() for _ in range(3)))")}})
	var err error
	cfg.Tools, err = repl.NewTools(repl.Tool{
		Name: "count", Timed: true,
		Call: func(context.Context, map[string]tiers.Value) (tiers.Value, error) { return tiers.Value("1"), nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	cfg.Budget.ToolCalls = 1
	if outcome := answered(t, cfg, "3"); outcome.Spent.ToolCalls != 0 {
		t.Errorf("spent %+v", outcome.Spent)
	}
}
