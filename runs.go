package rlm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/rlmhq/rlm/internal/keep/runlog"
	"github.com/rlmhq/rlm/internal/keep/store"
	"github.com/rlmhq/rlm/repl/ledger"
)

// StoredRun is a durable run in a store.
type StoredRun struct {
	Name     string `json:"name"`
	Question string `json:"question"`
	// Status is "running", "interrupted", or how the run ended. If a run was interrupted or
	// exhausted its budget, the next Ask with its name continues it.
	Status string `json:"status"`
	Reason string `json:"reason,omitempty"`
	// Turns is the number of committed turns of the root loop.
	Turns int `json:"turns"`
	// Spent is the total that all processes of the run paid, including turns that were rewound.
	Spent ledger.Spending `json:"spent"`
	// Parent is the run that this one branched from, after ParentTurn.
	Parent     string    `json:"parent,omitempty"`
	ParentTurn int       `json:"parent_turn,omitempty"`
	Created    time.Time `json:"created"`
	Updated    time.Time `json:"updated"`
	// Begun is the Task.Begun of the first Ask of the run.
	Begun json.RawMessage `json:"-"`
	// Waiting lists the calls of a parked run that wait for Decide.
	Waiting []Approval `json:"waiting,omitempty"`
	// History summarises the turns. Only ShowRun sets it.
	History []RunTurn `json:"turn_list,omitempty"`
}

// RunTurn summarises a turn of a durable run.
type RunTurn struct {
	Turn      int  `json:"turn"`
	Committed bool `json:"committed"`
	// Steps counts the answered calls. Open counts the calls that began but were never answered;
	// they may have cost money without a result.
	Steps int             `json:"steps"`
	Open  int             `json:"open,omitempty"`
	Spent ledger.Spending `json:"spent"`
	// Last is the request of the last call.
	Last string `json:"last,omitempty"`
}

// Approval is a call that waits for a person: see run.Config.Approve.
type Approval struct {
	// ID identifies the call for Decide.
	ID string `json:"id"`
	// Call is the whole call as JSON: its function, args and named arguments. A model's code wrote
	// them.
	Call json.RawMessage `json:"call"`
	// Why names the function and gives the reason for the wait.
	Why   string    `json:"why"`
	Asked time.Time `json:"asked"`
}

// Decision decides a waiting call.
type Decision struct {
	Allow bool `json:"allow"`
	// Reason is the explanation that the snippet receives if the call is denied.
	Reason string `json:"reason,omitempty"`
	// Value, as JSON, answers an allowed call without making it. Empty means that the call is
	// made.
	Value json.RawMessage `json:"value,omitempty"`
}

// RunFilter selects durable runs. A zero field matches all.
type RunFilter struct {
	Status string
	// Text is a substring of the name or the question, regardless of case.
	Text string
	// MinUSD is the minimum cost. Since is the earliest time of the last change.
	MinUSD float64
	Since  time.Time
	// Limit is the maximum number of runs.
	Limit int
}

// Runs returns durable runs of the engine's store, most recently changed first.
func (e *Engine) Runs(ctx context.Context, f RunFilter) ([]StoredRun, error) {
	s, err := e.store.open(true)
	if err != nil {
		return nil, err
	}
	logs, err := runlog.List(ctx, s, store.Filter{
		Kind: store.Run, Status: f.Status, Text: f.Text, MinUSD: f.MinUSD, Since: f.Since, Limit: f.Limit,
	})
	if err != nil {
		return nil, err
	}

	runs := make([]StoredRun, len(logs))
	for i := range logs {
		if runs[i], err = describeRun(ctx, s, &logs[i]); err != nil {
			return nil, err
		}
	}
	return runs, nil
}

// Decide decides the waiting call whose [Approval] has the ID. If the call is allowed, the next Ask
// makes it once, or uses the decision's Value instead. If the call is denied, the snippet receives
// an exception. Decide returns the name of the run.
func (e *Engine) Decide(ctx context.Context, id string, d Decision) (name string, err error) {
	s, err := e.store.open(false)
	if err != nil {
		return "", err
	}
	question, err := runlog.Decide(ctx, s, id, runlog.Decision(d))
	return question.Run, err
}

