package sessions

import (
	"context"
	"errors"
	"testing"
	"time"
)

// TestABatchHasABound checks the size of batches, since other writers of the database may wait for
// one batch.
func TestABatchHasABound(t *testing.T) {
	w := &writer{isWriting: true}
	for _, bytes := range []int64{maxBatch + 1, 1, maxBatch - 1, 1, 2} {
		w.queue = append(w.queue, &addition{bytes: bytes})
	}
	for _, want := range []int{1, 2, 2} {
		if got := len(w.take()); got != want || !w.isWriting {
			t.Errorf("%d additions, want %d", got, want)
		}
	}
	if got := len(w.take()); got != 0 || w.isWriting {
		t.Errorf("%d additions, want none", got)
	}
}

// TestARepetitionOutlivesItsClient checks that a repetition continues after its client has gone
// away, until it is ended in one of the other ways.
func TestARepetitionOutlivesItsClient(t *testing.T) {
	for name, end := range map[string]func(m *Manager) error{
		"the session is interrupted": func(m *Manager) error { m.stop("id", errInterrupted); return errInterrupted },
		"the session is deleted":     func(m *Manager) error { m.stop("id", errDeleted); return errDeleted },
		"the server stops":           func(m *Manager) error { m.end(errStopping); return errStopping },
	} {
		t.Run(name, func(t *testing.T) {
			l := &live{}
			m := &Manager{lives: map[string]*live{"id": l}}
			m.life, m.end = context.WithCancelCause(t.Context())
			request, cancel := context.WithCancelCause(t.Context())
			l.cancel = cancel
			whole, done := m.unlessClientGone(request, l)
			defer done()

			cancel(context.Canceled)
			if err := whole.Err(); err != nil {
				t.Fatal("it ended with its client:", err)
			}
			want := end(m)
			select {
			case <-whole.Done():
			case <-time.After(time.Minute):
				t.Fatal("it goes on")
			}
			if why := context.Cause(whole); !errors.Is(why, want) {
				t.Errorf("%v, want %v", why, want)
			}
		})
	}
}
