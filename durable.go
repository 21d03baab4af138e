package rlm

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/rlmhq/rlm/internal/journal"
	"github.com/rlmhq/rlm/internal/store"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/run"
	"github.com/rlmhq/rlm/tiers"
)

// Run is a durable run in a store.
type Run struct {
	Name     string `json:"name"`
	Question string `json:"question"`
	// Status is "running", "interrupted", or how the run ended. An interrupted run goes on
	// with the next Answer of its name, and so does one whose budget was used up.
	Status string `json:"status"`
	Reason string `json:"reason,omitempty"`
	// Turns counts the committed turns of the root.
	Turns int `json:"turns"`
	// Spent is what all processes of the run have paid, turns that were taken back included.
	Spent ledger.Spending `json:"spent"`
	// Parent is the run that this one branched from, after ParentTurn.
	Parent     string    `json:"parent,omitempty"`
	ParentTurn int       `json:"parent_turn,omitempty"`
	Created    time.Time `json:"created"`
	Updated    time.Time `json:"updated"`
}

// Runs returns the durable runs of the engine's store, the latest change first.
func (e *Engine) Runs(ctx context.Context) ([]Run, error) {
	s, err := e.store.open()
	if err != nil {
		return nil, err
	}
	logs, err := s.Logs(ctx, store.Filter{Kind: store.Run})
	if err != nil {
		return nil, err
	}

	runs := make([]Run, len(logs))
	for i := range logs {
		if runs[i], err = describeRun(ctx, s, &logs[i]); err != nil {
			return nil, err
		}
	}
	return runs, nil
}

func describeRun(ctx context.Context, s store.Store, log *store.Log) (Run, error) {
	status, err := journal.Status(ctx, s, log)
	return Run{
		Name: log.Name, Question: log.Title, Status: status, Reason: log.Reason, Turns: log.Turn,
		Spent:  ledger.Spending(log.Spent),
		Parent: log.Parent, ParentTurn: log.ParentTurn, Created: log.Created, Updated: log.Updated,
	}, err
}

// RewindRun takes back the turns of a run after a turn, 0 for all. The next Answer of its
// name goes on from there, and asks the models again.
func (e *Engine) RewindRun(ctx context.Context, name string, turn int) error {
	s, err := e.store.open()
	if err != nil {
		return err
	}
	return journal.Rewind(ctx, s, name, turn)
}

// ForkRun makes a new run that has the turns of another one up to a turn. It shares their
// contents. The first Answer of its name may have another question, contract, model and
// budget, with the same contexts.
func (e *Engine) ForkRun(ctx context.Context, name string, turn int, fork string) error {
	s, err := e.store.open()
	if err != nil {
		return err
	}
	return journal.Fork(ctx, s, name, turn, store.Log{ID: store.ID{Kind: store.Run, Name: fork}})
}

// RemoveRun deletes a run, and the contents that only it had.
func (e *Engine) RemoveRun(ctx context.Context, name string) error {
	s, err := e.store.open()
	if err != nil {
		return err
	}
	return journal.Remove(ctx, s, name)
}

// runStore is the store of an engine, which the first run with a name opens.
type runStore struct {
	setting string

	mu     sync.Mutex
	folder *store.Folder
	closed bool
}

func (r *runStore) open() (*store.Folder, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closed {
		return nil, errEngineClosed
	}
	if r.folder != nil {
		return r.folder, nil
	}

	if r.setting == "" {
		return nil, errors.New("there is no store: set Options.Store to a folder")
	}
	folder, err := store.Open(r.setting)
	if err == nil {
		r.folder = folder
	}
	return folder, err
}

func (r *runStore) close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closed = true
	if r.folder == nil {
		return nil
	}
	return r.folder.Close()
}

// keepRun runs a loop with the journal of a name, without one if the name is empty.
func (e *Engine) keepRun(
	ctx context.Context, name string, cfg run.Config, loop func(context.Context) (*run.Outcome, error),
) error {
	if name == "" {
		_, err := loop(ctx)
		return err
	}
	j, err := e.openJournal(ctx, name, cfg)
	if err != nil {
		return refuse(ctx, fmt.Errorf("cannot keep the run: %w", err))
	}

	ctx, cancel := journal.With(ctx, j)
	defer cancel()
	outcome, err := loop(ctx)
	status, reason := string(outcome.Status), outcome.Reason
	switch {
	case outcome.Status == ledger.StatusCanceled || status == "":
		status = journal.StatusInterrupted
	case err != nil && reason == "":
		reason = err.Error()
	}
	return errors.Join(err, j.Close(status, reason))
}

// openJournal opens the journal of a run, whose question and contexts stay the same.
func (e *Engine) openJournal(ctx context.Context, name string, cfg run.Config) (*journal.Journal, error) {
	s, err := e.store.open()
	if err != nil {
		return nil, err
	}
	id := store.ID{Kind: store.Run, Name: name}
	j, log, err := journal.Open(ctx, s, store.Log{ID: id, Title: cfg.Question})
	if err != nil {
		return nil, err
	}

	isFresh := log.Parent != "" && log.Turn == log.ParentTurn // a fork may have another question
	err = j.Pin(ctx, "question", cfg.Question, isFresh)
	if err == nil {
		err = j.Pin(ctx, "contexts", listContexts(cfg.Inputs), false)
	}
	if err != nil {
		return nil, errors.Join(err, j.Close(log.Status, log.Reason))
	}
	return j, nil
}

// listContexts describes contexts, so that others can be told from them.
func listContexts(inputs []tiers.Input) string {
	described := describeContexts(inputs)
	list := make([]string, len(described))
	for i, c := range described {
		list[i] = fmt.Sprintf("%s (%s of size %d)", inputs[i].Name, c.Kind, c.Bytes)
	}
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, ", ")
}
