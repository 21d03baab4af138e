package hostcall

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/tiers"
)

func TestArgumentsTakeNoMoreThanTheMemory(t *testing.T) {
	g := New(tiers.Limits{HostCallsAtOnce: 1, Memory: 1 << 20})
	if err := g.Hold(1 << 19); err != nil {
		t.Fatal(err)
	}
	err := g.Hold(1<<19 + 1)
	if err == nil || !strings.Contains(err.Error(), "1.0 MiB in total") {
		t.Errorf("too much is held: %v", err)
	}
	if err := g.Hold(1 << 19); err != nil {
		t.Errorf("what just fits: %v", err)
	}
	g.Free(1 << 20)
	if err := g.Hold(1 << 20); err != nil {
		t.Errorf("what was freed: %v", err)
	}
	if g.Hold(1<<20+1) == nil {
		t.Error("one call may be larger than all")
	}
}

func TestAPlaceIsFreeOnceItIsLeft(t *testing.T) {
	g := New(tiers.Limits{HostCallsAtOnce: 1, Memory: 1})
	if err := g.Enter(t.Context()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := g.Enter(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a second place: %v", err)
	}
	g.Leave()
	if err := g.Enter(t.Context()); err != nil {
		t.Error(err)
	}
}
