package fairqueue

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestLinesTakeTurns checks the order of one tenant with many callers and two tenants with a few.
func TestLinesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(1, 100)
		if err := q.Enter(t.Context(), "busy"); err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var order []string
		wait := func(tenant string, n int) {
			for range n {
				go func() {
					if err := q.Enter(t.Context(), tenant); err != nil {
						t.Error(err)
					}
					mu.Lock()
					order = append(order, tenant)
					mu.Unlock()
					q.Leave()
				}()
				synctest.Wait()
			}
		}
		wait("busy", 5)
		wait("a", 2)
		wait("b", 1)
		q.Leave()
		synctest.Wait()
		want := []string{"busy", "a", "b", "busy", "a", "busy", "busy", "busy"}
		if !slices.Equal(order, want) {
			t.Errorf("the order is %q, want %q", order, want)
		}
	})
}

func TestAFullLineRefusesOnlyItsTenant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		q := New(1, 2)
		if err := q.Enter(ctx, "a"); err != nil {
			t.Fatal(err)
		}
		var gone atomic.Int32
		enter := func(tenant string) {
			err := q.Enter(ctx, tenant)
			if err == nil || errors.Is(err, ErrFull) {
				t.Errorf("%s: %v", tenant, err)
			}
			gone.Add(1)
		}
		go enter("a")
		go enter("a")
		synctest.Wait()
		if err := q.Enter(ctx, "a"); !errors.Is(err, ErrFull) {
			t.Errorf("a third caller: %v", err)
		}
		go enter("b")
		synctest.Wait()

		cause := errors.New("enough")
		cancel(cause)
		synctest.Wait()
		if gone.Load() != 3 || len(q.lines) != 0 || len(q.turns) != 0 {
			t.Errorf("%d callers left; the queue has %d lines and %d turns", gone.Load(), len(q.lines), len(q.turns))
		}
		q.Leave()
		if err := q.Enter(t.Context(), "a"); err != nil {
			t.Error(err)
		}
	})
}

// TestNoPlaceIsLost checks that no place is lost if callers give up at any time.
func TestNoPlaceIsLost(t *testing.T) {
	const places = 3
	q := New(places, 50)
	var held atomic.Int32
	var all sync.WaitGroup
	for i := range 200 {
		all.Go(func() {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if i%3 == 0 {
				go cancel()
			}
			as := []string{"new", "quick", "slow"}[rand.IntN(3)]
			if enterAs(ctx, q, fmt.Sprint(rand.IntN(7)), as) != nil {
				return
			}
			if now := held.Add(1); now > places {
				t.Errorf("%d places are held at once", now)
			}
			held.Add(-1)
			leaveAs(q, as)
		})
	}
	all.Wait()
	if q.free != places || q.slow != 0 || len(q.lines) != 0 {
		t.Errorf("%d of %d places are free, and %d tenants wait", q.free, places, len(q.lines))
	}
}

// enterAs waits for a place as a caller that is "slow", "quick" or "new".
func enterAs(ctx context.Context, q *Queue, tenant, name string) error {
	if name == "new" {
		return q.Enter(ctx, tenant)
	}
	return q.Return(ctx, tenant, name == "slow")
}

func leaveAs(q *Queue, name string) {
	if name == "slow" {
		q.LeaveSlow()
	} else {
		q.Leave()
	}
}

// TestSlowCallersRestBesideQuickOnes checks that while quick callers arrive, slow callers wait for
// as long as the last slow caller held its place, at most mostRest.
func TestSlowCallersRestBesideQuickOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(2, 100)
		turn := func(comesQuick bool, takes time.Duration) (waited time.Duration) {
			if comesQuick {
				if err := q.Enter(t.Context(), "b"); err != nil {
					t.Fatal(err)
				}
				q.Leave()
			}
			begun := time.Now()
			if err := q.Return(t.Context(), "a", true); err != nil {
				t.Fatal(err)
			}
			waited = time.Since(begun)
			time.Sleep(takes)
			q.LeaveSlow()
			return waited
		}
		for i, step := range []struct {
			comesQuick  bool
			takes, want time.Duration
		}{
			{true, 5 * time.Millisecond, 0},
			{true, time.Second, 5 * time.Millisecond},
			{true, time.Second, mostRest},
			{false, 0, 0},
		} {
			if waited := turn(step.comesQuick, step.takes); waited != step.want {
				t.Errorf("before turn %d, a slow caller waits %s, want %s", i, waited, step.want)
			}
		}
	})
}

