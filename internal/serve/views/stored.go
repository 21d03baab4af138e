// Package views has the runs that the viewer shows: those in the store of an engine, and those of
// a server's tenants.
package views

import (
	"cmp"
	"context"
	"fmt"
	"io"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/internal/viewer"
)

// Stored is the source of the runs in an engine's store: of those with Names, or of all.
type Stored struct {
	Engine *rlm.Engine
	Names  []string
}

// List implements [viewer.Source].
func (s *Stored) List(ctx context.Context) (items []viewer.Item, err error) {
	var runs []rlm.Run
	if len(s.Names) == 0 {
		runs, err = s.Engine.Runs(ctx, rlm.RunFilter{Limit: 10_000})
	}
	for _, name := range s.Names {
		run, err := s.Engine.ShowRun(ctx, name)
		if err != nil {
			return nil, fmt.Errorf("%s is neither a stored run nor a file or folder: %w", name, err)
		}
		runs = append(runs, run)
	}

	for i := range runs {
		r := &runs[i]
		items = append(items, viewer.Item{
			ID: r.Name, Title: r.Question, Status: r.Status, Calls: r.Spent.Calls, USD: r.Spent.USD, Changed: r.Updated,
		})
	}
	return items, err
}

// find returns a run that is in the list.
func (s *Stored) find(ctx context.Context, name string) (run rlm.Run, err error) {
	items, err := s.List(ctx)
	if err != nil {
		return run, err
	}
	for i := range items {
		if items[i].ID == name {
			return s.Engine.ShowRun(ctx, name)
		}
	}
	return run, fmt.Errorf("%w: %s", viewer.ErrNotFound, name)
}

// Open implements [viewer.Source].
func (s *Stored) Open(ctx context.Context, name string) (*viewer.Run, error) {
	known, err := s.find(ctx, name)
	if err != nil {
		return nil, err
	}
	r, w := io.Pipe()
	go func() { w.CloseWithError(s.Engine.ExportRun(ctx, name, w)) }()
	run, err := viewer.ReadJournal(r)
	_ = r.Close() // frees the writer
	if err != nil {
		return nil, err
	}

	run.Title, run.Status = cmp.Or(known.Question, name), known.Status
	run.Nodes[0].Status = known.Status
	run.Stamp = stampOf(&known)
	if known.Reason != "" {
		run.Notes = append(run.Notes, known.Reason)
	}
	return run, nil
}

func stampOf(run *rlm.Run) string { return fmt.Sprint(run.Updated.UnixNano(), run.Status) }

// Wait implements [viewer.Source].
func (s *Stored) Wait(ctx context.Context, name string, run *viewer.Run) error {
	return viewer.Poll(ctx, run, func() (bool, error) {
		now, err := s.find(ctx, name)
		return err == nil && stampOf(&now) != run.Stamp, err
	})
}
