package session

import (
	"errors"
	"io"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rlmhq/rlm/internal/snippet/frame"
	"github.com/rlmhq/rlm/internal/snippet/session/wire"
	"github.com/rlmhq/rlm/tiers"
)

// slowControl is a Control whose interrupts are slow to arrive.
type slowControl struct {
	takes    time.Duration
	heard    chan struct{} // with room for all interrupts
	isKilled bool
}

func (c *slowControl) Interrupt() {
	time.Sleep(c.takes)
	c.heard <- struct{}{}
}

func (c *slowControl) Kill(int) { c.isKilled = true }

// deafControl is the Control of a guest that cannot be interrupted.
type deafControl struct{ isKilled bool }

func (c *deafControl) Kill(int) { c.isKilled = true }

// obey plays a guest that ends its snippet the time obeys after the first interrupt, or never if
// obeys is 0.
func obey(t *testing.T, conn net.Conn, c *slowControl, obeys time.Duration) {
	t.Helper()
	out := frame.NewWriter(conn, 1<<10)
	_, payload, err := frame.NewReader(conn, 1<<10).Next()
	if err != nil {
		t.Error(err)
		return
	}
	order, err := wire.ParseOrder(payload)
	if err != nil {
		t.Error(err)
		return
	}

	go func() { _, _ = io.Copy(io.Discard, conn) }() // until it is closed
	if err := out.Write(wire.KindBegun, order.Mark[:]); err != nil {
		t.Error(err)
	}
	<-c.heard
	if obeys == 0 {
		return
	}

	time.Sleep(obeys)
	done := wire.Done{Mark: order.Mark, Code: wire.CodeRaised}
	if err := out.Write(wire.KindDone, done.Append(nil)); err != nil {
		t.Error(err)
	}
}

func begin(t *testing.T, limits tiers.Limits) *Accounts {
	t.Helper()
	a, err := NewAccounts(t.Context(), tiers.Config{Limits: limits})
	if err == nil {
		err = a.Begin(t.Context(), tiers.Job{})
	}
	if err != nil {
		t.Fatal(err)
	}
	return a
}

// TestTheGraceBeginsWhenTheGuestIsAsked makes interrupts take longer than the grace. It checks that
// a guest that obeys the first one survives, and that a guest that does not obey has the whole
// grace.
func TestTheGraceBeginsWhenTheGuestIsAsked(t *testing.T) {
	for name, row := range map[string]struct {
		takes, obeys time.Duration
		lives        bool
	}{
		"at once":                  {0, time.Millisecond, true},
		"late":                     {2 * graceTime, graceTime / 2, true},
		"never":                    {0, 0, false},
		"never, and is asked late": {2 * graceTime, 0, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const wall = time.Second
				ours, theirs := net.Pipe()
				control := &slowControl{takes: row.takes, heard: make(chan struct{}, 100)}
				c := NewConnection(ours, control)
				a := begin(t, tiers.Limits{Wall: wall})

				guest := make(chan struct{})
				go func() {
					defer close(guest)
					obey(t, theirs, control, row.obeys)
				}()
				begun := time.Now()
				done, err := c.Run(a, wire.Order{}, 0)
				took := time.Since(begun)

				if row.lives && (err != nil || done.Code != wire.CodeRaised || control.isKilled) {
					t.Errorf(
						"code %d, %v after %v, killed: %v", done.Code, err, took, control.isKilled,
					)
				}
				least := wall + row.takes + graceTime - 2*tick
				if !row.lives && (!errors.Is(err, ErrGone) || !control.isKilled || took < least) {
					t.Errorf(
						"code %d, %v after %v, killed: %v", done.Code, err, took, control.isKilled,
					)
				}

				<-guest
				a.End(done.Code)
				if err := c.Close(); err != nil {
					t.Error(err)
				}
				_ = theirs.Close() // all data was read
			})
		})
	}
}

