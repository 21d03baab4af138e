package openai

import (
	"context"
	"errors"
	"sync"

	"github.com/rlmhq/rlm/internal/serve/access"
)

// directs are the direct answers that are made in the background.
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

func (d *directs) has(id string) bool { return d.get(id) != nil }

// wait waits for the end of an answer, if it goes on.
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

// answerLater makes a direct answer in the background.
func (a *API) answerLater(k access.Key, q *asked, row *stored) {
	ctx, end := context.WithCancel(context.Background())
	one := &direct{end, make(chan struct{})}
	a.directs.mu.Lock()
	a.directs.all[row.ID] = one
	a.directs.mu.Unlock()

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

		a.directs.mu.Lock()
		delete(a.directs.all, row.ID)
		a.directs.mu.Unlock()
		close(one.done)
	}()
}
