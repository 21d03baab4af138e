package runlog

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"time"

	"github.com/rlmhq/rlm/internal/keep/store"
)

// Start contains the inputs of a snippet that do not depend on code. A repeated snippet has the
// same start, so it takes the same course.
type Start struct {
	Seed []byte    `json:"seed"` // the seed of its randomness
	Time time.Time `json:"time"` // the initial time in the snippet
}

// seedSize is the length of a seed, in bytes.
const seedSize = 32

// StartSnippet returns the start of the snippet at the place of a context, or a zero Start if the
// context has no run log. It does not wait for the disk: the start is durable before the first step
// that can depend on it.
func StartSnippet(ctx context.Context) (Start, error) {
	p, ok := ctx.Value(placeKey{}).(place)
	if !ok {
		return Start{}, nil
	}
	j, key := p.runLog, shortenPath(p.path)
	if err := j.load(ctx); err != nil {
		return Start{}, j.stop(err)
	}

	j.mu.Lock()
	known, ok := j.starts[key]
	j.mu.Unlock()
	if ok {
		return known, nil
	}

	s := Start{Seed: make([]byte, seedSize), Time: time.Now().Round(0)} // without the monotonic clock
	_, _ = rand.Read(s.Seed)                                            // it never fails
	data, err := json.Marshal(s)
	if err != nil {
		return Start{}, err
	}
	j.store.Note(j.lease, store.Entry{Turn: int(j.turn.Load()), Kind: kindStart, Key: key, Data: data})
	return s, nil
}

// decodeStart decodes a start strictly.
func decodeStart(data []byte) (s Start, err error) {
	if err := decodeStrictly(data, &s); err != nil {
		return s, err
	}
	if len(s.Seed) != seedSize || s.Time.IsZero() {
		return s, fmt.Errorf("%w: a snippet begins with a seed of %d bytes at %v", store.ErrDamaged,
			len(s.Seed), s.Time)
	}
	return s, nil
}
