package slots

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestAGateStopsASnippetUntilItOpens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := NewGate(0)
		slot := take(gate.With(New(1, 1).With(t.Context())), t)
		if waited := slot.Yield(t.Context()); waited != 0 {
			t.Errorf("an open gate holds the snippet up for %s", waited)
		}

		waited := make(chan time.Duration)
		go func() {
			time.Sleep(time.Millisecond)
			waited <- slot.Yield(t.Context())
		}()
		if err := gate.Shut(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		gate.Open(1)
		if got := <-waited; got != time.Second || slot.Waited() != time.Second {
			t.Errorf("the snippet waited %s, %s in all", got, slot.Waited())
		}
	})
}

// TestAGateIsOpenAgainIfNobodyStops checks that Shut reopens the gate if the snippet never passes
// it, and so cannot be stopped.
func TestAGateIsOpenAgainIfNobodyStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := NewGate(0)
		slot := take(gate.With(t.Context()), t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := gate.Shut(ctx, 1); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("nobody has stopped, and the error is %v", err)
		}
		if waited := slot.Yield(t.Context()); waited != 0 {
			t.Errorf("the gate holds the snippet up for %s", waited)
		}
	})
}

// TestALateMessageDoesNotShutAGate checks that Shut has no effect for a period that has already
// ended.
func TestALateMessageDoesNotShutAGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := NewGate(0)
		slot := take(gate.With(t.Context()), t)
		slot.Pause()
		gate.Open(2)
		for number := range 3 {
			if err := gate.Shut(t.Context(), number); !errors.Is(err, errOpen) {
				t.Errorf("time %d: %v", number, err)
			}
		}
		if waited := slot.Resume(t.Context()); waited != 0 {
			t.Errorf("the gate holds the snippet up for %s", waited)
		}
		slot.Pause()
		if err := gate.Shut(t.Context(), 3); err != nil {
			t.Errorf("time 3: %v", err)
		}
	})
}

// TestASnippetThatWaitsForItsHostHasStopped checks that a snippet that waits for its host is
// considered stopped, because it passes the gate before it continues.
func TestASnippetThatWaitsForItsHostHasStopped(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := NewGate(0)
		slot := take(gate.With(t.Context()), t)
		slot.Pause()
		if err := gate.Shut(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		go func() {
			time.Sleep(time.Second)
			gate.Open(1)
		}()
		if waited := slot.Resume(t.Context()); waited != time.Second {
			t.Errorf("the snippet waited %s", waited)
		}
		slot.End()
	})
}

// TestAnInterruptPassesAGate checks that the end of the context ends the wait at a gate, so that
// the snippet notices its end.
func TestAnInterruptPassesAGate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gate := NewGate(0)
		slot := take(gate.With(t.Context()), t)
		slot.Pause()
		if err := gate.Shut(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if waited := slot.Resume(ctx); waited != time.Second {
			t.Errorf("the snippet waited %s", waited)
		}
	})
}

func TestATurnOfAnotherProcessIsPassedOnWhenOthersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := New(1, 10).With(t.Context())
		first := take(ctx, t)
		left, arrival := first.Left()
		if left < time.Hour {
			t.Errorf("nobody waits, and %s are left", left)
		}
		ended := make(chan struct{})
		go func() {
			second := take(ctx, t)
			time.Sleep(time.Second)
			second.End()
			close(ended)
		}()
		<-arrival
		if left, changed := first.Left(); left != farFirst || changed != nil {
			t.Errorf("a newcomer waits, and %s of the first slot are left", left)
		}
		if waited := first.PassOn(ctx); waited != time.Second {
			t.Errorf("it waited %s for the second snippet", waited)
		}
		<-ended

		taken := make(chan *Slot)
		go func() {
			taken <- take(ctx, t)
		}()
		synctest.Wait()      // until it waits: an unwanted slot would go to the first snippet
		go first.PassOn(ctx) // and waits for its return
		third := <-taken
		synctest.Wait()
		left, newcomer := third.Left()
		if left != farQuantum {
			t.Errorf("a snippet waits that has computed, and %s are left", left)
		}
		go func() {
			take(ctx, t).End()
		}()
		<-newcomer
		third.End() // then the newcomer computes, and then the first one
		synctest.Wait()
		go func() {
			take(ctx, t).End()
		}()
		synctest.Wait()
		if left, changed := first.Left(); left != farCourtesy || changed != nil {
			t.Errorf("a newcomer waits, and %s are left", left)
		}
		first.Free()
		synctest.Wait()
		if waited := first.PassOn(ctx); waited != 0 || !isFree(ctx) {
			t.Errorf("a snippet without slots waits %s, or keeps its slot", waited)
		}
	})
}
