package run_test

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/run"
	"github.com/rlmhq/rlm/tiers"
)

// twoTools returns the tools price and secret.
func twoTools(t *testing.T) *repl.Tools {
	t.Helper()
	var all []repl.Tool
	for _, name := range []string{"price", "secret"} {
		all = append(all, repl.Tool{
			Name: name, Doc: "a tool.",
			Call: func(context.Context, map[string]tiers.Value) (tiers.Value, error) {
				return tiers.Value(`"` + name + `"`), nil
			},
		})
	}
	tools, err := repl.NewTools(all...)
	if err != nil {
		t.Fatal(err)
	}
	return tools
}

// deeper returns a configuration whose loops at depth N reply with the N-th of sources.
func deeper(t *testing.T, sources ...string) run.Config {
	t.Helper()
	m := &models{byPurpose: func(r llm.Request) (llm.Response, bool) {
		return llm.Response{Text: code(sources[r.Metadata.Depth])}, true
	}}
	cfg := config(m)
	cfg.Tools, cfg.MaxDepth = twoTools(t), len(sources)-1
	cfg.Agents = map[string]repl.Agent{
		"clerk": {System: "You are a clerk.", Tools: []string{"price"}},
		"poet":  {System: "You are a poet."},
	}
	return cfg
}

const listTools = "FINAL(str([n for n in ('price', 'secret') if n in globals()]))"

func TestAgentsAndTheirSubLoopsHaveOnlyTheAgentsTools(t *testing.T) {
	const asked = "FINAL(rlm_query('q', 'c'))"
	answered(t, deeper(t, "FINAL(sub_agent_call('q', 'clerk'))", listTools), "['price']")
	answered(t, deeper(t, "FINAL(sub_agent_call('q', 'clerk'))", asked, listTools), "['price']")
	answered(t, deeper(t, "FINAL(sub_agent_call('q', 'clerk'))",
		"FINAL(sub_agent_call('q', 'recursive_reasoner'))", listTools), "['price']")
	answered(t, deeper(t, "FINAL(sub_agent_call('q', 'recursive_reasoner'))", listTools),
		"['price', 'secret']")
}

func TestTheConfigurationMayReplaceTheReasoner(t *testing.T) {
	cfg := deeper(t, "FINAL(sub_agent_call('q', 'recursive_reasoner'))", listTools)
	cfg.Agents["recursive_reasoner"] = repl.Agent{System: "Think.", Tools: []string{"secret"}}
	answered(t, cfg, "['secret']")
}

func TestTheReasonerAsksOnceAtTheGreatestDepth(t *testing.T) {
	m := &models{
		script: []string{code("FINAL(sub_agent_call('q', 'recursive_reasoner', 'c'))")},
		sub:    leafOf,
	}
	cfg := config(m)
	cfg.MaxDepth = -1
	answered(t, cfg, "re: q\n\nContext:\nc")
}

func TestAgentsSpendTheBudgetOfTheRun(t *testing.T) {
	cfg := deeper(t, "try:\n    for _ in range(9): sub_agent_call('q', 'recursive_reasoner')\n"+
		"except Exception as e:\n    FINAL('budget' in str(e))", "FINAL(1)")
	cfg.Budget.Calls = 4
	if outcome := solve(t, cfg); outcome.Spent.Calls > 4 || outcome.Loops != 2 {
		t.Errorf("%d calls and %d loops", outcome.Spent.Calls, outcome.Loops)
	}
}

func TestAgentsAreNamedInEventsAndInTheRecord(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	m := &models{
		script: []string{code("FINAL([sub_agent_call('q', 'clerk'), sub_agent_call('p', 'poet')])")},
		sub:    leafOf,
		byPurpose: func(r llm.Request) (llm.Response, bool) {
			return llm.Response{Text: code("FINAL('ok')")}, r.Metadata.Depth == 1
		},
	}
	cfg := config(m)
	cfg.Tools, cfg.Agents = twoTools(t), map[string]repl.Agent{
		"clerk": {System: "You are a clerk.", Tools: []string{"price"}},
		"poet":  {System: "You are a poet."},
	}
	cfg.Trace = filepath.Join(t.TempDir(), "trace")
	cfg.Progress = func(e ledger.Event) {
		mu.Lock()
		defer mu.Unlock()
		if e.Agent != "" {
			seen = append(seen, string(e.Kind)+" "+e.Agent)
		}
	}
	answered(t, cfg, `["ok", "re: p"]`)

	for _, want := range []string{"loop_started clerk", "loop_ended clerk", "call poet"} {
		if !slices.Contains(seen, want) {
			t.Errorf("there is no event %q: %q", want, seen)
		}
	}
	for file, want := range map[string]string{
		"trajectory.jsonl":          `"agent":"clerk"},{`,
		"sub_0001/trajectory.jsonl": `"environment_kwargs":{"agent":"clerk",`,
	} {
		t.Run(file, func(t *testing.T) {
			data, err := os.ReadFile(filepath.Join(cfg.Trace, file))
			if err != nil || !strings.Contains(string(data), want) {
				t.Errorf("%s lacks %s: %v", file, want, err)
			}
		})
	}
}
