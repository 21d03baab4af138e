package rlm_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/standard"
	"github.com/rlmhq/rlm/tiers"
)

// newEngine returns an engine that closes with the test.
func newEngine(t *testing.T, options rlm.Options) *rlm.Engine {
	t.Helper()
	engine, err := rlm.New(options)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	})
	return engine
}

// openCrowd opens one session for each caller, all in one new engine.
func openCrowd(
	t *testing.T, options rlm.Options, callers int, cfg rlm.SessionConfig,
) []*rlm.Session {
	t.Helper()
	engine := newEngine(t, options)
	sessions := make([]*rlm.Session, callers)
	for i := range sessions {
		var err error
		if sessions[i], err = engine.Open(t.Context(), cfg); err != nil {
			t.Fatal(err)
		}
		if _, err := sessions[i].Run(t.Context(), "x = 1"); err != nil {
			t.Fatal(err)
		}
	}
	return sessions
}

// TestTheClockOfASnippetStandsStillWhileOthersCompute runs snippets concurrently on one processor.
// Each clock counts only the time in which its own snippet has a slot, so their sum is at most the
// elapsed time.
func TestTheClockOfASnippetStandsStillWhileOthersCompute(t *testing.T) {
	const callers = 16
	sessions := openCrowd(t, rlm.Options{Processors: 1}, callers, rlm.SessionConfig{})
	usages := make([]tiers.Usage, callers)

	begun := time.Now()
	var wait sync.WaitGroup
	for i, s := range sessions {
		wait.Go(func() {
			r, err := s.Run(t.Context(), "t = 0\nfor i in range(300_000): t += i\nprint(t)")
			if err != nil || r.Status != tiers.StatusOK {
				t.Errorf("%+v, %v", r.Result, err)
			}
			usages[i] = r.Usage
		})
	}
	wait.Wait()
	passed := time.Since(begun)

	var walls, queued time.Duration
	for _, u := range usages {
		walls, queued = walls+u.Wall, queued+u.Queued
	}
	if walls > passed+passed/10 || queued < walls {
		t.Errorf("in %s, the clocks of %d snippets counted %s, and they waited %s",
			passed, callers, walls, queued)
	}
}

// TestSnippetsRunBesideEndlessOnes checks that the snippets of a session end while as many endless
// snippets as there are processors compute. If they waited for the endless ones, their context
// would end.
func TestSnippetsRunBesideEndlessOnes(t *testing.T) {
	const processors = 2
	begun := make(chan struct{}, processors)
	sessions := openCrowd(t, rlm.Options{Processors: processors}, processors+1, rlm.SessionConfig{
		Limits: tiers.Limits{Wall: time.Hour},
		Functions: []rlm.Function{rlm.Func("computes", "", func(context.Context, struct{}) (int, error) {
			begun <- struct{}{}
			return 0, nil
		})},
	})

	ctx, stop := context.WithCancel(t.Context())
	var ended atomic.Int32
	var wait sync.WaitGroup
	for _, s := range sessions[1:] {
		wait.Go(func() {
			_, err := s.Run(ctx, "for n in range(100_000): pass\ncomputes()\nwhile True: pass")
			ended.Add(1)
			if !errors.Is(err, context.Canceled) {
				t.Errorf("an endless snippet ended with %v", err)
			}
		})
	}
	for range processors {
		<-begun
	}

	patient, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for range 50 {
		if r, err := sessions[0].Run(patient, "x += 1"); err != nil || r.Status != tiers.StatusOK {
			t.Errorf("%+v, %v", r.Result, err)
		}
	}
	if n := ended.Load(); n > 0 {
		t.Errorf("%d endless snippets have ended", n)
	}
	stop()
	wait.Wait()
}

// TestASnippetThatWaitsLeavesItsProcessor checks that, on one processor, a host function can run a
// snippet of another session, like a loop's sub-call.
func TestASnippetThatWaitsLeavesItsProcessor(t *testing.T) {
	for _, tier := range []string{rlm.TierWasm, rlm.TierLocal} {
		t.Run(tier, func(t *testing.T) { runInsideAHostCall(t, tier) })
	}
}

