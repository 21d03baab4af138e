package runlog

import (
	"context"
	"errors"
	"testing"

	"github.com/rlmhq/rlm/internal/keep/store"
)

// brokenStore is a store that fails once it is broken.
type brokenStore struct {
	store.Store

	err error
}

func (b *brokenStore) SetState(
	ctx context.Context, lease store.Lease, state store.State, entries ...store.Entry,
) error {
	if b.err != nil {
		return b.err
	}
	return b.Store.SetState(ctx, lease, state, entries...)
}

func (b *brokenStore) Entries(ctx context.Context, id store.ID, q store.Query) ([]store.Entry, error) {
	if b.err != nil {
		return nil, b.err
	}
	return b.Store.Entries(ctx, id, q)
}

func (b *brokenStore) Log(ctx context.Context, id store.ID) (store.Log, error) {
	if b.err != nil {
		return store.Log{}, b.err
	}
	return b.Store.Log(ctx, id)
}

// TestARunGoesOnWithoutALogThatItCanSpare breaks the store after the first turn, and checks that
// the run continues.
func TestARunGoesOnWithoutALogThatItCanSpare(t *testing.T) {
	writes, reads := openStores(t)
	broken := &brokenStore{Store: writes}
	j := openRun(t, broken)
	var failures []error
	j.Spare(func(err error) { failures = append(failures, err) })
	ctx, cancel := With(t.Context(), j)
	defer cancel()

	ask := func(turn int) {
		t.Helper()
		step, err := Begin(EnterTurn(ctx, turn), func() Request { return Request{What: "leaf", Digest: "d"} })
		if err != nil {
			t.Fatal(err)
		}
		if err := step.End(ctx, map[string]string{"text": "yes"}, store.Cost{Calls: 1}); err != nil {
			t.Fatal(err)
		}
		if err := step.Park(ctx, nil, "why"); !errors.Is(err, ErrCannotWait) {
			t.Errorf("a call waits: %v", err)
		}
		step.Leave()
		commit(t, j, turn)
	}
	ask(1)
	if log, err := reads.Log(t.Context(), j.lease.ID); err != nil || log.Turn != 1 || log.Spent.Calls != 1 {
		t.Errorf("after a turn, the log is %+v, %v", log, err)
	}

	broken.err = errors.New("the disk is full")
	ask(2)
	ask(3)
	if err := j.Close("answered", ""); err != nil {
		t.Error(err)
	}
	if len(failures) != 1 || !errors.Is(failures[0], broken.err) {
		t.Errorf("failures %v", failures)
	}
	if log, err := reads.Log(t.Context(), j.lease.ID); err != nil || log.Turn != 1 {
		t.Errorf("in the end, the log is %+v, %v", log, err)
	}
}
