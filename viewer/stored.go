package viewer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"

	"github.com/rlmhq/rlm/internal/keep/runlog"
	"github.com/rlmhq/rlm/internal/keep/store"
)

// Limits on the runs of a store.
const (
	maxStored = 10_000 // runs in the list
	maxKept   = 4      // runs that stay in memory, so that only new entries must be read
)

// Store is a store of runs.
type Store = store.Store

// Stored is the source of the runs in a store: of those with the given Names, or of all. Other
// processes may be changing the runs.
type Stored struct {
	Store store.Store
	Names []string

	mu     sync.Mutex
	opened []*storedRun // the most recently used one last
}

// storedRun contains the part of a run that has been read.
type storedRun struct {
	name string

	mu     sync.Mutex
	runLog *runlog.Reader
	tree   RunLogReader
	// latest is the last version of the run, which all its viewers share until there are new
	// entries.
	latest *Run
}

// WhenEmpty returns the message of an empty list, which explains how to store runs.
func (s *Stored) WhenEmpty() string {
	return `No run is stored yet. "rlm ask" keeps its last 20 runs unless --no-keep or --store none says otherwise, ` +
		`and each run with --name. "rlm view DIR" shows what --trace wrote.`
}

// List implements [Source].
func (s *Stored) List(ctx context.Context) (items []Item, err error) {
	var logs []store.Log
	if len(s.Names) == 0 {
		logs, err = runlog.List(ctx, s.Store, store.Filter{Kind: store.Run, Limit: maxStored})
	}
	for _, name := range s.Names {
		log, err := runlog.Look(ctx, s.Store, name)
		if err != nil {
			return nil, fmt.Errorf("%s is neither a stored run nor a file or folder: %w", name, err)
		}
		logs = append(logs, log)
	}

	for i := range logs {
		r := &logs[i]
		items = append(items, Item{
			ID: r.Name, Title: r.Title, Status: r.Status,
			Calls: r.Spent.Calls, USD: r.Spent.USD, Unpriced: r.Spent.Unpriced, Changed: r.Updated,
		})
	}
	return items, err
}

// look returns the log of a run if the source includes the run.
func (s *Stored) look(ctx context.Context, name string) (log store.Log, err error) {
	if len(s.Names) > 0 && !slices.Contains(s.Names, name) {
		return log, fmt.Errorf("%w: %s", ErrNotFound, name)
	}
	if log, err = runlog.Look(ctx, s.Store, name); errors.Is(err, store.ErrNotFound) {
		err = errors.Join(ErrNotFound, err)
	}
	return log, err
}

// Open implements [Source].
func (s *Stored) Open(ctx context.Context, name string) (*Run, error) {
	if _, err := s.look(ctx, name); err != nil {
		return nil, err
	}

	opened := s.open(name)
	run, err := opened.read(ctx)
	if err != nil {
		s.forget(opened) // the opened run may be incomplete
	}
	return run, err
}

// open returns the opened run with a name. Beyond the limit, it drops the least recently used run.
func (s *Stored) open(name string) *storedRun {
	s.mu.Lock()
	defer s.mu.Unlock()
	i := slices.IndexFunc(s.opened, func(o *storedRun) bool { return o.name == name })
	one := &storedRun{name: name, runLog: runlog.NewReader(s.Store, name)}
	if i >= 0 {
		one = s.opened[i]
		s.opened = slices.Delete(s.opened, i, i+1)
	}

	s.opened = append(s.opened, one)
	s.opened = s.opened[max(len(s.opened)-maxKept, 0):]
	return one
}

func (s *Stored) forget(one *storedRun) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.opened = slices.DeleteFunc(s.opened, func(o *storedRun) bool { return o == one })
}

// read reads the new entries, and returns the run.
func (o *storedRun) read(ctx context.Context) (*Run, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	news, err := o.runLog.Read(ctx)
	if err != nil {
		return nil, err
	}

	if o.latest != nil && o.latest.Stamp == stampOfLog(&news.Run) && news.IsNone() {
		return o.latest, nil
	}
	if news.IsAnew {
		o.tree = RunLogReader{}
	}

	r, w := io.Pipe()
	go func() { w.CloseWithError(news.Write(w)) }()
	err = o.tree.Add(r)
	_ = r.Close() // frees the writer
	if err != nil {
		return nil, err
	}

	log := &news.Run
	run, err := o.tree.Run(log.Status)
	if err != nil {
		return nil, err
	}

	run.Title, run.Status, run.Stamp = cmp.Or(log.Title, o.name), log.Status, stampOfLog(log)
	run.Nodes[0].Status = log.Status
	if run.Began.IsZero() { // no turn is committed
		run.Began = log.Created
	}
	if log.Reason != "" {
		run.Notes = append(run.Notes, log.Reason)
	}
	o.latest = run
	return run, nil
}

func stampOfLog(log *store.Log) string {
	return fmt.Sprint(log.Updated.UnixNano(), log.Epoch, log.Status)
}

// Wait implements [Source].
func (s *Stored) Wait(ctx context.Context, name string, run *Run) error {
	return Poll(ctx, run, func() (bool, error) {
		now, err := s.look(ctx, name)
		return err == nil && stampOfLog(&now) != run.Stamp, err
	})
}
