package runlog

import (
	"context"
	"encoding/json"
	"io"

	"github.com/rlmhq/rlm/internal/keep/store"
)

// Turn summarises the entries of one turn of a run.
type Turn struct {
	Turn      int  `json:"turn"`
	Committed bool `json:"committed"`
	// Steps counts steps with an ending. Open counts steps that began but have no ending; they may
	// have been paid for without a result.
	Steps int        `json:"steps"`
	Open  int        `json:"open,omitempty"`
	Cost  store.Cost `json:"cost"`
	// Last describes the request of the last step.
	Last string `json:"last,omitempty"`
}

// Turns summarises each turn of a run.
func Turns(ctx context.Context, s store.Store, id store.ID) ([]Turn, error) {
	entries, err := s.Entries(ctx, id, store.Query{Kinds: []string{kindBegun, kindStep, kindLost, kindCommit}})
	if err != nil {
		return nil, err
	}

	turns := map[int]*Turn{}
	open := map[string]bool{}
	var order []int
	for _, e := range entries {
		t := turns[e.Turn]
		if t == nil {
			t = &Turn{Turn: e.Turn}
			turns[e.Turn], order = t, append(order, e.Turn)
		}

		if err := t.add(&e, open); err != nil {
			return nil, err
		}
	}

	list := make([]Turn, len(order))
	for i, turn := range order {
		list[i] = *turns[turn]
	}
	return list, nil
}

// add counts an entry. Open holds the keys of the steps without an ending.
func (t *Turn) add(e *store.Entry, open map[string]bool) error {
	switch e.Kind {
	case kindCommit:
		t.Committed = true
	case kindBegun:
		if !open[e.Key] {
			open[e.Key] = true
			t.Open++
		}
	case kindStep:
		c, err := decodeContent(e.Data)
		if err != nil {
			return err
		}
		if open[e.Key] {
			delete(open, e.Key)
			t.Open--
		}
		t.Steps++
		t.Last = c.About
	}
	t.Cost.Add(e.Cost)
	return nil
}

// Export writes the entries of a run as lines of JSON, without the states of its sandboxes.
func Export(ctx context.Context, s store.Store, id store.ID, w io.Writer) error {
	entries, err := s.Entries(ctx, id, store.Query{})
	if err != nil {
		return err
	}
	return export(entries, w)
}

// export writes entries as lines of JSON.
func export(entries []store.Entry, w io.Writer) error {
	encoder := json.NewEncoder(w)
	for _, e := range entries {
		line := exported{Turn: e.Turn, Kind: e.Kind, Key: e.Key, State: e.Digest, Cost: e.Cost}
		if json.Valid(e.Data) {
			line.Data = e.Data
		} else {
			line.Text = string(e.Data)
		}
		if err := encoder.Encode(line); err != nil {
			return err
		}
	}
	return nil
}