// TestAGuestThatCannotBeAskedIsKilledAtOnce checks that a guest whose Control is not an Interrupter
// is killed immediately.
func TestAGuestThatCannotBeAskedIsKilledAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ours, theirs := net.Pipe()
		control := &deafControl{}
		c := NewConnection(ours, control)
		a := begin(t, tiers.Limits{Wall: time.Second})
		go func() { _, _ = io.Copy(io.Discard, theirs) }()

		begun := time.Now()
		_, err := c.Run(a, wire.Order{}, 0)
		if took := time.Since(begun); !errors.Is(err, ErrGone) || !control.isKilled ||
			took > time.Second+2*tick {
			t.Errorf("%v after %v, killed: %v", err, took, control.isKilled)
		}

		a.End(Died)
		if err := errors.Join(c.Close(), theirs.Close()); err != nil {
			t.Error(err)
		}
	})
}

// TestTheGraceEndsWhenTheHostIsKeptBusy checks the bound by the clock: the host is so busy between
// two checks that the grace would otherwise take minutes.
func TestTheGraceEndsWhenTheHostIsKeptBusy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const busy = time.Second
		control := &slowControl{takes: 2 * mostGrace, heard: make(chan struct{}, 100)}
		g := grace{}
		asked := time.Duration(0)
		begun := time.Now()
		for !g.isOver(control.Interrupt) {
			asked = g.asking
			time.Sleep(busy)
		}
		if took := time.Since(begun) - asked; took < mostGrace || took > mostGrace+2*busy {
			t.Errorf("it had %v", took)
		}
	})
}

// TestAKeeperThatNoOrderAskedFor checks a guest that reports a keeper without an order, to be woken
// instead of killed.
func TestAKeeperThatNoOrderAskedFor(t *testing.T) {
	ours, theirs := net.Pipe()
	control := &deafControl{}
	c := NewConnection(ours, control)
	a := begin(t, tiers.Limits{Wall: time.Minute})

	go func() {
		_, payload, _ := frame.NewReader(theirs, 1<<10).Next()
		order, err := wire.ParseOrder(payload)
		out := frame.NewWriter(theirs, 1<<10)
		err = errors.Join(err, out.Write(wire.KindBegun, order.Mark[:]),
			out.Write(wire.KindKeeper, []byte{1, 0, 0, 0}))
		if err != nil {
			t.Error(err)
		}
	}()

	_, err := c.Run(a, wire.Order{}, 0)
	if !errors.Is(err, ErrGone) || !c.IsRude() || !control.isKilled {
		t.Errorf("%v, rude: %v, killed: %v", err, c.IsRude(), control.isKilled)
	}

	a.End(Died)
	if err := errors.Join(c.Close(), theirs.Close()); err != nil {
		t.Error(err)
	}
}

// FuzzConnection plays a hostile guest. Whatever the guest sends, the run must end, and the host
// must stay within its bounds.
func FuzzConnection(f *testing.F) {
	mark := string(make([]byte, wire.MarkSize))
	for _, seed := range []string{
		"", "\x01\x00\x00\x00q?", "\xff\xff\xff\xffq", "\x04\x00\x00\x00k\x01\x00\x00\x00",
		"\x10\x00\x00\x00b" + mark, "\x1c\x00\x00\x00d" + mark + mark[:12],
		"\x06\x00\x00\x00q\x01\x00\x00\x00i\x00",
	} {
		f.Add([]byte(seed), true)
		f.Add([]byte(seed), false)
	}
	f.Fuzz(func(t *testing.T, sent []byte, mustSave bool) {
		ours, theirs := net.Pipe()
		c := NewConnection(ours, &deafControl{})
		a := begin(t, tiers.Limits{Wall: time.Second})
		go func() {
			_, payload, _ := frame.NewReader(theirs, 1<<10).Next()
			order, err := wire.ParseOrder(payload)
			if err == nil {
				go func() { _, _ = io.Copy(io.Discard, theirs) }()
				_ = frame.NewWriter(theirs, 1<<10).Write(wire.KindBegun, order.Mark[:])
			}
			_, _ = theirs.Write(sent)
			_ = theirs.Close() // it has sent everything
		}()

		done, err := c.Run(a, wire.Order{Save: mustSave}, 0)
		if err != nil && !errors.Is(err, ErrGone) && !errors.Is(err, ErrRestored) {
			t.Error(err)
		}
		a.End(done.Code)
		_ = c.Close() // the other end is closed
	})
}
