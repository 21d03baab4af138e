package python

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"

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
	if n := len(a.pool.idle); n < 1 || n > cap(a.pool.slots) {
		t.Errorf("%d sandboxes are kept, the bound is %d", n, cap(a.pool.slots))
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
	c := newCache(2)
	key := func(n byte) [32]byte { return [32]byte{n} }
	c.put(key(1), router.Verdict{Unknown: "1"})
	c.put(key(2), router.Verdict{Unknown: "2"})
	c.get(key(1))
	c.put(key(3), router.Verdict{Unknown: "3"})
	for n, want := range map[byte]bool{1: true, 2: false, 3: true} {
		if v, ok := c.get(key(n)); ok != want || ok && v.Unknown != fmt.Sprint(n) {
			t.Errorf("%d: %v %+v", n, ok, v)
		}
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
		if n := needs(t, a, source); n.Language != tiers.Python {
			t.Errorf("%q: %+v", source, n)
		}
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

// TestLostSandboxIsReplaced has a worker that fails once.
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