func describeRun(ctx context.Context, s store.Store, log *store.Log) (StoredRun, error) {
	run := StoredRun{
		Name: log.Name, Question: log.Title, Status: log.Status, Reason: log.Reason, Turns: log.Turn,
		Spent: ledger.Spending(log.Spent), Begun: log.Spec,
		Parent: log.Parent, ParentTurn: log.ParentTurn, Created: log.Created, Updated: log.Updated,
	}
	if log.Status != runlog.StatusParked {
		return run, nil
	}

	questions, err := runlog.Questions(ctx, s, log.Name)
	for _, q := range questions {
		run.Waiting = append(run.Waiting, Approval{ID: q.ID, Call: q.Call, Why: q.Why, Asked: q.Asked})
	}
	return run, err
}

// ShowRun returns a durable run with its history.
func (e *Engine) ShowRun(ctx context.Context, name string) (run StoredRun, err error) {
	s, err := e.store.open(true)
	if err != nil {
		return run, err
	}
	log, turns, err := runlog.Show(ctx, s, name)
	if err != nil {
		return run, err
	}

	if run, err = describeRun(ctx, s, &log); err != nil {
		return run, err
	}
	for _, t := range turns {
		run.History = append(run.History, RunTurn{
			Turn: t.Turn, Committed: t.Committed, Steps: t.Steps, Open: t.Open,
			Spent: ledger.Spending(t.Cost), Last: t.Last,
		})
	}
	return run, nil
}

// ExportRun writes the log of a run as JSON lines: each call with its request, reply and cost, and
// each turn.
func (e *Engine) ExportRun(ctx context.Context, name string, w io.Writer) error {
	s, err := e.store.open(true)
	if err != nil {
		return err
	}
	return runlog.Export(ctx, s, store.ID{Kind: store.Run, Name: name}, w)
}

// RewindRun discards the turns of a run after the given turn; 0 discards all. The next Ask with
// its name continues from there, and asks the models again.
func (e *Engine) RewindRun(ctx context.Context, name string, turn int) error {
	s, err := e.store.open(false)
	if err != nil {
		return err
	}
	return runlog.Rewind(ctx, s, name, turn)
}

// ForkRun makes a new run from the turns of another run up to the given turn. The two share their
// contents. ForkRun uses the Name of fork, and its Question and Begun if they are set. The first
// Ask with the new name may have another question, contract, model and budget, but must have the
// same contexts.
func (e *Engine) ForkRun(ctx context.Context, name string, turn int, fork StoredRun) error {
	s, err := e.store.open(false)
	if err != nil {
		return err
	}
	return runlog.Fork(ctx, s, name, turn, store.Log{
		ID: store.ID{Kind: store.Run, Name: fork.Name}, Title: fork.Question, Spec: fork.Begun,
	})
}

// RemoveRun deletes a run, and the contents that no other run uses.
func (e *Engine) RemoveRun(ctx context.Context, name string) error {
	s, err := e.store.open(false)
	if err != nil {
		return err
	}
	return runlog.Remove(ctx, s, name)
}

// Store determines where an engine keeps named runs. Package [github.com/rlmhq/rlm/store] makes
// stores. Several engines and processes may use one store at the same time.
type Store interface {
	// String names the store in messages.
	String() string
}

// runStore is the store of an engine, opened at its first use.
type runStore struct {
	opener store.Opener // nil if there is no store

	mu     sync.Mutex
	writer store.Store // for writing and reading
	reader store.Store // for a store that cannot be written
	closed bool
}

func newRunStore(s Store) (*runStore, error) {
	if s == nil {
		return &runStore{}, nil
	}
	opener, ok := s.(store.Opener)
	if !ok {
		return nil, fmt.Errorf("cannot use the store %s: pass one of package store", s)
	}
	return &runStore{opener: opener}, nil
}

// open returns the store. If reads is set, the store may be on a read-only disk.
func (r *runStore) open(reads bool) (store.Store, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case r.closed:
		return nil, errEngineClosed
	case r.writer != nil:
		return r.writer, nil
	case r.reader != nil && reads:
		return r.reader, nil
	case r.opener == nil:
		return nil, errors.New("there is no store: set Options.Store, for example to store.Folder")
	}

	s, err := r.opener.Open(reads)
	switch {
	case err != nil:
		return nil, fmt.Errorf("cannot use the durable runs: %w", err)
	case s.IsReadOnly():
		r.reader = s
	default:
		r.writer = s
	}
	return s, nil
}

func (r *runStore) close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	var errs []error
	for _, s := range []store.Store{r.writer, r.reader} {
		if s != nil {
			errs = append(errs, s.Close())
		}
	}
	return errors.Join(errs...)
}
