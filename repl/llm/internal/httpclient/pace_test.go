package httpclient

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/internal/kind"
)

// limited is the error of a request that the server answered with 429.
var limited = &llm.Error{Kind: kind.ErrRateLimited}

// enterAll begins requests for which there is room.
func enterAll(t *testing.T, p *pace, n int) (round int) {
	t.Helper()
	for range n {
		var err error
		if round, err = p.enter(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	return round
}

func TestOneCrowdOf429HalvesTheBoundOnce(t *testing.T) {
	p := newPace(0)
	round := enterAll(t, p, 64)
	if lowered := p.leave(round, limited); lowered != 32 {
		t.Errorf("the bound is %d, want 32", lowered)
	}
	for range 63 {
		if lowered := p.leave(round, limited); lowered != 0 {
			t.Fatalf("a further 429 of the same crowd lowers the bound to %d", lowered)
		}
	}

	round = enterAll(t, p, 32)
	if lowered := p.leave(round, limited); lowered != 16 {
		t.Errorf("the bound is %d, want 16", lowered)
	}
}

func TestSuccessesRaiseTheBoundByOnePerRound(t *testing.T) {
	p := newPace(0)
	p.leave(enterAll(t, p, 8), limited)
	if p.most != 4 {
		t.Fatalf("the bound is %v, want 4", p.most)
	}
	for range 9 { // seven remain, two are added
		if p.flying == 0 {
			enterAll(t, p, 2)
		}
		p.leave(p.round, nil)
	}
	if p.most < 5.7 || p.most > 6.2 {
		t.Errorf("after two rounds the bound is %v, want about 6", p.most)
	}
}

func TestABoundFromTheBeginningIsNeverExceeded(t *testing.T) {
	p := newPace(2)
	for range 10 {
		p.leave(enterAll(t, p, 1), nil)
	}
	enterAll(t, p, 2)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.enter(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a third request begins: %v", err)
	}
	if len(p.queue) > 0 || p.flying != 2 {
		t.Errorf("%d wait, %d are in flight", len(p.queue), p.flying)
	}
}

// TestRequestsWaitInTheirOrder frees one place at a time and checks that requests begin in order.
func TestRequestsWaitInTheirOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, order := newPace(1), make(chan int, 5)
		enterAll(t, p, 1)
		for i := range cap(order) {
			go func() {
				if _, err := p.enter(t.Context()); err != nil {
					t.Error(err)
				}
				order <- i
			}()
			synctest.Wait()
		}

		for want := range cap(order) {
			p.leave(0, nil)
			if got := <-order; got != want {
				t.Errorf("request %d begins, want %d", got, want)
			}
		}
	})
}

// TestACallsPlaceIsFreeWhileItPauses uses a server that answers 429 while more than three requests
// are in flight. It checks that all calls succeed and that the bound on requests in flight is
// lowered.
func TestACallsPlaceIsFreeWhileItPauses(t *testing.T) {
	const capacity, callers = 3, 24
	var mu sync.Mutex
	flying, refused := 0, 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		flying++
		isFull := flying > capacity
		if isFull {
			refused++
		}
		mu.Unlock()
		time.Sleep(2 * time.Millisecond)
		mu.Lock()
		flying--
		mu.Unlock()

		if isFull {
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}))
	defer server.Close()

	c, err := New(Options{Name: "test", BaseURL: server.URL, HTTP: HTTP{
		FirstWait: time.Millisecond, MaxWait: 20 * time.Millisecond, Outage: time.Minute,
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var wait sync.WaitGroup
	for range callers {
		wait.Go(func() {
			call := Call{Method: http.MethodGet, Path: "/", Read: func(io.Reader) error { return nil }}
			if _, err := c.Do(t.Context(), call); err != nil {
				t.Error(err)
			}
		})
	}
	wait.Wait()
	if refused == 0 || c.pace.most == 0 || c.pace.most > callers/2+1 {
		t.Errorf("%d requests were refused, the bound is %v", refused, c.pace.most)
	}
	if c.pace.flying != 0 {
		t.Errorf("%d requests hold a place", c.pace.flying)
	}
}
