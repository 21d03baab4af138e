package fanout

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
)

func TestFanOutKeepsOrderAndFailures(t *testing.T) {
	var mu sync.Mutex
	active, peak := 0, 0
	slots := Run(t.Context(), 100, 7, func(_ context.Context, i int) (int, error) {
		mu.Lock()
		active++
		peak = max(peak, active)
		mu.Unlock()
		defer func() { mu.Lock(); active--; mu.Unlock() }()
		if i%10 == 3 {
			return 0, errors.New("three")
		}
		return i * i, nil
	})
	for i, s := range slots {
		if i%10 == 3 && s.Err == nil || i%10 != 3 && (s.Err != nil || s.Value != i*i) {
			t.Errorf("slot %d: %+v", i, s)
		}
	}
	if peak > 7 {
		t.Errorf("%d ran at once", peak)
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	stop := errors.New("stop")
	cancel(stop)
	for _, s := range Run(ctx, 3, 2, func(context.Context, int) (int, error) { return 1, nil }) {
		if !errors.Is(s.Err, stop) {
			t.Errorf("a slot ran after the end: %+v", s)
		}
	}
}

// TestAPanicReachesTheCaller checks that a panic is passed on to the caller, because in a separate
// goroutine it would end the process.
func TestAPanicReachesTheCaller(t *testing.T) {
	defer func() {
		if p, _ := recover().(string); !strings.HasPrefix(p, "two") {
			t.Errorf("the caller gets %q", p)
		}
	}()
	Run(t.Context(), 4, 2, func(_ context.Context, i int) (int, error) {
		if i == 2 {
			panic("two")
		}
		return i, nil
	})
}
