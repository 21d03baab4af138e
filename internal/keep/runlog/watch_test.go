package runlog

import (
	"context"
	"errors"
	"testing"

	"github.com/rlmhq/rlm/internal/keep/store"
)

// watched is a store whose leases are lost with a channel.
type watched struct {
	store.Store

	lost chan struct{}
}

func (w *watched) Watch(store.Lease) <-chan struct{} { return w.lost }

func TestALostLeaseEndsItsRun(t *testing.T) {
	writes, _ := openStores(t)
	s := &watched{writes, make(chan struct{})}
	ctx, cancel := With(t.Context(), openRun(t, s))
	defer cancel()
	if ctx.Err() != nil {
		t.Fatal(ctx.Err())
	}

	close(s.lost)
	<-ctx.Done()
	var stopped *StoppedError
	if err := context.Cause(ctx); !errors.As(err, &stopped) || !errors.Is(err, store.ErrLost) {
		t.Errorf("it ended with %v", err)
	}
}
