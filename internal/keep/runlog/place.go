package runlog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"sync"
)

// place is a position in a run. It travels in contexts.
type place struct {
	journal *Log
	path    string
	queue   *queue // of a slot that has no step yet, nil for none
}

// queue lets the slots of a fan-out begin their first steps in order. Then a slot that is new
// pays nothing before the ones ahead of it have shown that the run takes another course.
type queue struct {
	ahead <-chan struct{} // closed when the slot ahead has begun, nil for none
	begun func()
}

type placeKey struct{}

// With returns a context for a run, which carries its journal. It ends with cancel, and with
// the reason why the run cannot go on.
func With(ctx context.Context, j *Log) (_ context.Context, cancel func()) {
	ctx, end := context.WithCancelCause(ctx)

	j.mu.Lock()
	j.end = end
	j.mu.Unlock()
	return context.WithValue(ctx, placeKey{}, place{journal: j}), func() { end(nil) }
}

// From returns the journal of a context at the root of its run, nil for none. Parts of a run
// that are runs themselves have none.
func From(ctx context.Context) *Log {
	if p, ok := ctx.Value(placeKey{}).(place); ok && p.path == "" {
		return p.journal
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

// EndTurn makes a turn count, in a loop that goes on from its beginning, with the endings that
// are kept. So it has nothing to restore.
func EndTurn(ctx context.Context, turn int) error {
	j := From(ctx)
	if j == nil {
		return nil
	}
	return j.Commit(ctx, Commit{Turn: turn, Data: []byte("{}")})
}

// At returns a context one level deeper, in a part of the run that has the same name whenever
// the run comes there.
func At(ctx context.Context, format string, args ...any) context.Context {
	p, ok := ctx.Value(placeKey{}).(place)
	if !ok {
		return ctx
	}
	p.path += "/" + fmt.Sprintf(format, args...)
	if p.queue != nil {
		p.queue.begun() // a part of a slot may need a sandbox that the next slot holds
		p.queue = nil
	}
	return context.WithValue(ctx, placeKey{}, p)
}

// Slots returns contexts for the n slots of a fan-out, and what to call when a slot has ended.
// The first steps that stand directly in slots begin in order.
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

// AtNext is At for parts that come one after another. It counts them.
func AtNext(ctx context.Context, name string) context.Context {
	p, ok := ctx.Value(placeKey{}).(place)
	if !ok {
		return ctx
	}
	return At(ctx, "%s %d", name, p.journal.count(p.path+"/"+name))
}

// count returns how often it was called for a path.
func (j *Log) count(path string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.places[path]++
	return j.places[path]
}

// longPath is a path so long, in bytes, that its digest stands for it. Only deep trees of
// sub-loops have one.
const longPath = 1 << 10

// key returns the key of the next step at a place.
func (p place) key(what string) string {
	path := shortenPath(p.path + "/" + what)
	return fmt.Sprintf("%s %d", path, p.journal.count(path))
}

// shortenPath bounds a path, which stays the only one of its name.
func shortenPath(path string) string {
	if len(path) <= longPath {
		return path
	}
	sum := sha256.Sum256([]byte(path))
	return path[:longPath/2] + "…" + hex.EncodeToString(sum[:])
}
