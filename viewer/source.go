package viewer

import (
	"context"
	"errors"
	"time"
)

// Source provides the runs that a viewer shows. It is safe for concurrent use.
type Source interface {
	// List returns the runs, most recently changed first.
	List(ctx context.Context) ([]Item, error)
	// Open reads a run by its ID. If the run does not exist, the error wraps [ErrNotFound].
	Open(ctx context.Context, id string) (*Run, error)
	// Wait returns when a run may have changed since Open returned it. If the run can no longer
	// change, the error wraps [ErrEnded].
	Wait(ctx context.Context, id string, run *Run) error
}

// These are the errors of a Source.
var (
	ErrNotFound = errors.New("there is no such run")
	ErrEnded    = errors.New("the run has ended")
)

// Item is a run in the list.
type Item struct {
	ID     string  `json:"id"`
	Title  string  `json:"title"`
	Status string  `json:"status,omitempty"`
	Calls  int64   `json:"calls,omitempty"`
	USD    float64 `json:"usd,omitempty"`
	// Unpriced is the number of calls without a known price, which USD does not include.
	Unpriced int64     `json:"unpriced,omitempty"`
	Changed  time.Time `json:"changed,omitzero"`
}

// whenEmpty returns the message of an empty list.
func whenEmpty(s Source) string {
	if hint, ok := s.(interface{ WhenEmpty() string }); ok {
		return hint.WhenEmpty()
	}
	return "There are no runs yet."
}

// Join returns a source with the runs of several sources.
func Join(sources ...Source) Source { return joined(sources) }

type joined []Source

// WhenEmpty returns the last source's message for an empty list.
func (j joined) WhenEmpty() string {
	if len(j) == 0 {
		return whenEmpty(nil)
	}
	return whenEmpty(j[len(j)-1])
}

// List implements [Source].
func (j joined) List(ctx context.Context) (all []Item, err error) {
	for _, s := range j {
		items, err := s.List(ctx)
		if err != nil {
			return nil, err
		}
		all = append(all, items...)
	}
	return all, nil
}

// Open implements [Source].
func (j joined) Open(ctx context.Context, id string) (run *Run, err error) {
	err = ErrNotFound
	for _, s := range j {
		if run, err = s.Open(ctx, id); !errors.Is(err, ErrNotFound) {
			return run, err
		}
	}
	return nil, err
}

// Wait implements [Source].
func (j joined) Wait(ctx context.Context, id string, run *Run) error {
	for _, s := range j {
		if _, err := s.Open(ctx, id); !errors.Is(err, ErrNotFound) {
			return s.Wait(ctx, id, run)
		}
	}
	return ErrNotFound
}
