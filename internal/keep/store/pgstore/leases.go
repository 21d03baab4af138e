package pgstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/rlmhq/rlm/internal/keep/store"
)

// held is a lease of this process. The store's mutex guards its fields below the first group.
type held struct {
	id     store.ID
	log    int64 // the number of the log in the database
	epoch  int64
	worker *worker
	lost   chan struct{} // closed when the lease is lost

	isLost  bool
	batch   int64 // the number of the last write that was kept
	number  int64 // the last number given to a write
	pending []*change
	isBusy  bool  // a writer has changes of the log
	isReady bool  // it is in the list of those that wait for a writer
	isDue   bool  // a timer will make it ready
	noted   error // the error of notes, for the next change
}

// takeNoted returns the error of notes, once. The caller holds the store's mutex.
func (h *held) takeNoted() error {
	err := h.noted
	h.noted = nil
	return err
}

// errTaken reports that a claim found another owner than it had seen.
var errTaken = errors.New("another process is faster")

// Acquire implements [store.Store].
func (s *Store) Acquire(ctx context.Context, id store.ID) (store.Lease, error) {
	if err := errors.Join(ctx.Err(), id.Check()); err != nil {
		return store.Lease{}, err
	}
	if s.readOnly {
		return store.Lease{}, store.ErrReadOnly
	}
	if err := s.beginClaim(id); err != nil {
		return store.Lease{}, err
	}

	h, err := s.claim(ctx, id)

	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.claiming, id)
	switch {
	case err != nil:
		return store.Lease{}, err
	case s.closed:
		return store.Lease{}, errClosed // Close frees it with its worker
	case !h.worker.isAlive():
		return store.Lease{}, lost(id) // it took too long
	}
	s.held[id] = h
	return store.Lease{ID: id, Epoch: h.epoch}, nil
}

// beginClaim refuses a second claim by this process.
func (s *Store) beginClaim(id store.ID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return errClosed
	}
	if h := s.held[id]; h != nil && !h.worker.isAlive() {
		s.loseLease(h)
	}
	if s.held[id] != nil || s.claiming[id] {
		return &store.OwnedError{ID: id, Owner: "this process"}
	}
	s.claiming[id] = true
	return nil
}

// claim takes a log that no living worker has.
func (s *Store) claim(ctx context.Context, id store.ID) (*held, error) {
	w, err := s.register(ctx)
	if err != nil {
		return nil, err
	}

	h := &held{id: id, worker: w, lost: make(chan struct{})}
	for range 5 { // rarely more than once: each time, another process claims between our statements
		err = s.try(ctx, func(ctx context.Context, c *pgx.Conn) error { return s.claimOnce(ctx, c, h) })
		if err == nil {
			return h, nil
		}
		if !errors.Is(err, errTaken) {
			s.abandonClaim(h, err)
			return nil, err
		}
	}
	return nil, &store.OwnedError{ID: id, Owner: "another process"}
}

// abandonClaim frees a log with the next renewal if a claim with an unknown outcome has taken it.
func (s *Store) abandonClaim(h *held, err error) {
	var owned *store.OwnedError
	if h.log == 0 || errors.As(err, &owned) {
		return
	}
	h.epoch++ // what the claim would have made of it
	s.mu.Lock()
	s.unfreed = append(s.unfreed, h)
	s.mu.Unlock()
}

// claimOnce looks at a log and takes it, if nothing changes in between. It can be repeated after an
// unknown outcome: the own worker may take the log again.
func (s *Store) claimOnce(ctx context.Context, c *pgx.Conn, h *held) error {
	var owner, name *string
	var isValid *bool
	err := c.QueryRow(ctx, s.qualify(`SELECT h.log, h.epoch, h.worker, w.name, w.until > clock_timestamp()
		FROM @logs l JOIN @heads h ON h.log = l.id LEFT JOIN @workers w ON w.id = h.worker
		WHERE l.kind = $1 AND l.name = $2`), string(h.id.Kind), h.id.Name).
		Scan(&h.log, &h.epoch, &owner, &name, &isValid)
	if err != nil {
		return checkRow(err, h.id)
	}

	if name != nil && *owner != h.worker.id {
		if *isValid {
			return &store.OwnedError{ID: h.id, Owner: *name}
		}
		// A renewal may be in flight. The deletion waits for its end, and then decides for ever.
		tag, err := c.Exec(ctx,
			s.qualify("DELETE FROM @workers WHERE id = $1 AND until <= clock_timestamp()"), *owner)
		if err != nil {
			return err
		}
		if tag.RowsAffected() == 0 {
			return errTaken
		}
	}

	err = c.QueryRow(ctx, s.qualify(`UPDATE @heads h
		SET worker = $1, epoch = epoch + 1, ended_epoch = epoch, ended_batch = batch, batch = 0
		WHERE log = $2 AND epoch = $3
			AND (worker = $1 OR NOT EXISTS (SELECT FROM @workers w WHERE w.id = h.worker))
			AND EXISTS (SELECT FROM @workers WHERE id = $1 AND until > clock_timestamp())
		RETURNING epoch`), h.worker.id, h.log, h.epoch).Scan(&h.epoch)
	if errors.Is(err, pgx.ErrNoRows) {
		return errTaken
	}
	return err
}

