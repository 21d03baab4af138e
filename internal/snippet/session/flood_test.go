package session

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/internal/snippet/frame"
	"github.com/rlmhq/rlm/internal/snippet/session/wire"
	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/tiers"
)

// killed is the Control of a guest that ends only if all of its processes are killed.
type killed struct{ guest io.Closer }

func (k killed) Kill(keeper int) {
	if keeper == 0 {
		_ = k.guest.Close()
	}
}

// TestAFloodDoesNotPileUp checks guests that write faster than the host can handle.
func TestAFloodDoesNotPileUp(t *testing.T) {
	skip.Short(t, "it waits for a keeper that does not wake up")

	text := bigtext.FromBytes("t", bytes.Repeat([]byte("abcdefgh\n"), 50_000))
	slow := wire.AppendRequest(nil, wire.NoAnswer)
	slow = fmt.Appendf(slow, "tc0,0,%d,zzzz", text.Size())
	slow = append(frame.AppendHeader(nil, wire.KindRequest, len(slow)), slow...)

	for name, flood := range map[string]struct {
		first []byte // after the mark
		then  []byte // endlessly repeated
	}{
		"slow requests": {nil, bytes.Repeat(slow, 1<<20/len(slow))},
		"a dying guest with a keeper": {
			append(frame.AppendHeader(nil, wire.KindKeeper, 4), 7, 0, 0, 0), make([]byte, 1<<20),
		},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := tiers.Config{
				Inputs: []tiers.Input{{Name: "t", Text: text}}, Limits: tiers.Limits{Wall: time.Second},
			}
			a, err := NewAccounts(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			host, guest := net.Pipe()
			c := NewConnection(host, killed{guest})
			c.MaxRequest = 1 << 20
			go func() {
				_, payload, err := frame.NewReader(guest, 1<<20).Next()
				if err != nil {
					return
				}
				go func() { _, _ = io.Copy(io.Discard, guest) }()
				order, err := wire.ParseOrder(payload)
				_ = frame.NewWriter(guest, 1<<20).Write(wire.KindBegun, order.Mark[:])
				for part := flood.first; err == nil; part = flood.then {
					_, err = guest.Write(part)
				}
			}()

			if err := a.Begin(t.Context(), tiers.Job{Source: "x"}); err != nil {
				t.Fatal(err)
			}
			_, err = c.Run(a, wire.Order{Flags: 1 << wire.OrdinalShift, Save: true}, 0)
			a.End(0)
			if held := c.buffer.Len(); !errors.Is(err, ErrGone) || held > 2*c.MaxRequest {
				t.Errorf("%s: the host holds %d bytes: %v", name, held, err)
			}
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		})
	}
}
