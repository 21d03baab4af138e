// Package runlog records what a run has paid for and how far it got, so that the run can continue
// after its process has ended.
//
// A run's context carries its [Log] and the place in the run: turn, snippet, call, slot. [Begin]
// identifies a step by its place. The first time, the caller performs the step and records its
// ending; in a later process, the run log returns the ending. A step's record is written before its
// result is used. A run that takes a different course than before is stopped before it pays for
// anything.
//
// Loops commit their turns. A run continues from the last commit with a complete state, and repeats
// the steps after it with their recorded endings.
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

// These are the kinds of entries in the log of a run.
const (
	kindPin    = "pin"    // a value that must not change
	kindBegun  = "begun"  // a step began: without an ending, it may have been paid for
	kindStep   = "step"   // how a step ended
	kindLost   = "lost"   // the cost of a step without an ending
	kindCommit = "commit" // a turn
	kindStart  = "start"  // the start of a snippet
	kindTrace  = "trace"  // a turn's lines of the record for humans

	kindQuestion = "question" // the question of a step that waits for a person
	kindDecision = "decision" // the answer to such a question
)

// These are the statuses of runs that have not ended. Loops define the others.
const (
	StatusRunning     = "running"
	StatusInterrupted = "interrupted"
)

// Log is the log of one run in this process. It is safe for concurrent use.
type Log struct {
	store store.Store
	lease store.Lease
	isNew bool
	spare bool // see Spare
	turn  atomic.Int64

	mu      sync.Mutex
	end     context.CancelCauseFunc // ends the run's context
	stopped error                   // why no further step may begin
	places  map[string]int          // number of steps begun at a place
	loaded  bool
	from    int // the first turn whose steps are repeated
	steps   map[string]*step
	byWhat  map[string][]*step // the same steps, by digest
	starts  map[string]Start
	counted Counts

	inFlight  int // steps without a known ending, between Begin and Leave
	questions []Question
	decisions map[string]*Decision

	traced traced
}

// Counts counts the steps of this process.
type Counts struct {
	// Replayed counts steps whose endings came from the run log, Made all others.
	Replayed int `json:"replayed"`
	Made     int `json:"made"`
	// Again counts steps that had also begun in an earlier process, which ended before they did.
	// They may be paid for twice.
	Again int `json:"again"`
}

// Open opens the log of a run, and creates it if necessary. It also returns the stored log in its
// previous state. The caller must close the Log.
func Open(ctx context.Context, s store.Store, log store.Log) (*Log, store.Log, error) {
	log.Status = StatusRunning
	known, err := s.Log(ctx, log.ID)
	isNew := errors.Is(err, store.ErrNotFound)
	if isNew {
		known = log
		if err = s.Create(ctx, log); errors.Is(err, store.ErrExists) {
			known, err = s.Log(ctx, log.ID) // another process created it first
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

// IsNew reports whether Open created the run.
func (j *Log) IsNew() bool { return j.isNew }

// Discard removes a run that could not begin. It replaces Close.
func (j *Log) Discard() error {
	if err := j.store.Remove(context.Background(), j.lease); err != nil {
		return errors.Join(err, j.store.Release(j.lease))
	}
	return nil
}

// Close records how the run ended, and frees it for other processes.
func (j *Log) Close(status, reason string) error {
	ctx := context.Background() // the run's context may have ended
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

// Pinned returns the value recorded under a name, or an empty string.
func (j *Log) Pinned(ctx context.Context, name string) (value string, err error) {
	entries, err := j.store.Entries(ctx, j.lease.ID, store.Query{Kinds: []string{kindPin}})
	for _, e := range entries {
		if e.Key == name {
			value = string(e.Data)
		}
	}
	return value, err
}

// Pin records a value under a name. If an earlier process recorded another value, Pin returns an
// error with both values, unless the value may change.
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

// Commit is a committed turn.
type Commit struct {
	Turn int
	// Data is the state of the loop, as JSON.
	Data json.RawMessage
	// State is the state of the sandbox, for Commit. Commits sets its digest instead, which Commit
	// also accepts for an unchanged state. Both are empty if the state is incomplete.
	State  []byte
	Digest string
}

// Commit commits a turn, which is durable when Commit returns.
func (j *Log) Commit(ctx context.Context, c Commit) error {
	j.mu.Lock()
	stopped, isParked := j.stopped, len(j.questions) > 0
	j.mu.Unlock()
	switch {
	case stopped != nil:
		return stopped
	case isParked: // a snippet continued without the answer
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

// Commits returns the committed turns, in order.
func (j *Log) Commits(ctx context.Context) ([]Commit, error) {
	entries, err := j.store.Entries(ctx, j.lease.ID, store.Query{Kinds: []string{kindCommit}})
	if err != nil {
		return nil, err
	}

	commits := make([]Commit, 0, len(entries))
	for _, e := range entries {
		// A repeated turn replaces the earlier one and all turns after it.
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

// GoOnAfter records that the loop has restored the state of a turn, and continues after that turn.
func (j *Log) GoOnAfter(turn int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.from = turn + 1
	j.turn.Store(int64(j.from))
}

// StoppedError reports why a run cannot continue. It is the cause that ends the run's context.
type StoppedError struct{ Err error }

// Error returns the reason as a string.
func (e *StoppedError) Error() string { return e.Err.Error() }

// Unwrap returns the reason.
func (e *StoppedError) Unwrap() error { return e.Err }

// stop ends the run, so that no further step begins. It returns the first reason.
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
