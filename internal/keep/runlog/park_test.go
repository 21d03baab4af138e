package runlog

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/keep/store"
)

// begin begins the step that waits.
func (p *process) begin(ctx context.Context) *Step {
	p.t.Helper()
	step, err := Begin(ctx, func() Request { return Request{What: "send", Digest: "send", About: "send it"} })
	if err != nil {
		p.t.Fatal(err)
	}
	return step
}

// park parks the run, like a process that reaches the waiting step.
func (p *process) park(ctx context.Context) Question {
	p.t.Helper()
	step := p.begin(ctx)
	defer step.Leave()
	var parked *ParkedError
	if err := step.Park(ctx, []byte(`{"to":"all"}`), "it is for many"); !errors.As(err, &parked) {
		p.t.Fatalf("got %v", err)
	}
	if !errors.As(context.Cause(ctx), &parked) || !errors.As(p.j.Commit(ctx, Commit{Turn: 1}), &parked) {
		p.t.Error("a parked run goes on")
	}
	if err := p.j.Close(StatusParked, parked.Error()); err != nil {
		p.t.Fatal(err)
	}
	return parked.Questions[0]
}

func TestAStepWaitsForADecision(t *testing.T) {
	dir := t.TempDir()
	var q Question
	inProcess(t, dir, func(ctx context.Context, p *process) { q = p.park(ctx) })

	// Without a decision, the next process asks again.
	inProcess(t, dir, func(ctx context.Context, p *process) {
		if again := p.park(ctx); again.ID != q.ID {
			t.Errorf("%+v, want %+v", again, q)
		}
		open, err := Questions(t.Context(), p.s, "")
		if err != nil || len(open) != 1 || open[0].ID != q.ID || string(open[0].Call) != `{"to":"all"}` ||
			open[0].Why != "it is for many" {
			t.Errorf("%+v, %v", open, err)
		}
		long := strings.Repeat("x", maxDecision+1)
		for want, err := range map[string]error{
			"no parked run waits": errOf(Decide(t.Context(), p.s, "nothing", Decision{})),
			"is not JSON":         errOf(Decide(t.Context(), p.s, q.ID, Decision{Value: []byte("x")})),
			"more than":           errOf(Decide(t.Context(), p.s, q.ID, Decision{Reason: long})),
		} {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%v, want %s", err, want)
			}
		}

		if _, err := Decide(t.Context(), p.s, q.ID, Decision{Allow: true}); err != nil {
			t.Fatal(err)
		}
		if _, err := Decide(t.Context(), p.s, q.ID, Decision{}); err == nil {
			t.Error("a question is decided twice")
		}
		log, _, err := Show(t.Context(), p.s, runA.Name)
		if err != nil || log.Status != StatusInterrupted {
			t.Errorf("after the decision: %+v, %v", log, err)
		}
	})

	// A step may wait a second time. After the decision, its ending is known.
	inProcess(t, dir, func(ctx context.Context, p *process) {
		if again := p.decided(ctx, true); again.ID == q.ID {
			t.Errorf("two questions have the ID %s", q.ID)
		}
	})
	inProcess(t, dir, func(ctx context.Context, p *process) {
		step := p.begin(ctx)
		defer step.Leave()
		if d := step.Decision(); d == nil || d.Allow || d.Reason != "no" {
			t.Errorf("%+v", d)
		}
		if err := step.End(ctx, "denied", store.Cost{}); err != nil {
			t.Error(err)
		}
	})
	inProcess(t, dir, func(ctx context.Context, p *process) {
		if _, isKnown := p.begin(ctx).Ending(); !isKnown {
			t.Error("the step has no ending")
		}
	})
}

// decided parks the run again after a decision, and decides against it.
func (p *process) decided(ctx context.Context, allowed bool) Question {
	p.t.Helper()
	step := p.begin(ctx)
	if d := step.Decision(); d == nil || d.Allow != allowed {
		p.t.Fatalf("%+v", d)
	}
	var parked *ParkedError
	if err := step.Park(ctx, []byte(`1`), "later"); !errors.As(err, &parked) {
		p.t.Fatalf("got %v", err)
	}
	err := p.j.Close(StatusParked, "")
	if err == nil {
		err = errOf(Decide(p.t.Context(), p.s, parked.Questions[0].ID, Decision{Reason: "no"}))
	}
	if err != nil {
		p.t.Fatal(err)
	}
	return parked.Questions[0]
}

func errOf(_ Question, err error) error { return err }

// TestCallsInFlightEndBeforeParking checks that a run is parked once its other steps have ended,
// and that questions that arrive in the meantime are asked together.
func TestCallsInFlightEndBeforeParking(t *testing.T) {
	dir := t.TempDir()
	inProcess(t, dir, func(ctx context.Context, p *process) {
		slow, err := Begin(At(ctx, "slow"), func() Request { return Request{Digest: "slow"} })
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 2)
		for _, name := range []string{"one", "two"} {
			at := At(ctx, "%s", name)
			step := p.begin(at)
			go func() {
				defer step.Leave()
				ended <- step.Park(at, []byte(`1`), name)
			}()
		}
		if err := slow.End(ctx, "paid", store.Cost{Calls: 1}); err != nil || ctx.Err() != nil {
			t.Errorf("the slow step: %v, %v", err, ctx.Err())
		}
		slow.Leave()

		for range 2 {
			var parked *ParkedError
			if err := <-ended; !errors.As(err, &parked) || len(parked.Questions) != 2 {
				t.Errorf("got %v", err)
			}
		}
	})
	inProcess(t, dir, func(ctx context.Context, _ *process) {
		slow, err := Begin(At(ctx, "slow"), func() Request { return Request{Digest: "slow"} })
		if _, isKnown := slow.Ending(); err != nil || !isKnown {
			t.Errorf("the slow step is begun again: %v", err)
		}
	})
}

func TestAStepWithoutARunLogCannotWait(t *testing.T) {
	var none *Step
	none.Leave()
	if err := none.Park(t.Context(), nil, ""); !errors.Is(err, ErrCannotWait) || none.Decision() != nil {
		t.Errorf("got %v", err)
	}
}

// FuzzQuestion checks that any entry is refused, or is a question no larger than the entry.
func FuzzQuestion(f *testing.F) {
	f.Add([]byte(`{"id":"x","run":"a","call":{"a":[1]},"why":"y","asked":"2026-01-02T03:04:05Z"}`))
	f.Add([]byte(`{"id":"x"} {}`))
	f.Add([]byte(`{"asked":"yesterday"}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var q Question
		err := decodeStrictly(data, &q)
		if err != nil && !errors.Is(err, store.ErrDamaged) {
			t.Errorf("%v", err)
		}
		if parts := slices.Concat([]byte(q.ID+q.Run+q.Why), q.Call); err == nil && len(parts) > 4*len(data) {
			t.Errorf("%d bytes become %+v", len(data), q)
		}
	})
}
