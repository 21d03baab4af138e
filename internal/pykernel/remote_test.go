package pykernel

import (
	"encoding/binary"
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rlmhq/rlm/tiers"
)

// slowControl is a Control whose interrupts take their time to arrive.
type slowControl struct {
	takes  time.Duration
	heard  chan struct{} // has room for all
	killed bool
}

func (c *slowControl) Interrupt() {
	time.Sleep(c.takes)
	c.heard <- struct{}{}
}

func (c *slowControl) Kill(int) { c.killed = true }

// obedient is a guest that ends its snippet a while after the first interrupt, or
// never if obeys is not set.
func obedient(t *testing.T, conn net.Conn, c *slowControl, obeys time.Duration) {
	t.Helper()
	frame := func(kind byte, payload []byte) {
		head := append(binary.LittleEndian.AppendUint32(nil, uint32(len(payload))), kind)
		if _, err := conn.Write(append(head, payload...)); err != nil {
			t.Error(err)
		}
	}
	order := make([]byte, frameHead+21)
	if _, err := io.ReadFull(conn, order); err != nil {
		t.Error(err)
		return
	}
	go func() { _, _ = io.Copy(io.Discard, conn) }() // until it is closed
	frame(frameBegin, order[frameHead+5:])
	<-c.heard
	if obeys > 0 {
		time.Sleep(obeys)
		frame(frameDone, append(binary.LittleEndian.AppendUint32(nil, 1), make([]byte, 8)...))
	}
}

// TestTheGraceBeginsWhenTheGuestIsAsked lets interrupts take longer than the grace: a
// guest that obeys the first one lives, one that does not has had its whole time.
func TestTheGraceBeginsWhenTheGuestIsAsked(t *testing.T) {
	for name, row := range map[string]struct {
		takes, obeys time.Duration
		lives        bool
	}{
		"at once":                  {0, time.Millisecond, true},
		"late":                     {2 * remoteGrace, remoteGrace / 2, true},
		"never":                    {0, 0, false},
		"never, and is asked late": {2 * remoteGrace, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const wall = time.Second
				ours, theirs := net.Pipe()
				c := &slowControl{takes: row.takes, heard: make(chan struct{}, 100)}
				r := &Remote{conn: ours, control: c, input: make(chan []byte, 4), output: make(chan []byte), closed: make(chan struct{})}
				go r.read()
				go r.write()
				s, err := NewSession(t.Context(), tiers.Config{Limits: tiers.Limits{Wall: wall}})
				if err == nil {
					err = s.Begin(t.Context(), tiers.Job{})
				}
				if err != nil {
					t.Fatal(err)
				}
				guest := make(chan struct{})
				go func() {
					defer close(guest)
					obedient(t, theirs, c, row.obeys)
				}()
				begun := time.Now()
				code, err := r.Run(s, "", 0, false, 0)
				took := time.Since(begun)
				if row.lives && (err != nil || code != 1 || c.killed) {
					t.Errorf("code %d, %v after %v, killed: %v", code, err, took, c.killed)
				}
				if !row.lives && (!errors.Is(err, ErrGone) || !c.killed || took < wall+row.takes+remoteGrace-2*tick) {
					t.Errorf("code %d, %v after %v, killed: %v", code, err, took, c.killed)
				}
				<-guest
				if err := r.Close(); err != nil {
					t.Error(err)
				}
				_ = theirs.Close() // nothing is left in it
			})
		})
	}
}

// TestTheGraceEndsWhenTheHostIsKeptBusy has so much to do between two looks that they
// alone would take minutes.
func TestTheGraceEndsWhenTheHostIsKeptBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const busy = time.Second
		a := asking{control: &slowControl{takes: 2 * mostGrace, heard: make(chan struct{}, 100)}}
		asked := time.Duration(0)
		begun := time.Now()
		for !a.inVain() {
			asked = a.spent
			time.Sleep(busy)
		}
		if took := time.Since(begun) - asked; took < mostGrace || took > mostGrace+2*busy {
			t.Errorf("it had %v", took)
		}
	})
}
