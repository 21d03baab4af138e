// Package runlog keeps what a run has paid for and how far it came, so that it can go on
// after its process has ended.
//
// A run's context carries its [Log] and the place in the run: turn, snippet, call, slot.
// [Begin] names a step by its place. The first time, the caller does the step and keeps how it
// ended; in a later process, the journal has the ending. A step is written before its result
// counts. A run that takes another course than before is stopped before it pays.
//
// Loops commit their turns. A run goes on from the last commit whose state is whole, and does
// the steps after it again, with the endings that are kept.
package runlog

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/rlmhq/rlm/internal/keep/store"
)

// The kinds of entries in the log of a run.
const (
	kindPin    = "pin"    // what must stay the same
	kindBegun  = "begun"  // a step began: if it has no ending, it may have been paid
	kindStep   = "step"   // how a step ended
	kindLost   = "lost"   // what a step has cost that has no ending
	kindCommit = "commit" // a turn
	kindStart  = "start"  // what a snippet begins with
	kindTrace  = "trace"  // what a turn adds to the record for people

	kindQuestion = "question" // of a step that waits for a person
	kindDecision = "decision" // the answer to it
)

// The statuses of runs that have not ended. Others are those of their loops.
const (
	StatusRunning     = "running"
	StatusInterrupted = "interrupted"
)

// Log is the journal of one run in this process. It is safe for concurrent use.
type Log struct {
	store store.Store
	lease store.Lease
	isNew bool
	turn  atomic.Int64

	mu      sync.Mutex
	end     context.CancelCauseFunc // ends the run's context
	stopped error                   // why no step may begin any more
	places  map[string]int          // how many steps began at a place
	loaded  bool
	from    int // the first turn whose steps are done again
	steps   map[string]*step
	byWhat  map[string][]*step // the same, by their digests
	starts  map[string]Start
	counted Counts

	inFlight  int // steps between Begin and Leave that no ending was known for
	questions []Question
	decisions map[string]*Decision

	traced traced
}

// Counts says how many steps of this process there were.
type Counts struct {
	// Replayed had their endings in the journal; Made had not.
	Replayed int `json:"replayed"`
	Made     int `json:"made"`
	// Again began in an earlier process, too, which ended before the step did. They may be
	// paid twice.
	Again int `json:"again"`
}

// Open opens the journal of a run, and creates its log if there is none. It returns the log as
// it was. The caller closes the journal.
func Open(ctx context.Context, s store.Store, log store.Log) (*Log, store.Log, error) {
	log.Status = StatusRunning
	known, err := s.Log(ctx, log.ID)
	isNew := errors.Is(err, store.ErrNotFound)
	if isNew {
		known = log
		if err = s.Create(ctx, log); errors.Is(err, store.ErrExists) {
			known, err = s.Log(ctx, log.ID) // another process was faster
			isNew = false
		}
	}
	if err != nil {
		return nil, known, err
	}

	lease, err := s.Acquire(ctx, log.ID)
	if err != nil {
		return nil, known, err
	}

	state := store.State{Status: StatusRunning, Turn: known.Turn}
	if err := s.SetState(ctx, lease, state); err != nil {
		return nil, known, errors.Join(err, s.Release(lease))
	}
	return &Log{store: s, lease: lease, isNew: isNew, places: map[string]int{}}, known, nil
}

// Name returns the name of the run.
func (j *Log) Name() string { return j.lease.ID.Name }

// IsNew reports whether Open has created the run.
func (j *Log) IsNew() bool { return j.isNew }

// Discard removes a run that could not begin, in place of Close.
func (j *Log) Discard() error {
	if err := j.store.Remove(context.Background(), j.lease); err != nil {
		return errors.Join(err, j.store.Release(j.lease))
	}
	return nil
}

// Close writes how the run ended, and frees it for other processes.
func (j *Log) Close(status, reason string) error {
	ctx := context.Background() // the run's may have ended
	log, err := j.store.Log(ctx, j.lease.ID)
	if err == nil {
		err = errors.Join(j.endTrace(ctx, log.Turn),
			j.store.SetState(ctx, j.lease, store.State{Status: status, Turn: log.Turn, Reason: reason}))
	}
	if err := errors.Join(err, j.store.Release(j.lease)); err != nil {
		return fmt.Errorf("cannot end %s: %w", j.lease.ID, err)
	}
	return nil
}

