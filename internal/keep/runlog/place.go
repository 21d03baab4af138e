package runlog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"

	"github.com/rlmhq/rlm/internal/keep/store"
)

// place is a position in a run. Contexts carry it.
type place struct {
	runLog *Log
	path   string
	queue  *queue // the queue of a slot that has no step yet, or nil
}

// queue makes the slots of a fan-out begin their first steps in order. So a new slot pays for
// nothing until the slots ahead of it have shown whether the run takes a different course.
type queue struct {
	ahead <-chan struct{} // closed when the slot ahead has begun, or nil
	begun func()
}

type placeKey struct{}

// With returns a context for a run, which carries its run log. The context ends with cancel, or
// with the reason why the run cannot continue, such as the loss of its lease.
func With(ctx context.Context, j *Log) (_ context.Context, cancel func()) {
	ctx, end := context.WithCancelCause(ctx)

	j.mu.Lock()
	j.end = end
	j.mu.Unlock()
	if watched, ok := j.store.(store.Watcher); ok {
		go j.watch(ctx, watched.Watch(j.lease))
	}
	return context.WithValue(ctx, placeKey{}, place{runLog: j}), func() { end(nil) }
}

// watch stops the run when its lease is lost, so that it does not act on the world beside the run of
// another process.
func (j *Log) watch(ctx context.Context, lost <-chan struct{}) {
	select {
	case <-lost:
		_ = j.stop(fmt.Errorf("%s: %w", j.lease.ID, store.ErrLost))
	case <-ctx.Done():
	}
}

// From returns the run log of a context at the root of its run, or nil. Parts of a run that are
// runs themselves have no run log.
func From(ctx context.Context) *Log {
	if p, ok := ctx.Value(placeKey{}).(place); ok && p.path == "" {
		return p.runLog
	}
	return nil
}

// EnterTurn returns the context of a turn of a loop at the root of its run. The next steps belong
// to the turn.
func EnterTurn(ctx context.Context, turn int) context.Context {
	if j := From(ctx); j != nil {
		j.turn.Store(int64(turn))
	}
	return At(ctx, "turn %d", turn)
}

// EndTurn commits a turn of a loop that always continues from its beginning with the recorded
// endings, so it has no state to restore.
func EndTurn(ctx context.Context, turn int) error {
	j := From(ctx)
	if j == nil {
		return nil
	}
	return j.Commit(ctx, Commit{Turn: turn, Data: []byte("{}")})
}

// At returns a context one level deeper, for a part of the run that has the same name in every
// process.
func At(ctx context.Context, format string, args ...any) context.Context {
	p, ok := ctx.Value(placeKey{}).(place)
	if !ok {
		return ctx
	}
	p.path += "/" + fmt.Sprintf(format, args...)
	if p.queue != nil {
		p.queue.begun() // part of a slot may need a sandbox that the next slot holds
		p.queue = nil
	}
	return context.WithValue(ctx, placeKey{}, p)
}

// Slots returns contexts for the n slots of a fan-out, each with a function to call when the slot
// has ended. The first steps directly in the slots begin in order.
func Slots(ctx context.Context, n int) func(i int) (_ context.Context, ended func()) {
	p, ok := ctx.Value(placeKey{}).(place)
	if !ok {
		return func(int) (context.Context, func()) { return ctx, func() {} }
	}

	begun := make([]chan struct{}, n)
	for i := range begun {
		begun[i] = make(chan struct{})
	}
	return func(i int) (context.Context, func()) {
		slot := p
		slot.path += fmt.Sprintf("/slot %d", i)
		slot.queue = &queue{begun: sync.OnceFunc(func() { close(begun[i]) })}
		if i > 0 {
			slot.queue.ahead = begun[i-1]
		}
		return context.WithValue(ctx, placeKey{}, slot), slot.queue.begun
	}
}

// wait waits until the slot ahead has begun.
func (q *queue) wait(ctx context.Context) error {
	if q == nil || q.ahead == nil {
		return nil
	}
	select {
	case <-q.ahead:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// AtNext is like At, for parts that follow one another. It numbers them.
func AtNext(ctx context.Context, name string) context.Context {
	p, ok := ctx.Value(placeKey{}).(place)
	if !ok {
		return ctx
	}
	return At(ctx, "%s %d", name, p.runLog.count(p.path+"/"+name))
}

// count returns how often it was previously called for a path.
func (j *Log) count(path string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.places[path]++
	return j.places[path]
}

// longPath is the length, in bytes, from which a digest replaces a path. Only deep trees of
// sub-loops have paths of this length.
const longPath = 1 << 10

// key returns the key of the next step at a place.
func (p place) key(what string) string {
	path := shortenPath(p.path + "/" + what)
	return fmt.Sprintf("%s %d", path, p.runLog.count(path))
}

// shortenPath bounds the length of a path and keeps it unique.
func shortenPath(path string) string {
	if len(path) <= longPath {
		return path
	}
	sum := sha256.Sum256([]byte(path))
	return path[:longPath/2] + "…" + hex.EncodeToString(sum[:])
}
