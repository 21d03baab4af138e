package runlog

import (
	"context"
	"sync"

	"github.com/rlmhq/rlm/internal/keep/store"
)

// Spare makes the log optional for its run: the first error of the store is passed to failed and
// ends the log, but not the run. The run does not wait for the disk, except at the end of a turn.
// Call it before the first step.
func (j *Log) Spare(failed func(error)) {
	j.spare = true
	j.store = &spareStore{Store: j.store, failed: failed}
}

// IsSpare reports whether the log is optional for the run, which then needs no states of its
// sandboxes.
func (j *Log) IsSpare() bool { return j.spare }

// spareStore is a store that ignores all changes after its first error, and returns no errors.
type spareStore struct {
	store.Store

	failed func(error)

	mu     sync.Mutex
	hasEnd bool
}

// hasFailed records the outcome of a call, and reports whether the store has failed, now or
// earlier.
func (s *spareStore) hasFailed(err error) bool {
	s.mu.Lock()
	before := s.hasEnd
	s.hasEnd = before || err != nil
	s.mu.Unlock()
	if err != nil && !before {
		s.failed(err)
	}
	return before || err != nil
}

// Log implements [store.Store]. A log that cannot be read is empty.
func (s *spareStore) Log(ctx context.Context, id store.ID) (store.Log, error) {
	if s.hasFailed(nil) {
		return store.Log{}, nil
	}
	log, err := s.Store.Log(ctx, id)
	if s.hasFailed(err) {
		return store.Log{}, nil
	}
	return log, nil
}

// Release implements [store.Store].
func (s *spareStore) Release(lease store.Lease) error {
	s.hasFailed(s.Store.Release(lease))
	return nil
}

// Append implements [store.Store], but does not wait: SetState at the end of the turn detects a
// failure.
func (s *spareStore) Append(_ context.Context, lease store.Lease, entries ...store.Entry) error {
	for i := range entries {
		s.Note(lease, entries[i])
	}
	return nil
}

// Note implements [store.Store].
func (s *spareStore) Note(lease store.Lease, entry store.Entry) {
	if !s.hasFailed(nil) {
		s.Store.Note(lease, entry)
	}
}

// Entries implements [store.Store].
func (s *spareStore) Entries(ctx context.Context, id store.ID, q store.Query) ([]store.Entry, error) {
	if s.hasFailed(nil) {
		return nil, nil
	}
	entries, err := s.Store.Entries(ctx, id, q)
	if s.hasFailed(err) {
		return nil, nil
	}
	return entries, nil
}

// SetState implements [store.Store].
func (s *spareStore) SetState(
	ctx context.Context, lease store.Lease, state store.State, entries ...store.Entry,
) error {
	if s.hasFailed(nil) {
		return nil
	}
	err := s.Store.SetState(ctx, lease, state, entries...)
	if err != nil && ctx.Err() != nil {
		return err // the run was interrupted
	}
	s.hasFailed(err)
	return nil
}

// Remove implements [store.Store].
func (s *spareStore) Remove(ctx context.Context, lease store.Lease) error {
	if !s.hasFailed(nil) {
		s.hasFailed(s.Store.Remove(ctx, lease))
	}
	return nil
}
