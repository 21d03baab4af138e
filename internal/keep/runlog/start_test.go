package runlog

import (
	"bytes"
	"context"
	"errors"
	"reflect"
	"testing"

	"github.com/rlmhq/rlm/internal/keep/store"
)

// start begins the next snippet.
func (p *process) start(ctx context.Context) Start {
	p.t.Helper()
	s, err := StartSnippet(AtNext(ctx, "snippet"))
	if err != nil {
		p.t.Fatal(err)
	}
	return s
}

func TestASnippetBeginsAsItDidBefore(t *testing.T) {
	dir := t.TempDir()
	var first, second Start
	inProcess(t, dir, func(ctx context.Context, p *process) {
		inTurn := EnterTurn(ctx, 1)
		first, second = p.start(inTurn), p.start(inTurn)
		if bytes.Equal(first.Seed, second.Seed) || len(first.Seed) != seedSize || first.Time.IsZero() {
			t.Errorf("%+v, %+v", first, second)
		}
		p.asks(inTurn, "something", false) // the disk then contains everything before this step
	})

	inProcess(t, dir, func(ctx context.Context, p *process) {
		inTurn := EnterTurn(ctx, 1)
		for i, want := range []Start{first, second} {
			if got := p.start(inTurn); !bytes.Equal(got.Seed, want.Seed) || !got.Time.Equal(want.Time) {
				t.Errorf("snippet %d begins with %+v, before with %+v", i, got, want)
			}
		}
		if third := p.start(inTurn); bytes.Equal(third.Seed, first.Seed) {
			t.Error("a new snippet has an old seed")
		}
	})

	// Removing a turn also removes its starts.
	inProcess(t, dir, func(_ context.Context, p *process) {
		if err := p.s.Cut(t.Context(), p.j.lease, 0); err != nil {
			t.Fatal(err)
		}
		if turns, err := Turns(t.Context(), p.s, runA); err != nil || len(turns) != 0 {
			t.Errorf("%+v, %v", turns, err)
		}
	})
	inProcess(t, dir, func(ctx context.Context, p *process) {
		if again := p.start(EnterTurn(ctx, 1)); bytes.Equal(again.Seed, first.Seed) {
			t.Error("the seed of a turn that was taken back is there")
		}
	})
	if got, err := StartSnippet(t.Context()); err != nil || !reflect.DeepEqual(got, Start{}) {
		t.Errorf("without a run log: %+v, %v", got, err)
	}
}

func FuzzStart(f *testing.F) {
	f.Add([]byte(`{"seed":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=","time":"2026-01-02T03:04:05.000000001Z"}`))
	f.Add([]byte(`{"seed":"AAAA","time":"2026-01-02T03:04:05Z"}`))
	f.Add([]byte(`{"seed":1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := decodeStart(data)
		if err != nil && !errors.Is(err, store.ErrDamaged) {
			t.Error(err)
		}
		if err == nil && (len(s.Seed) != seedSize || s.Time.IsZero()) {
			t.Errorf("%s becomes %+v", data, s)
		}
	})
}
