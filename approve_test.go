package rlm_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/internal/testing/testcache"
	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/run"
	"github.com/rlmhq/rlm/store"
	"github.com/rlmhq/rlm/tiers"
)

// approvedTurns make two concurrent calls of a tool that needs approval, during a model call, and
// use the results in the next turn.
var approvedTurns = []string{
	"```repl\nfrom concurrent.futures import ThreadPoolExecutor\ndef send(to):\n    try:\n        return mail(to)\n" +
		"    except Exception as e:\n        return str(e)\n" +
		"with ThreadPoolExecutor(3) as pool:\n    paid = pool.submit(llm_query, 'paid once')\n" +
		"    sent = list(pool.map(send, ['ann', 'bob']))\nprint(sent, paid.result())\n```",
	"```repl\nFINAL([sent, paid.result()])\n```",
}

// approvedRun is a durable run whose tool mail needs a person's approval.
type approvedRun struct {
	durableRun

	sent    atomic.Int64
	approve func(ctx context.Context, call tiers.Call, spent ledger.Spending) error
}

func newApprovedRun(t *testing.T) *approvedRun {
	t.Helper()
	a := &approvedRun{durableRun: durableRun{
		dir: t.TempDir(), model: &counting{turns: approvedTurns, asked: map[string]int{}},
	}}
	a.approve = func(_ context.Context, call tiers.Call, _ ledger.Spending) error {
		return fmt.Errorf("a mail to %s: %w", call.Args[0], repl.ErrLater)
	}
	return a
}

// answer runs one process of the named run. If the name is empty, the run is not durable.
func (a *approvedRun) answer(t *testing.T, name string) (rlm.Outcome, error) {
	t.Helper()
	return a.process(t, 1000, func(task *rlm.Task) {
		task.Name = name
		task.Config = run.Config{
			Question: "why?", Models: a.model, Model: "test/m", Bypass: -1, Approve: a.approve,
		}
		task.Functions = []rlm.Function{rlm.Func("mail", "Sends a mail.",
			func(_ context.Context, call tiers.Call) (tiers.Value, error) {
				a.sent.Add(1)
				return tiers.Value(`"sent to ` + strings.Trim(string(call.Args[0]), `"`) + `"`), nil
			})}
	})
}

// withEngine calls use with a separate engine that uses the same store.
func (a *approvedRun) withEngine(t *testing.T, use func(*rlm.Engine)) {
	t.Helper()
	engine, err := rlm.New(rlm.Options{CacheDir: testcache.Dir(), Store: store.Folder(a.dir)})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	use(engine)
}

func TestACallWaitsForAPerson(t *testing.T) {
	a := newApprovedRun(t)
	for range 2 { // the second process still finds no decision
		outcome, err := a.answer(t, "a")
		if err != nil || outcome.Status != ledger.StatusParked || outcome.Partial != "" || a.sent.Load() != 0 {
			t.Fatalf("%+v, %v, %d sent", outcome, err, a.sent.Load())
		}
	}
	if a.model.asked["paid once"] != 1 || a.model.asked["turn 1"] != 1 {
		t.Errorf("paid twice: %v", a.model.asked)
	}

	a.withEngine(t, func(engine *rlm.Engine) {
		runs, err := engine.Runs(t.Context(), rlm.RunFilter{Status: "parked"})
		if err != nil || len(runs) != 1 || len(runs[0].Waiting) != 2 {
			t.Fatalf("%+v, %v", runs, err)
		}
		for _, w := range runs[0].Waiting {
			d := rlm.Decision{Allow: true}
			if strings.Contains(string(w.Call), "bob") {
				d = rlm.Decision{Reason: "bob is away"}
			}
			if name, err := engine.Decide(t.Context(), w.ID, d); name != "a" || err != nil {
				t.Errorf("%s: %q, %v", w.ID, name, err)
			}
		}
		if known, err := engine.ShowRun(t.Context(), "a"); err != nil || known.Status != "interrupted" {
			t.Errorf("after the decisions: %+v, %v", known, err)
		}
	})

	for range 2 {
		outcome, err := a.answer(t, "a")
		got := strings.ReplaceAll(string(outcome.Answer), ", ", ",")
		want := `[["sent to ann","the call of mail was denied: bob is away"],"PAID ONCE"]`
		if err != nil || got != want || a.sent.Load() != 1 || a.model.asked["paid once"] != 1 {
			t.Errorf("%s, %+v, %v, %d sent, %v", got, outcome, err, a.sent.Load(), a.model.asked)
		}
		if outcome.Spent.ToolCalls != 1 {
			t.Errorf("one call was made, and the budget counts %d", outcome.Spent.ToolCalls)
		}
	}
	a.withEngine(t, func(engine *rlm.Engine) {
		if known, err := engine.ShowRun(t.Context(), "a"); err != nil || known.Spent.ToolCalls != 1 {
			t.Errorf("the store counts %+v, %v", known.Spent, err)
		}
	})
}

func TestADecisionCanBeTheAnswer(t *testing.T) {
	a := newApprovedRun(t)
	if outcome, err := a.answer(t, "a"); err != nil || outcome.Status != ledger.StatusParked {
		t.Fatalf("%+v, %v", outcome, err)
	}
	a.withEngine(t, func(engine *rlm.Engine) {
		known, err := engine.ShowRun(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		for i, w := range known.Waiting {
			d := rlm.Decision{Allow: true, Value: fmt.Appendf(nil, `"by hand %d"`, i)}
			if _, err := engine.Decide(t.Context(), w.ID, d); err != nil {
				t.Fatal(err)
			}
		}
	})
	outcome, err := a.answer(t, "a")
	if err != nil || strings.Count(string(outcome.Answer), "by hand") != 2 || a.sent.Load() != 0 {
		t.Errorf("%s, %v, %d sent", outcome.Answer, err, a.sent.Load())
	}
}

func TestACallThatCannotWaitIsNotMade(t *testing.T) {
	a := newApprovedRun(t)
	outcome, err := a.answer(t, "")
	if err != nil || strings.Count(string(outcome.Answer), "a run without a name cannot wait") != 2 ||
		a.sent.Load() != 0 {
		t.Errorf("%s, %v, %d sent", outcome.Answer, err, a.sent.Load())
	}
	a.approve = func(context.Context, tiers.Call, ledger.Spending) error { return errors.New("never") }
	outcome, err = a.answer(t, "b")
	if err != nil || strings.Count(string(outcome.Answer), "never") != 2 || a.sent.Load() != 0 {
		t.Errorf("%s, %v, %d sent", outcome.Answer, err, a.sent.Load())
	}

	a.withEngine(t, func(engine *rlm.Engine) {
		session, err := engine.Open(t.Context(), rlm.SessionConfig{
			Ask: run.Config{Approve: a.approve},
			Functions: []rlm.Function{rlm.Func("mail", "Sends a mail.",
				func(context.Context, struct{}) (int, error) { a.sent.Add(1); return 1, nil })},
		})
		if err != nil {
			t.Fatal(err)
		}
		defer session.Close()
		result, err := session.Run(t.Context(), "mail()")
		if err != nil || result.Exception == nil || !strings.Contains(result.Exception.Message, "never") ||
			a.sent.Load() != 0 {
			t.Errorf("%+v, %v", result.Exception, err)
		}
	})
}