// TestARestEndsForThoseThatWaited checks that a waiting slow caller receives a place when the rest
// ends, although a place was reserved for longer when the caller arrived.
func TestARestEndsForThoseThatWaited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(2, 100)
		if err := q.Enter(t.Context(), "b"); err != nil {
			t.Fatal(err)
		}
		q.Leave()
		if err := q.Return(t.Context(), "a", true); err != nil {
			t.Fatal(err)
		}
		begun, waited := time.Now(), make(chan time.Duration, 1)
		go func() {
			if err := q.Return(t.Context(), "a", true); err != nil {
				t.Error(err)
			}
			waited <- time.Since(begun)
			q.LeaveSlow()
		}()
		time.Sleep(10 * time.Millisecond)
		q.LeaveSlow()
		if got := <-waited; got != 20*time.Millisecond {
			t.Errorf("the second slow caller waits %s", got)
		}
	})
}

// TestAPlaceIsKeptForQuickCallers checks that while quick callers arrive, slow ones share the other
// places.
func TestAPlaceIsKeptForQuickCallers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(2, 100)
		var slow atomic.Int64 // callers that have a place
		for range 3 {
			go func() {
				if err := q.Return(t.Context(), "a", true); err != nil {
					t.Error(err)
				}
				slow.Add(1)
			}()
		}
		synctest.Wait()
		if slow.Load() != 2 {
			t.Fatalf("%d slow callers have one of two places, and nobody else wants one", slow.Load())
		}

		go func() { <-q.Newcomer(); q.LeaveSlow() }()
		for range 3 {
			if err := q.Enter(t.Context(), "b"); err != nil {
				t.Fatal(err)
			}
			q.Leave()
			time.Sleep(keptFor - 1)
			if slow.Load() != 2 {
				t.Fatal("the place was not kept for the next quick caller")
			}
		}

		time.Sleep(time.Nanosecond)
		synctest.Wait()
		if slow.Load() != 3 {
			t.Error("the place is kept though no quick callers come")
		}
		q.LeaveSlow()
		q.LeaveSlow()
		if q.free != 2 || q.slow != 0 || len(q.lines) != 0 {
			t.Errorf("%d places are free, slow callers have %d, and %d lines wait", q.free, q.slow, len(q.lines))
		}
	})
}

// TestQuickCallersGoFirst checks that quick callers of a tenant go before its slow callers, which
// must not wait forever.
func TestQuickCallersGoFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(1, 100)
		if err := q.Enter(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		var order []string // callers in the order in which they got the only place
		wait := func(name string, n int) {
			for range n {
				go func() {
					if err := enterAs(t.Context(), q, "a", name); err != nil {
						t.Error(err)
					}
					order = append(order, name)
					leaveAs(q, name)
				}()
				synctest.Wait()
			}
		}
		wait("slow", 2)
		wait("new", 3)
		wait("quick", 3)
		q.Leave()
		synctest.Wait()
		want := []string{"new", "new", "new", "quick", "slow", "quick", "quick", "slow"}
		if !slices.Equal(order, want) {
			t.Errorf("the order is %q, want %q", order, want)
		}
	})
}

func TestAnArrivalIsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(1, 100)
		if err := q.Enter(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		arrival := q.Arrival()
		select {
		case <-arrival:
			t.Error("nobody waits")
		default:
		}

		go func() {
			if err := q.Enter(t.Context(), "b"); err != nil {
				t.Error(err)
			}
		}()
		<-arrival
		<-q.Arrival() // a caller is still waiting
		<-q.Newcomer()
		q.Leave()
		synctest.Wait()

		newcomer := q.Newcomer()
		go func() {
			if err := q.Return(t.Context(), "b", false); err != nil {
				t.Error(err)
			}
		}()
		<-q.Arrival()
		select {
		case <-newcomer:
			t.Error("a caller that returns is a newcomer")
		default:
		}
		q.Leave()
	})
}

func BenchmarkQueue(b *testing.B) {
	q := New(2, 1000)
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			if q.Enter(b.Context(), "a") == nil {
				q.Leave()
			}
		}
	})
}
