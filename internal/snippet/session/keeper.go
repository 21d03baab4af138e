package session

import (
	"encoding/binary"
	"time"

	"github.com/rlmhq/rlm/internal/snippet/session/wire"
)

// keeper is a process that sleeps in the state before a snippet, and takes over the session when
// the snippet's own process has died.
type keeper struct {
	pid     int       // the process's number inside, or 0
	mark    wire.Mark // sent by the keeper when it takes over
	snippet int       // the last snippet in its state
}

// noteKeeper records the guest's report that it left a keeper behind, or failed to do so.
func (c *Connection) noteKeeper(payload []byte) bool {
	if len(payload) != 4 {
		return false
	}

	pid := int(binary.LittleEndian.Uint32(payload))
	if pid == 0 {
		c.keeper = c.former
		return true
	}
	c.former, c.keeper = c.keeper, c.coming
	c.keeper.pid = pid

	return true
}

// wasTakenOver reports whether the keeper's mark is among the last n bytes. Half a frame of the
// dead process may precede it.
func (c *Connection) wasTakenOver(n int) bool {
	return c.keeper.pid != 0 && c.buffer.SkipPast(c.keeper.mark[:], n)
}

// takeOverTimeout bounds the time that a keeper may take to wake up.
const takeOverTimeout = 5 * time.Second

// stop ends the snippet by force. A keeper, if there is one, takes over.
func (c *Connection) stop() error {
	if c.keeper.pid == 0 {
		return c.kill()
	}

	c.control.Kill(c.keeper.pid)
	deadline := time.NewTimer(takeOverTimeout)
	defer deadline.Stop()
	for n := c.buffer.Len(); ; {
		if c.wasTakenOver(n) {
			return c.welcomeKeeper()
		}
		c.buffer.SkipPast(nil, wire.MarkSize) // a dying guest may write without end
		select {
		case part, isOpen := <-c.input:
			if !isOpen {
				return c.kill()
			}
			c.add(part)
			n = len(part)
		case <-deadline.C:
			return c.kill()
		}
	}
}

func (c *Connection) kill() error {
	c.isGone = true
	c.control.Kill(0)
	return ErrGone
}

// Discard discards the state after the last snippet, so the keeper takes over. The error is
// ErrRestored or ErrGone.
func (c *Connection) Discard() error { return c.stop() }

// welcomeKeeper lets the keeper continue. The keeper discards the data sent to its child.
func (c *Connection) welcomeKeeper() error {
	mark := c.keeper.mark
	c.keeper.pid = 0
	c.keeper.mark = wire.Mark{}
	c.queue, c.queued = nil, 0
	c.Send(mark[:])

	return ErrRestored
}
