package openai

import (
	"context"
	"errors"
	"sync"

	"github.com/rlmhq/rlm/server/internal/access"
)

// directs are the direct answers in progress that will be stored, whether they are made in the
// background or for a waiting client.
type directs struct {
	mu  sync.Mutex
	all map[string]*direct
}

type direct struct {
	end  context.CancelFunc
	done chan struct{}
}

func (d *directs) get(id string) *direct {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.all[id]
}

// add adds an answer, which end interrupts. Call remove when the answer has ended.
func (d *directs) add(id string, end context.CancelFunc) (remove func()) {
	one := &direct{end, make(chan struct{})}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.all[id] = one

	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.all, id)
		close(one.done)
	}
}

func (d *directs) has(id string) bool { return d.get(id) != nil }

// wait waits for the end of an answer, if it is in progress.
func (d *directs) wait(ctx context.Context, id string) error {
	one := d.get(id)
	if one == nil {
		return nil
	}

	select {
	case <-one.done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (d *directs) cancel(ctx context.Context, id string) error {
	if one := d.get(id); one != nil {
		one.end()
	}
	return d.wait(ctx, id)
}

// answerLater stores a response, and makes its direct answer in the background.
func (a *API) answerLater(inserting context.Context, k access.Key, q *asked, row *stored) error {
	ctx, end := context.WithCancel(context.Background())
	remove := a.directs.add(row.ID, end)
	if err := a.insert(inserting, row); err != nil {
		end()
		remove()
		return err
	}
	t := &teller{resource: row.resource}
	go func() {
		defer end()
		err := a.answerNow(ctx, k, q, t)
		if err != nil {
			got := answered{}
			if ctx.Err() != nil {
				got.details.Status = "canceled"
			}
			err = t.end(&got, err, unixNow())
		}
		if err = errors.Join(err, a.update(context.Background(), &t.resource)); err != nil {
			a.Log.Error("cannot keep a response", "response", row.ID, "error", err)
		}
		remove()
	}()
	return nil
}

// keepNow stores a response for a waiting client before the model is asked, so that no answer is
// paid for that cannot be stored. Call forget at the end; it deletes the response if there is no
// answer.
func (a *API) keepNow(
	ctx context.Context, row *stored, t *teller,
) (_ context.Context, forget func(), err error) {
	row.resource = t.resource
	row.Status = "in_progress"
	ctx, end := context.WithCancel(ctx)
	remove := a.directs.add(row.ID, end)
	if err := a.insert(ctx, row); err != nil {
		end()
		remove()
		return nil, nil, err
	}

	isKept := false
	t.keep = func(r *resource) error {
		isKept = true
		return a.update(context.WithoutCancel(ctx), r)
	}
	return ctx, func() {
		defer remove()
		defer end()
		if isKept {
			return
		}
		if err := a.remove(context.WithoutCancel(ctx), row.ID); err != nil {
			a.Log.Error("cannot delete a response without an answer", "response", row.ID, "error", err)
		}
	}, nil
}

// waiting counts the clients that wait for each run, because requests with the same Idempotency-Key
// share a run.
type waiting struct {
	mu  sync.Mutex
	all map[string]int
}

// enter adds a client of a run. Leave removes it, and reports whether it was the last one.
func (w *waiting) enter(run string) (leave func() (isLast bool)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.all == nil {
		w.all = map[string]int{}
	}
	w.all[run]++

	return func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.all[run]--; w.all[run] > 0 {
			return false
		}
		delete(w.all, run)
		return true
	}
}
