package journal

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
)

// place is a position in a run. It travels in contexts.
type place struct {
	journal *Journal
	path    string
}

type placeKey struct{}

// With returns a context for a run, which carries its journal. It ends with cancel, and with
// the reason why the run cannot go on.
func With(ctx context.Context, j *Journal) (_ context.Context, cancel func()) {
	ctx, end := context.WithCancelCause(ctx)

	j.mu.Lock()
	j.end = end
	j.mu.Unlock()
	return context.WithValue(ctx, placeKey{}, place{journal: j}), func() { end(nil) }
}

// From returns the journal of a context at the root of its run, nil for none. Parts of a run
// that are runs themselves have none.
func From(ctx context.Context) *Journal {
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
	return context.WithValue(ctx, placeKey{}, p)
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
func (j *Journal) count(path string) int {
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
	path := p.path + "/" + what
	if len(path) > longPath {
		sum := sha256.Sum256([]byte(path))
		path = path[:longPath/2] + "…" + hex.EncodeToString(sum[:])
	}
	return fmt.Sprintf("%s %d", path, p.journal.count(path))
}
