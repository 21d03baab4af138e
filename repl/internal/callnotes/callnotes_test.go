package callnotes

import (
	"context"
	"slices"
	"strconv"
	"testing"
)

type collector struct{ parts []string }

func (c *collector) NoteWait(Wait)           {}
func (c *collector) NoteAsked(Asked)         {}
func (c *collector) NoteDropped(part string) { c.parts = append(c.parts, part) }

func TestADroppedParameterIsPassedOnOnceForEachModel(t *testing.T) {
	var got collector
	var d Dropped
	d.Send(t.Context(), "a", "seed") // there is no receiver
	ctx := With(context.Background(), &got)
	for range 2 {
		d.Send(ctx, "a", "seed")
		d.Send(ctx, "b", "seed")
		d.Send(ctx, "a", "top_p")
	}
	if !slices.Equal(got.parts, []string{"seed", "seed", "top_p"}) {
		t.Errorf("got %q", got.parts)
	}

	for i := range 3 * maxDropped {
		d.Send(ctx, strconv.Itoa(i), "seed")
	}
	if len(d.sent) > maxDropped {
		t.Errorf("%d are remembered", len(d.sent))
	}
}
