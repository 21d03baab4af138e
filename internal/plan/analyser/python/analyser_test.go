package python

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/rlmhq/rlm/internal/snippet/fairqueue"
	"github.com/rlmhq/rlm/internal/snippet/labels"
	"github.com/rlmhq/rlm/router"
	"github.com/rlmhq/rlm/tiers"
)

func TestAnalyseIsSafeForConcurrentUse(t *testing.T) {
	a, _ := open(t)
	var wg sync.WaitGroup
	for g := range 16 {
		wg.Go(func() {
			for i := range 8 {
				source := fmt.Sprintf("import m%d\nx = y", (g+i)%10)
				v, err := a.Analyse(context.Background(), source)
				if err != nil || v.Needs == nil ||
					v.Needs.Imports[0].Module != fmt.Sprintf("m%d", (g+i)%10) {
					t.Errorf("%q: %+v %v", source, v, err)
				}
			}
		})
	}
	wg.Wait()
	if n, most := len(a.pool.idle), runtime.GOMAXPROCS(0); n < 1 || n > most {
		t.Errorf("%d sandboxes are kept, the bound is %d", n, most)
	}
}

func TestSameSourceIsAnalysedOnce(t *testing.T) {
	a, _ := open(t)
	first, second := needs(t, a, "x = 1"), needs(t, a, "x = 1")
	if first != second {
		t.Error("the second verdict is not the cached one")
	}
}

func TestCacheForgetsWhatWasUsedLongestAgo(t *testing.T) {
	c := newCache(costOf(1) + costOf(2) + costOf(3) - 1)
	key := func(n byte) [32]byte { return [32]byte{n} }
	c.put(key(1), router.Verdict{Unknown: "1"}, 1)
	c.put(key(2), router.Verdict{Unknown: "2"}, 2)
	c.get(key(1))
	c.put(key(3), router.Verdict{Unknown: "3"}, 3)
	for n, want := range map[byte]bool{1: true, 2: false, 3: true} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			if v, ok := c.get(key(n)); ok != want || ok && v.Unknown != fmt.Sprint(n) {
				t.Errorf("%d: %v %+v", n, ok, v)
			}
		})
	}
}

func TestNothingIsExecuted(t *testing.T) {
	a, _ := open(t)
	for _, source := range []string{
		"raise SystemExit", "FINAL('mine')", "while True: pass", "_own.analyse = None",
		"import sys; sys.modules.clear()",
		`"""` + "\n" + `""" ; FINAL(1)`, `'"); FINAL(1) #'`, "@FINAL\ndef f(): pass",
		"x: FINAL(1) = 2", "f'{FINAL(1)}'",
	} {
		t.Run(fmt.Sprintf("%.60s", source), func(t *testing.T) {
			if n := needs(t, a, source); n.Language != tiers.Python {
				t.Errorf("%q: %+v", source, n)
			}
		})
	}
}

func TestCancelledAnalysisEndsTheWaitAlone(t *testing.T) {
	a, _ := open(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := a.Analyse(ctx, "a = 1"); !errors.Is(err, context.Canceled) && err != nil {
		t.Error(err)
	}
	needs(t, a, "a = 1")
}

// TestAbandonedAnalysesEnd checks that analyses end if their callers do not wait for them.
func TestAbandonedAnalysesEnd(t *testing.T) {
	a, _ := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var callers sync.WaitGroup
	for i := range 200 {
		callers.Go(func() {
			source := fmt.Sprintf("n = %d\n", i) + strings.Repeat("f(a, b, c=d.e)\n", 8000)
			if _, err := a.Analyse(ctx, source); err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		})
	}
	cancel()
	callers.Wait()

	a.flights.mu.Lock()
	left := len(a.flights.now)
	a.flights.mu.Unlock()
	if left != 0 {
		t.Errorf("%d analyses go on without a caller", left)
	}
	needs(t, a, "y = 2")
}

// TestOneCallerOfManyLeaves checks that an analysis continues when one of its two callers leaves.
func TestOneCallerOfManyLeaves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := flights{now: map[[32]byte]*flight{}}
		begun, end := 0, make(chan struct{})
		analyse := func(ctx context.Context) (router.Verdict, error) {
			begun++
			select {
			case <-end:
				return router.Verdict{Unknown: "it has ended"}, nil
			case <-ctx.Done():
				return router.Verdict{}, ctx.Err()
			}
		}
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		verdicts := make(chan error, 2)
		go func() { _, err := f.wait(ctx, [32]byte{}, analyse); verdicts <- err }()
		go func() { _, err := f.wait(t.Context(), [32]byte{}, analyse); verdicts <- err }()
		synctest.Wait()
		leave()
		synctest.Wait()
		close(end)
		if first, second := <-verdicts, <-verdicts; first == nil || second != nil || begun != 1 {
			t.Errorf("%v, %v, after %d analyses", first, second, begun)
		}
	})
}

