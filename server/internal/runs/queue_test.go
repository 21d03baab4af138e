package runs

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/rlmhq/rlm/internal/text/problem"
	"github.com/rlmhq/rlm/server/internal/access"
)

// wait waits for the turn of a ticket in the background, and reports it on the channel came.
func (t *ticket) wait(tb testing.TB, came chan<- string) {
	tb.Helper()
	go func() {
		if err := t.enter(context.Background()); err != nil {
			tb.Error(err)
		}
		came <- t.tenant
	}()
}

// fill takes all tickets that a tenant can get.
func fill(tb testing.TB, m *Manager, l *lane, tenant string) (all []*ticket) {
	tb.Helper()
	for {
		t, err := m.enlist(l, tenant, false)
		var full *problem.Error
		if errors.As(err, &full) && full.Code == "queue_full" && full.RetryAfter > 0 {
			return all
		}
		if err != nil {
			tb.Fatal(err)
		}
		all = append(all, t)
	}
}

func running(all []*ticket) (n int) {
	for _, t := range all {
		if t.isRunning {
			n++
		}
	}
	return n
}

// TestATenantThatFillsTheQueueLeavesPlaces checks that another tenant's work and direct answers
// begin immediately, and that a third tenant finds room in the queue.
func TestATenantThatFillsTheQueueLeavesPlaces(t *testing.T) {
	m := New(Options{AtOnce: 4, Queue: 16})
	greedy := fill(t, m, m.runs, "greedy")
	if len(greedy) != 3+8 || running(greedy) != 3 {
		t.Errorf("one tenant has %d tickets, of which %d go on", len(greedy), running(greedy))
	}

	modest := fill(t, m, m.runs, "modest")
	if len(modest) != 1+4 || running(modest) != 1 {
		t.Errorf("the next one has %d tickets, of which %d go on", len(modest), running(modest))
	}
	if late := fill(t, m, m.runs, "late"); len(late) != 2 || running(late) != 0 {
		t.Errorf("the third one has %d tickets, of which %d go on", len(late), running(late))
	}
	if direct := fill(t, m, m.directs, "late"); len(direct) != 3+8 || running(direct) != 3 {
		t.Errorf("beside the runs, there are %d direct answers, of which %d go on", len(direct), running(direct))
	}
	if _, err := m.enlist(m.runs, "greedy", true); err != nil {
		t.Errorf("a run that an earlier process has left is refused: %v", err)
	}
}

// TestOneTenantAloneHasAll checks that, without keys, the only tenant may use all places.
func TestOneTenantAloneHasAll(t *testing.T) {
	m := New(Options{AtOnce: 4, Queue: 16})
	if all := fill(t, m, m.runs, access.Local.Tenant); len(all) != 20 || running(all) != 4 {
		t.Errorf("it has %d tickets, of which %d go on", len(all), running(all))
	}
}

func TestTicketsComeInTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := New(Options{AtOnce: 4, Queue: 16})
		greedy := fill(t, m, m.runs, "greedy")
		modest := fill(t, m, m.runs, "modest")
		came := make(chan string, 20)
		for _, one := range append(greedy, modest...) {
			if !one.isRunning {
				one.wait(t, came)
			}
		}
		synctest.Wait()
		if len(came) > 0 {
			t.Fatalf("%s is over the places", <-came)
		}

		first := map[string]int{}
		for _, one := range []*ticket{greedy[0], modest[0], greedy[1], greedy[2]} {
			one.leave()
			one.leave() // a second call has no effect
			synctest.Wait()
			first[<-came]++
		}
		if len(first) != 2 || len(came) > 0 {
			t.Errorf("%v come first, and %d others", first, len(came))
		}
		for more := true; more; synctest.Wait() {
			var now []*ticket
			for _, one := range append(greedy, modest...) {
				if one.isRunning && !one.isOver {
					now = append(now, one)
				}
			}
			for _, one := range now {
				one.leave()
			}
			more = len(now) > 0
		}
		if n, waiting := m.Load(); n != 0 || waiting != 0 || len(m.runs.tenants) != 0 {
			t.Errorf("%d go on, %d wait, and %d lines are left", n, waiting, len(m.runs.tenants))
		}
		m.work.Wait()
	})
}

// TestATicketThatGivesUpLeavesNothing checks a client that leaves before its turn.
func TestATicketThatGivesUpLeavesNothing(t *testing.T) {
	m := New(Options{AtOnce: 1, Queue: 2})
	first := fill(t, m, m.runs, "a")
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for _, one := range first[1:] {
		if one.enter(gone) == nil {
			t.Error("a ticket has its turn too early")
		}
		one.leave()
	}
	first[0].leave()
	if again := fill(t, m, m.runs, "a"); len(again) != len(first) || running(again) != 1 {
		t.Errorf("there were %d tickets, and %d then", len(first), len(again))
	}
}
