package slots

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/rlmhq/rlm/internal/snippet/labels"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func take(ctx context.Context, t *testing.T) *Slot {
	t.Helper()
	slot, err := Wait(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return slot
}

// isFree reports whether another snippet gets a slot within a millisecond.
func isFree(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Millisecond)
	defer cancel()
	slot, err := Wait(ctx)
	if err == nil {
		slot.End()
	}
	return err == nil
}

func TestAContextWithoutTurnsGivesEverybodyOne(t *testing.T) {
	for range 100 {
		slot := take(t.Context(), t)
		slot.Pause()
		slot.Resume(t.Context())
		slot.Yield(t.Context())
		slot.Release()
		slot.End()
		if waited := slot.Waited(); waited != 0 {
			t.Errorf("it waited %s", waited)
		}
	}
}

func TestASnippetThatWaitsForTheHostLosesItsTurnAfterAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := New(1, 10).With(t.Context())
		first := take(ctx, t)
		first.Pause()
		time.Sleep(moment / 2)
		if waited := first.Resume(ctx); waited != 0 {
			t.Errorf("a short call cost its slot: it waited %s", waited)
		}

		time.Sleep(5 * moment) // the timer of the short call must not fire
		if isFree(ctx) {
			t.Error("two snippets compute on one processor")
		}

		first.Pause()
		time.Sleep(2 * moment)
		second := take(ctx, t)
		go func() {
			time.Sleep(time.Second)
			second.End()
		}()
		if waited := first.Resume(ctx); waited != time.Second {
			t.Errorf("it waited %s for the second snippet, want 1s", waited)
		}
		first.End()
		if waited := first.Waited(); waited != time.Second {
			t.Errorf("it waited %s in all, want 1s", waited)
		}
		if !isFree(ctx) {
			t.Error("the processor is not free at the end")
		}
	})
}

func TestAPauseWithinAPauseTakesNoTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := New(1, 10).With(t.Context())
		slot := take(ctx, t)
		slot.Pause()
		slot.Pause()
		time.Sleep(2 * moment)
		if slot.Resume(ctx); !slot.IsLost() || !isFree(ctx) {
			t.Error("the end of the inner pause took a slot")
		}
		if slot.Resume(ctx); slot.IsLost() || isFree(ctx) {
			t.Error("the end of the outer pause took no slot")
		}
		slot.End()
		if !isFree(Without(ctx)) || !isFree(ctx) {
			t.Error("the processor is not free at the end")
		}
	})
}

func TestALongSnippetLetsOthersGoFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := New(1, 10).With(t.Context())
		long := take(ctx, t)
		time.Sleep(10 * quantum)
		if waited := long.Yield(ctx); waited != 0 {
			t.Errorf("it waited %s for nobody", waited)
		}

		go func() {
			short := take(ctx, t)
			time.Sleep(quantum / 2)
			short.End()
		}()
		synctest.Wait()
		if waited := long.Yield(ctx); waited != quantum/2 {
			t.Errorf("it waited %s, want %s", waited, quantum/2)
		}
		long.End()
	})
}

// TestASnippetThatHasNotBegunNeedNotWaitLong checks a waiting snippet that has not begun, and then
// one that waits for its next slot.
func TestASnippetThatHasNotBegunNeedNotWaitLong(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := New(1, 10).With(t.Context())
		long := take(ctx, t)
		time.Sleep(courtesy)
		go func() {
			short := take(ctx, t)
			time.Sleep(2 * courtesy)
			short.Yield(ctx) // all have begun, so the long one waits for a quantum
			time.Sleep(quantum)
			short.Yield(ctx)
			short.End()
		}()
		synctest.Wait()
		if waited := long.Yield(ctx); waited != 2*courtesy+quantum {
			t.Errorf("it waited %s, want %s", waited, 2*courtesy+quantum)
		}
		long.End()
	})
}

func TestAProcessGoesOnWithoutTurnsAfterAWhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := New(1, 10).With(t.Context())
		process := take(ctx, t)
		begun := time.Now()
		go func() {
			for range 1000 {
				time.Sleep(time.Millisecond)
				process.Release()
			}
			process.Pause()
			time.Sleep(time.Second)
			if waited := process.Resume(ctx); waited != 0 {
				t.Errorf("it waited %s for a slot that it does not need", waited)
			}
			process.End()
		}()

		next := take(ctx, t)
		if waited := time.Since(begun); waited < patience || waited > patience+10*time.Millisecond {
			t.Errorf("the next snippet waited %s, want %s", waited, patience)
		}
		time.Sleep(time.Minute)
		if isFree(ctx) {
			t.Error("the process gave up a slot that was not its own")
		}
		next.End()
	})
}

// TestASnippetWhoseCallerLeavesHoldsNothing checks that a snippet whose context ends while it waits
// for its next slot holds no slot afterwards.
func TestASnippetWhoseCallerLeavesHoldsNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := New(1, 10).With(t.Context())
		left, cancel := context.WithCancel(ctx)
		first := take(left, t)
		first.Pause()
		time.Sleep(time.Second)
		second := take(ctx, t)
		cancel()
		first.Resume(left)
		first.End()

		if isFree(ctx) {
			t.Error("the end of one snippet gave up the slot of another")
		}
		second.End()
		if !isFree(ctx) {
			t.Error("the processor is not free at the end")
		}
	})
}

func TestAFullQueueRefusesItsTenantAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := New(1, 1).With(t.Context())
		tenant := func(name string) context.Context {
			return labels.WithTenant(ctx, map[string]string{"tenant": name})
		}
		running := take(tenant("a"), t)
		waiting := func(name string) { take(tenant(name), t).End() }
		go waiting("a")
		synctest.Wait()
		if _, err := Wait(tenant("a")); !errors.Is(err, ErrBusy) {
			t.Errorf("a full queue: %v", err)
		}
		go waiting("b")
		synctest.Wait()
		running.End()
		synctest.Wait()
		if !isFree(ctx) {
			t.Error("the processor is not free at the end")
		}
	})
}