func TestATenantFillsOnlyItsOwnLine(t *testing.T) {
	a, _ := open(t)
	a.pool.queue = fairqueue.New(0, 1)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var all sync.WaitGroup
	var refused, waited atomic.Int32
	for i, tenant := range []string{"a", "a", "a", "b"} {
		all.Go(func() {
			ctx := labels.WithTenant(ctx, map[string]string{"tenant": tenant, "request": fmt.Sprint(i)})
			v, err := a.Analyse(ctx, fmt.Sprintf("x = %d", i))
			switch {
			case err == nil && strings.Contains(v.Unknown, "wait for the analyser"):
				if refused.Add(1) == 2 {
					cancel()
				}
			case errors.Is(err, context.Canceled):
				waited.Add(1)
			default:
				t.Errorf("%s: %+v, %v", tenant, v, err)
			}
		})
	}
	all.Wait()
	if refused.Load() != 2 || waited.Load() != 2 {
		t.Errorf("%d are refused, %d wait", refused.Load(), waited.Load())
	}
}

func TestAVerdictIsBounded(t *testing.T) {
	a, _ := open(t)
	var source strings.Builder
	for i := range 5000 {
		fmt.Fprintf(&source, "import m%d\n", i)
	}
	v, err := a.Analyse(t.Context(), source.String())
	if err != nil || !strings.Contains(v.Unknown, "more than a plan can list") {
		t.Errorf("%v, %v", v.Unknown, err)
	}
}

func TestClosedAnalyserSaysSo(t *testing.T) {
	a, _ := open(t)
	needs(t, a, "a = 1")
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Analyse(context.Background(), "b = 1"); !errors.Is(err, errClosed) {
		t.Error(err)
	}
}

func TestBrokenTierIsAnError(t *testing.T) {
	a := New(brokenTier{})
	if _, err := a.Analyse(context.Background(), "x"); err == nil ||
		!strings.Contains(err.Error(), "no sandbox today") {
		t.Error(err)
	}
}

type brokenTier struct{ tiers.Tier }

func (brokenTier) Open(context.Context, tiers.Config) (tiers.Sandbox, error) {
	return nil, errors.New("no sandbox today")
}

// TestLostSandboxIsReplaced checks that the analyser works again after a worker has failed.
func TestLostSandboxIsReplaced(t *testing.T) {
	a, _ := open(t)
	needs(t, a, "x = 1")
	if err := a.pool.idle[0].sandbox.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Analyse(context.Background(), "y = 1"); err == nil {
		t.Error("a closed sandbox has answered")
	}
	needs(t, a, "y = 1")
}

func FuzzAnalyse(f *testing.F) {
	a, _ := open(f)
	for _, s := range snippets(f) {
		f.Add(s.Source)
	}
	for _, source := range invalid {
		f.Add(source)
	}
	f.Fuzz(func(t *testing.T, source string) {
		v, err := a.Analyse(context.Background(), source)
		if err != nil {
			t.Fatalf("%q: %v", source, err)
		}
		lines := strings.Count(source, "\n") + strings.Count(source, "\r") + 1
		switch {
		case v.Needs != nil:
			for _, need := range v.Needs.Features {
				if need.Line < 1 || need.Line > lines {
					t.Errorf("%q: %+v is in no line", source, need)
				}
			}
		case v.Invalid != nil:
			if v.Invalid.Type == "" || v.Invalid.Traceback == "" {
				t.Errorf("%q: %+v", source, v.Invalid)
			}
		case v.Unknown == "":
			t.Errorf("%q: no verdict", source)
		}
	})
}
