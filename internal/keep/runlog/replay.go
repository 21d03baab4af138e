package runlog

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/rlmhq/rlm/internal/keep/store"
)

// exported is a line of a run log that [Export] writes. IsRunLog of package trajectory recognises
// its beginning.
type exported struct {
	Turn  int             `json:"turn"`
	Kind  string          `json:"kind"`
	Key   string          `json:"key,omitempty"`
	Data  json.RawMessage `json:"data,omitempty"`
	Text  string          `json:"text,omitempty"`
	State string          `json:"state,omitempty"`
	Cost  store.Cost      `json:"cost"`
}

// These bounds, in bytes, apply to a run log to replay.
const (
	maxReplay     = 1 << 30
	maxReplayLine = store.MaxData + 1<<20
)

// Replay returns a run log whose steps end like those of an exported one. It stores nothing. The
// run starts from its beginning, because the states of sandboxes are not exported.
func Replay(r io.Reader) (*Log, error) {
	s := &replayed{}
	limited := &io.LimitedReader{R: r, N: maxReplay + 1}
	lines := bufio.NewScanner(limited)
	lines.Buffer(make([]byte, 64<<10), maxReplayLine)
	for number := 1; lines.Scan(); number++ {
		var e exported
		if err := decodeStrictly(lines.Bytes(), &e); err != nil {
			return nil, fmt.Errorf("cannot replay the run log: line %d: %w", number, err)
		}
		if slices.Contains(replayedKinds, e.Kind) {
			s.entries = append(s.entries, store.Entry{Turn: e.Turn, Kind: e.Kind, Key: e.Key, Data: e.Data})
		}
	}

	err := lines.Err()
	if err == nil && limited.N == 0 {
		err = fmt.Errorf("it has more than %d bytes", maxReplay)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot replay the run log: %w", err)
	}

	j := &Log{store: s, isNew: true, places: map[string]int{}}
	if err := j.load(context.Background()); err != nil {
		return nil, err
	}
	return j, nil
}

// replayedKinds lists the kinds of entries that a resumed run reads.
var replayedKinds = []string{kindBegun, kindStep, kindStart, kindDecision}

// replayed is a store with the entries of one run log. It discards all changes.
type replayed struct {
	store.Store // no other method is called

	entries []store.Entry
}

// Entries implements [store.Store].
func (r *replayed) Entries(_ context.Context, _ store.ID, q store.Query) (entries []store.Entry, err error) {
	for _, e := range r.entries {
		if slices.Contains(q.Kinds, e.Kind) {
			entries = append(entries, e)
		}
	}
	return entries, nil
}

// Append implements [store.Store].
func (r *replayed) Append(context.Context, store.Lease, ...store.Entry) error { return nil }

// Note implements [store.Store].
func (r *replayed) Note(store.Lease, store.Entry) {}

// SetState implements [store.Store].
func (r *replayed) SetState(context.Context, store.Lease, store.State, ...store.Entry) error {
	return nil
}

// Blob implements [store.Store].
func (r *replayed) Blob(context.Context, string) ([]byte, error) {
	return nil, errors.New("a run log that is replayed has no contents")
}
