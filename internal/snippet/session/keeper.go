package session

import (
	"encoding/binary"
	"time"

	"github.com/rlmhq/rlm/internal/snippet/session/wire"
)

// keeper is a process that sleeps in the state before a snippet, and takes the session
// over when the snippet's own process has died.
type keeper struct {
	pid     int       // inside, 0 if there is none
	mark    wire.Mark // it sends that when it takes over
	snippet int       // the last one in its state
}

// noteKeeper takes the guest's word that it has left a keeper behind, or could not.
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

// wasTakenOver reports whether the keeper's mark has come with the last n bytes. Half a
// frame of the dead process may stand before it.
func (c *Connection) wasTakenOver(n int) bool {
	return c.keeper.pid != 0 && c.buffer.SkipPast(c.keeper.mark[:], n)
}

// takeOverTimeout bounds how long a keeper may take to wake up.
const takeOverTimeout = 5 * time.Second

// stop ends the snippet by force. If a keeper is there, it takes over.
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

// Discard gives up the state after the last snippet: the keeper takes over. The error
// is ErrRestored or ErrGone.
func (c *Connection) Discard() error { return c.stop() }

// welcomeKeeper lets the keeper go on: it throws away what came for its child.
func (c *Connection) welcomeKeeper() error {
	mark := c.keeper.mark
	c.keeper.pid = 0
	c.keeper.mark = wire.Mark{}
	c.queue, c.queued = nil, 0
	c.Send(mark[:])

	return ErrRestored
}