func runInsideAHostCall(t *testing.T, tier string) {
	t.Helper()
	engine := newEngine(t, rlm.Options{Processors: 1, Tiers: standard.Tiers(standard.Options{})})
	for _, known := range engine.Tiers() {
		if known.Info().Name == tier {
			skip.WithoutTier(t, tier, known.Probe(t.Context()))
		}
	}
	policy := rlm.Policy{Pin: tier, AllowLocal: true}
	open := func(functions ...rlm.Function) *rlm.Session {
		s, err := engine.Open(t.Context(), rlm.SessionConfig{Functions: functions, Policy: policy})
		if err != nil {
			t.Fatal(err)
		}
		return s
	}

	inner := open()
	outer := open(rlm.Func("sub", "Runs a snippet.",
		func(ctx context.Context, in struct {
			Source string `json:"source"`
		},
		) (string, error) {
			r, err := inner.Run(ctx, in.Source)
			return r.Stdout, err
		}))
	for _, source := range []string{
		"print(sub('print(1)'), end='')",
		"import asyncio\nprint((await asyncio.gather(sub('print(1)')))[0], end='')",
	} {
		r, err := outer.Run(t.Context(), source)
		if err != nil || r.Stdout != "1\n" {
			t.Errorf("%s: %+v, %v", source, r.Result, err)
		}
	}
}

// TestAWriterThatBlocksHoldsNoProcessor checks that an output writer can run a snippet of another
// session.
func TestAWriterThatBlocksHoldsNoProcessor(t *testing.T) {
	sessions := openCrowd(t, rlm.Options{Processors: 1}, 2, rlm.SessionConfig{})
	var inner string
	writer := writerFunc(func([]byte) {
		r, err := sessions[1].Run(t.Context(), "print(x)")
		if err != nil {
			t.Error(err)
		}
		inner = r.Stdout
	})
	r, err := sessions[0].RunJob(t.Context(), tiers.Job{Source: "print('out')", Stdout: writer})
	if err != nil || r.Stdout != "out\n" || inner != "1\n" {
		t.Errorf("%q, %q, %v", r.Stdout, inner, err)
	}
}

func TestAFullQueueIsBusy(t *testing.T) {
	sessions := openCrowd(
		t, rlm.Options{Processors: 1, Queue: 2}, 12, rlm.SessionConfig{},
	)
	var wait sync.WaitGroup
	errs := make([]error, len(sessions))
	for i, s := range sessions {
		wait.Go(func() {
			_, errs[i] = s.Run(t.Context(), "for i in range(1_000_000): pass")
		})
	}
	wait.Wait()

	busy := 0
	for _, err := range errs {
		var broken *tiers.BrokenError
		switch {
		case err == nil:
		case errors.Is(err, rlm.ErrBusy) && errors.As(err, &broken) &&
			broken.Effects == tiers.EffectsNeverRan:
			busy++
		default:
			t.Error(err)
		}
	}
	if busy == 0 || busy > len(sessions)-3 {
		t.Errorf("%d of %d snippets were refused", busy, len(sessions))
	}
	for _, s := range sessions {
		if r, err := s.Run(t.Context(), "print(x)"); err != nil || r.Stdout != "1\n" {
			t.Errorf("a session is unusable after the crowd has gone: %+v, %v", r.Result, err)
		}
	}
}

// TestSessionsShareTheMemoryOfTheEngine opens sessions, forks and loops until all memory is lent,
// and opens more after some have closed.
func TestSessionsShareTheMemoryOfTheEngine(t *testing.T) {
	ctx := t.Context()
	engine := newEngine(t, rlm.Options{Memory: 256 << 20})
	cfg := rlm.SessionConfig{Limits: tiers.Limits{Memory: 128 << 20}}
	open := func() (*rlm.Session, error) { return engine.Open(ctx, cfg) }

	first, err := open()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := first.Run(ctx, "x = 1"); err != nil {
		t.Fatal(err)
	}
	fork, err := first.Fork(ctx)
	if err != nil {
		t.Fatal(err)
	}

	opener := engine.Opener(rlm.Policy{})
	_, errOpen := open()
	_, errFork := first.Fork(ctx)
	_, errLoop := opener(ctx, tiers.Config{Limits: cfg.Limits})
	for i, err := range []error{errOpen, errFork, errLoop} {
		if !errors.Is(err, rlm.ErrBusy) {
			t.Errorf("attempt %d beyond the memory: %v", i, err)
		}
	}

	if err := errors.Join(fork.Close(), fork.Close()); err != nil { // the second frees nothing
		t.Fatal(err)
	}
	runner, err := opener(ctx, tiers.Config{Limits: cfg.Limits})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := open(); !errors.Is(err, rlm.ErrBusy) {
		t.Errorf("beside a session and a loop: %v", err)
	}
	if err := runner.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := open(); err != nil {
		t.Errorf("after the loop: %v", err)
	}
}

func TestOptionsMustNotBeNegative(t *testing.T) {
	for _, options := range []rlm.Options{{Processors: -1}, {Queue: -1}, {Memory: -1}} {
		if _, err := rlm.New(options); err == nil {
			t.Errorf("%s was accepted", fmt.Sprint(options))
		}
	}
}