// Owner implements [store.Store].
func (s *Store) Owner(ctx context.Context, id store.ID) (string, error) {
	if err := errors.Join(ctx.Err(), id.Check()); err != nil {
		return "", err
	}
	s.mu.Lock()
	h := s.held[id]
	own := h != nil && h.worker.isAlive()
	s.mu.Unlock()

	if own {
		return "this process", nil
	}

	var name string
	err := s.scan(ctx, `SELECT w.name FROM @logs l JOIN @heads h ON h.log = l.id JOIN @workers w ON w.id = h.worker
		WHERE l.kind = $1 AND l.name = $2 AND w.until > clock_timestamp()`,
		[]any{string(id.Kind), id.Name}, &name)
	if errors.Is(err, pgx.ErrNoRows) {
		return "", nil
	}
	return name, err
}

// Watch returns a channel that is closed when the lease is lost: another process may have it, or
// has it. It is closed already if this process does not have the lease.
func (s *Store) Watch(lease store.Lease) <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if h := s.find(lease); h != nil {
		return h.lost
	}
	none := make(chan struct{})
	close(none)
	return none
}

var _ store.Watcher = (*Store)(nil)

// find returns a lease if it is valid for this process, or nil. The caller holds s.mu.
func (s *Store) find(lease store.Lease) *held {
	h := s.held[lease.ID]
	switch {
	case h == nil || h.epoch != lease.Epoch:
		return nil
	case !h.worker.isAlive():
		s.loseLease(h)
		return nil
	}
	return h
}

// loseLease ends a lease in this process. Changes that a writer has are decided by the database.
// The caller holds s.mu.
func (s *Store) loseLease(h *held) {
	if h.isLost {
		return
	}
	h.isLost = true
	close(h.lost)
	if s.held[h.id] == h {
		delete(s.held, h.id)
	}
	for _, c := range h.pending {
		h.settle(c, lost(h.id))
	}
	h.pending = nil
}

// explainMissing returns the error of a lease that this process does not have.
func (s *Store) explainMissing(ctx context.Context, lease store.Lease) error {
	if err := errors.Join(ctx.Err(), lease.ID.Check()); err != nil {
		return err
	}
	if s.readOnly {
		return store.ErrReadOnly
	}
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return errClosed
	}

	if _, err := s.number(ctx, lease.ID); err != nil {
		return err
	}
	return lost(lease.ID)
}

// number returns the number of a log in the database.
func (s *Store) number(ctx context.Context, id store.ID) (log int64, err error) {
	s.mu.Lock()
	h := s.held[id]
	s.mu.Unlock()
	if h != nil {
		return h.log, nil
	}

	err = s.scan(ctx, "SELECT id FROM @logs WHERE kind = $1 AND name = $2", []any{string(id.Kind), id.Name}, &log)
	return log, checkRow(err, id)
}

// Release implements [store.Store]. It first writes the notes of the lease.
func (s *Store) Release(lease store.Lease) error {
	s.mu.Lock()
	h := s.find(lease)
	s.mu.Unlock()
	if h == nil {
		return nil
	}

	err := s.flush(context.Background(), h)

	s.mu.Lock()
	if s.held[lease.ID] == h {
		delete(s.held, lease.ID)
	}
	s.mu.Unlock()
	if errors.Is(err, store.ErrLost) || errors.Is(err, errClosed) {
		return nil // it is free already
	}
	return errors.Join(err, s.free(context.Background(), h))
}

// free lets others have a lease. While the database cannot be reached, the next renewal tries again.
func (s *Store) free(ctx context.Context, h *held) error {
	err := s.try(ctx, func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, s.qualify(`UPDATE @heads SET worker = NULL
			WHERE log = $1 AND epoch = $2 AND worker = $3`), h.log, h.epoch, h.worker.id)
		return err
	})
	if err == nil {
		return nil
	}

	s.mu.Lock()
	s.unfreed = append(s.unfreed, h)
	s.mu.Unlock()
	return fmt.Errorf("cannot release %s: %w", h.id, err)
}
