package run_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/run"
)

// hasty returns a run with little time, whose sub-calls last until the time ends.
func hasty(m *models) run.Config {
	slow(m, make(chan struct{}, 100))
	cfg := config(m)
	cfg.Budget.Wall = 6 * time.Second
	return cfg
}

func TestTheTimeReservesTheRootsLastWord(t *testing.T) {
	const nearly = "the time was nearly used up"
	for name, c := range map[string]struct {
		source string
		told   string
	}{
		"a sub-call gets a notice": {
			"print('told:', llm_query('endless'))", "told: (No answer: the run's budget of 6 seconds",
		},
		"calls that have ended keep their answers": {
			"print(await asyncio.gather(*[llm_query(q) for q in ['quick', 'endless']]))", "'re: quick', ",
		},
		"a sub-loop ends": {
			"rlm_query('x', 'y')", "\"(No answer: the run's budget of 6 seconds",
		},
		"a snippet is stopped": {
			"print('found', 7)\nwhile True: pass",
			"Your code was stopped, because the time of the run is nearly used up. What it wrote:\nfound 7",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &models{script: []string{code(c.source), "FINAL('late')"}}
			if strings.Contains(c.source, "rlm_query") {
				m.script = slices.Insert(m.script, 1, code("llm_query('endless')"))
			}
			outcome := solve(t, hasty(m))
			if outcome.Status != ledger.StatusSynthesised || outcome.Text() != "late" || outcome.Reason != nearly {
				t.Fatalf("the run ended as %s with %s: %s", outcome.Status, outcome.Answer, outcome.Reason)
			}
			asked := m.requests[len(m.requests)-1]
			if told := last(asked); asked.Metadata.Purpose != "synthesis" || !strings.Contains(told, c.told) ||
				!strings.Contains(told, "You have no time left.") {
				t.Errorf("the last question was %q", told)
			}
		})
	}
}

func TestARunWithoutALastWordIsPartial(t *testing.T) {
	t.Parallel()
	m := &models{script: []string{code("answer['content'] = 'so far'\nllm_query('endless')"), "FINAL(nothing)"}}
	outcome := solve(t, hasty(m))
	if outcome.Status != ledger.StatusPartial || outcome.Partial != "so far" ||
		!strings.Contains(outcome.Reason, "seconds") {
		t.Errorf("the run ended as %+v", outcome)
	}
}
