package pgstore

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/rlmhq/rlm/internal/keep/store"
)

// The effects of a change on the state of a log, besides its entries. Keep them: statements have
// the numbers.
const (
	doesNothing  = 0
	doesSetState = 1
	doesCut      = 2 // removes later entries
	doesReplace  = 3 // removes all earlier entries
)

// change is what one call changes in a log.
type change struct {
	rows  []row
	does  int64
	state store.State
	size  int64      // in bytes
	err   error      // the outcome
	done  chan error // receives the outcome; nil for a note
}

// These bound what shares a statement: the changes, and about how many bytes they have.
const (
	mostChanges = 256
	mostBytes   = 4 << 20
)

// One writer is at work, so that changes gather for the next commit: with two, 64 appends at once
// make half as many a second. But nobody waits for a statement that is stuck, such as a large
// deletion: after slowTime, another writer takes over, up to mostSlow times.
const (
	slowTime = 100 * time.Millisecond
	mostSlow = 7
)

// Notes wait this long for an Append, or until they have this many bytes.
const (
	noteTime  = 50 * time.Millisecond
	noteBytes = 64 << 10
)

// settle reports the outcome of a change. The caller holds the store's mutex.
func (h *held) settle(c *change, err error) {
	if c.done == nil {
		if h.noted == nil {
			h.noted = err
		}
		return
	}
	c.done <- errors.Join(h.takeNoted(), err)
}

// write makes a change, and waits until it is durable. Until a writer has it, the end of the context
// withdraws it. Then the caller must learn the outcome, which the timeout bounds.
func (s *Store) write(ctx context.Context, lease store.Lease, c *change) error {
	c.done = make(chan error, 1)
	h := s.send(lease, c)
	if h == nil {
		return s.explainMissing(ctx, lease)
	}
	return s.await(ctx, h, c)
}

// await waits for the outcome of a change.
func (s *Store) await(ctx context.Context, h *held, c *change) error {
	select {
	case err := <-c.done:
		return err
	case <-ctx.Done():
		if s.withdraw(h, c) {
			return context.Cause(ctx)
		}
		return <-c.done
	}
}

// withdraw takes back a change that no writer has, and reports whether it did.
func (s *Store) withdraw(h *held, c *change) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.Index(h.pending, c)
	if i >= 0 {
		h.pending = slices.Delete(h.pending, i, i+1)
	}
	return i >= 0
}

// send passes a change to the writers. It returns nil if this process does not have the lease.
func (s *Store) send(lease store.Lease, c *change) *held {
	s.mu.Lock()
	defer s.mu.Unlock()
	h := s.find(lease)
	if h == nil || s.closed {
		return nil
	}

	h.pending = append(h.pending, c)
	if c.done != nil || countBytes(h.pending) >= noteBytes {
		s.makeReady(h)
	} else if !h.isDue && !h.isReady {
		h.isDue = true
		time.AfterFunc(noteTime, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			h.isDue = false
			s.makeReady(h)
		})
	}
	return h
}

func countBytes(changes []*change) (n int64) {
	for _, c := range changes {
		n += c.size
	}
	return n
}

// flush waits until all earlier changes of a lease are durable, and returns the error of notes.
func (s *Store) flush(ctx context.Context, h *held) error {
	s.mu.Lock()
	if len(h.pending) == 0 && !h.isBusy {
		defer s.mu.Unlock()
		return h.takeNoted()
	}
	s.mu.Unlock()
	return s.write(ctx, store.Lease{ID: h.id, Epoch: h.epoch}, &change{})
}

// makeReady lets a writer take the changes of a log, and starts one if necessary. The caller holds
// s.mu.
func (s *Store) makeReady(h *held) {
	if h.isReady || h.isBusy || len(h.pending) == 0 {
		return
	}
	h.isReady = true
	s.ready = append(s.ready, h)
	s.startWriter()
}

// startWriter starts a writer if there is work for one. The caller holds s.mu.
func (s *Store) startWriter() {
	if !s.hasWriter && len(s.ready) > 0 {
		s.hasWriter = true
		s.writing.Go(s.serveWrites)
	}
}

// serveWrites writes changes until none is ready, or another writer has taken over. What waits
// meanwhile shares a commit.
func (s *Store) serveWrites() {
	for {
		group := s.takeGroup()
		if len(group) == 0 {
			return
		}

		isSlow := false // guarded by s.mu
		timer := time.AfterFunc(slowTime, func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			if isDone := group == nil; !isDone && s.slow < mostSlow {
				isSlow = true
				s.slow++
				s.hasWriter = false
				s.startWriter()
			}
		})
		s.commit(group)
		timer.Stop()

		s.mu.Lock()
		s.giveBack(group)
		group = nil
		if isSlow {
			s.slow--
			s.startWriter()
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
	}
}

// bundle is a part of a group: changes of one log that share a write.
type bundle struct {
	held    *held
	changes []*change
	before  int64 // the number of the write before
	batch   int64 // the number of this write
	burnt   int64 // the number that replaces it if it must not be kept any more
	err     error
	isSplit bool // each change has its own outcome
}

// takeGroup takes the changes that share a statement. Without any, the writer ends.
func (s *Store) takeGroup() (group []*bundle) {
	s.mu.Lock()
	defer s.mu.Unlock()

	changes, bytes := 0, int64(0)
	for len(s.ready) > 0 && changes < mostChanges && bytes < mostBytes {
		h := s.ready[0]
		s.ready = s.ready[1:]
		h.isReady = false
		if len(h.pending) == 0 {
			continue
		}

		b := &bundle{held: h}
		b.changes, h.pending = splitPending(h.pending)
		h.isBusy = true
		group = append(group, b)
		changes += len(b.changes)
		bytes += countBytes(b.changes)
	}
	s.hasWriter = len(group) > 0
	return group
}

// splitPending returns the first changes, which can share a write, and the others. What removes
// entries stands alone, because a statement does not see the entries that it adds itself.
func splitPending(pending []*change) (first, others []*change) {
	n, bytes := 0, int64(0)
	for n < len(pending) && n < mostChanges && bytes < mostBytes {
		if pending[n].does >= doesCut {
			n = max(n, 1)
			break
		}
		bytes += pending[n].size
		n++
	}
	return pending[:n:n], pending[n:]
}

// giveBack reports the outcomes of a group, and lets other writers have its logs. The caller holds
// s.mu.
func (s *Store) giveBack(group []*bundle) {
	for _, b := range group {
		h := b.held
		if endsLease(b.err) {
			s.loseLease(h)
		}
		for _, c := range b.changes {
			if !b.isSplit {
				c.err = b.err
			}
			h.settle(c, c.err)
		}
		h.isBusy = false
		s.makeReady(h)
	}
}
