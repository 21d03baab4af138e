package pgstore

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rlmhq/rlm/internal/keep/store"
)

// worker is this process as the owner of leases. After a failure to renew it is dead for ever, and
// the next Acquire registers another one.
type worker struct {
	id string
	// until is when the leases end for this process, by its monotonic clock. In the database, they
	// are valid for a while longer. The store's mutex guards it.
	until time.Time
}

// own reports how long leases are valid for this process after a renewal was sent. The rest of the
// time is for calls that are in flight when they end.
func (s *Store) own() time.Duration { return s.o.Valid - s.o.Valid/5 }

// isAlive reports whether the leases of a worker are valid. The caller holds s.mu.
func (w *worker) isAlive() bool { return w != nil && time.Now().Before(w.until) }

// interval writes a duration for the database.
func interval(d time.Duration) string { return fmt.Sprintf("%d microseconds", d.Microseconds()) }

// forgetAfter is the age at which the row of a worker that ended without a word is deleted.
const forgetAfter = time.Hour

// register returns the worker of this process, and makes it one if necessary.
func (s *Store) register(ctx context.Context) (*worker, error) {
	s.registering.Lock()
	defer s.registering.Unlock()

	s.mu.Lock()
	w, closed := s.worker, s.closed
	alive := w.isAlive()
	s.mu.Unlock()
	switch {
	case closed:
		return nil, errClosed
	case alive:
		return w, nil
	case w != nil:
		s.lose(w)
	}

	w = &worker{id: randomName()}
	err := s.try(ctx, func(ctx context.Context, c *pgx.Conn) error {
		sent := time.Now()
		_, err := c.Exec(ctx, s.qualify(`WITH forgotten AS (
			DELETE FROM @workers WHERE until < clock_timestamp() - $4::interval)
			INSERT INTO @workers (id, name, until) VALUES ($1, $2, clock_timestamp() + $3::interval)
			ON CONFLICT (id) DO UPDATE SET until = excluded.until`),
			w.id, describeProcess(), interval(s.o.Valid), interval(forgetAfter))
		w.until = sent.Add(s.own())
		return err
	})
	if err != nil {
		return nil, err
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, errClosed // its row expires
	}
	s.worker = w
	s.tasks.Go(func() { s.keepAlive(w) })
	return w, nil
}

// randomName returns the name of a worker, which no other worker ever has.
func randomName() string {
	random := make([]byte, 16)
	_, _ = rand.Read(random) // it never fails
	return hex.EncodeToString(random)
}

// describeProcess describes this process for humans.
func describeProcess() string {
	host, err := os.Hostname()
	if err != nil {
		host = "this machine"
	}
	return fmt.Sprintf("process %d on %.200q", os.Getpid(), host)
}

// keepAlive renews the leases of a worker until Close, or until they are lost.
func (s *Store) keepAlive(w *worker) {
	tick := time.NewTicker(s.o.Renew)
	defer tick.Stop()
	for {
		select {
		case <-s.background.Done():
			return
		case <-tick.C:
		}

		s.mu.Lock()
		until := w.until
		s.mu.Unlock()

		ctx, cancel := context.WithDeadline(s.background, until)
		sent, err := s.renew(ctx, w)
		cancel()
		if s.background.Err() != nil {
			return
		}
		if err != nil {
			s.lose(w)
			return
		}

		s.mu.Lock()
		w.until = sent.Add(s.own())
		s.mu.Unlock()
		s.freeLeases(w)
	}
}

// renew extends the leases of a worker. It fails when the context ends, or if the leases have
// ended in the database.
func (s *Store) renew(ctx context.Context, w *worker) (sent time.Time, err error) {
	sql := s.qualify(`UPDATE @workers SET until = clock_timestamp() + $2::interval
		WHERE id = $1 AND until > clock_timestamp()`)
	for pause := newBackoff(); ; {
		err = attempt(ctx, s.beat, s.o.Renew, func(ctx context.Context, c *pgx.Conn) error {
			sent = time.Now()
			tag, err := c.Exec(ctx, sql, w.id, interval(s.o.Valid))
			if err == nil && tag.RowsAffected() == 0 {
				err = store.ErrLost
			}
			return err
		})
		// Even an error that looks permanent may pass before the leases end.
		if err == nil || err == store.ErrLost || !pause.wait(ctx) { //nolint:errorlint // it is ours
			return sent, err
		}
	}
}

// lose ends a worker and its leases in this process. Then it frees them for others at once, if the
// database can be reached: nothing uses them here any more.
func (s *Store) lose(w *worker) {
	s.mu.Lock()
	if s.worker == w {
		s.worker = nil
	}
	w.until = time.Time{}
	for _, h := range s.held {
		if h.worker == w {
			s.loseLease(h)
		}
	}
	closed := s.closed
	if !closed {
		s.tasks.Go(func() { _ = s.removeWorker(s.background, w) }) // its row expires, too
	}
	s.mu.Unlock()
}

// removeWorker frees all leases of a worker.
func (s *Store) removeWorker(ctx context.Context, w *worker) error {
	return s.tryFor(ctx, s.beat, s.attemptTime(), func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, s.qualify("DELETE FROM @workers WHERE id = $1"), w.id)
		return err
	})
}

// freeLeases frees leases that were released while the database could not be reached.
func (s *Store) freeLeases(w *worker) {
	s.mu.Lock()
	unfreed := s.unfreed
	s.unfreed = nil
	s.mu.Unlock()

	for _, h := range unfreed {
		if h.worker == w {
			_ = s.free(s.background, h) // it returns to the list
		}
	}
}