// Counts returns the counts of this process.
func (j *Log) Counts() Counts {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.counted
}

// Pinned returns the value that is kept under a name, empty for none.
func (j *Log) Pinned(ctx context.Context, name string) (value string, err error) {
	entries, err := j.store.Entries(ctx, j.lease.ID, store.Query{Kinds: []string{kindPin}})
	for _, e := range entries {
		if e.Key == name {
			value = string(e.Data)
		}
	}
	return value, err
}

// Pin keeps a value under a name. If the run has another value from an earlier process, the
// error says what both are, unless it may change.
func (j *Log) Pin(ctx context.Context, name, value string, mayChange bool) error {
	known, err := j.Pinned(ctx, name)
	if err != nil {
		return err
	}

	switch {
	case known == value:
		return nil
	case known == "" || mayChange:
		return j.store.Append(ctx, j.lease, store.Entry{Kind: kindPin, Key: name, Data: []byte(value)})
	}
	return fmt.Errorf("%s has another %s: it was %.300q and is now %.300q; take another name for a new run",
		j.lease.ID, name, known, value)
}

// Commit is a turn that counts.
type Commit struct {
	Turn int
	// Data is what the loop knows, as JSON.
	Data json.RawMessage
	// State is what the sandbox knows, for Commit. Commits has its digest instead, which
	// Commit takes for a state that has not changed. Both are empty if the state is not whole.
	State  []byte
	Digest string
}

// Commit makes a turn count. It is on the disk when Commit returns.
func (j *Log) Commit(ctx context.Context, c Commit) error {
	j.mu.Lock()
	stopped, isParked := j.stopped, len(j.questions) > 0
	j.mu.Unlock()
	switch {
	case stopped != nil:
		return stopped
	case isParked: // a snippet has gone on without the answer
		return j.stopParked()
	}

	entries, err := j.takeTrace(c.Turn)
	if err == nil {
		entries = append(entries,
			store.Entry{Turn: c.Turn, Kind: kindCommit, Data: c.Data, Blob: c.State, Digest: c.Digest})
		err = j.store.SetState(ctx, j.lease, store.State{Status: StatusRunning, Turn: c.Turn}, entries...)
	}
	if err != nil {
		return j.stop(fmt.Errorf("cannot keep turn %d of %s: %w", c.Turn, j.lease.ID, err))
	}
	return nil
}

// Commits returns the turns that count, in order.
func (j *Log) Commits(ctx context.Context) ([]Commit, error) {
	entries, err := j.store.Entries(ctx, j.lease.ID, store.Query{Kinds: []string{kindCommit}})
	if err != nil {
		return nil, err
	}

	commits := make([]Commit, 0, len(entries))
	for _, e := range entries {
		// A turn that was done again counts in place of the earlier one and those after it.
		for len(commits) > 0 && commits[len(commits)-1].Turn >= e.Turn {
			commits = commits[:len(commits)-1]
		}
		commits = append(commits, Commit{Turn: e.Turn, Data: e.Data, Digest: e.Digest})
	}
	return commits, nil
}

// State returns the state of a commit.
func (j *Log) State(ctx context.Context, c Commit) ([]byte, error) {
	return j.store.Blob(ctx, c.Digest)
}

// GoOnAfter says that the loop has the state of a turn, and goes on after it.
func (j *Log) GoOnAfter(turn int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.from = turn + 1
	j.turn.Store(int64(j.from))
}

// StoppedError says why a run cannot go on. It is the cause with which the run's context ends.
type StoppedError struct{ Err error }

// Error is the reason.
func (e *StoppedError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *StoppedError) Unwrap() error { return e.Err }

// stop ends the run: no step begins any more. It returns the first reason.
func (j *Log) stop(err error) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.stopped == nil {
		err = &StoppedError{err}
		j.stopped = err
		if j.end != nil {
			j.end(err)
		}
	}
	return j.stopped
}
