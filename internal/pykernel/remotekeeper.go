package pykernel

import (
	"bytes"
	"time"
)

// keeper is a process that takes the session over when the guest's own has died.
type keeper struct {
	pid     int // inside, 0 if there is none
	mark    []byte
	snippet int // the last one that its state holds
}

// takenOver reports whether a keeper's mark has come with the last n bytes. A
// frame that the dead process had half written may stand before it.
func (r *Remote) takenOver(n int) bool {
	if r.keeper.pid == 0 {
		return false
	}
	from := max(0, len(r.buffer)-n-markSize)
	at := bytes.Index(r.buffer[from:], r.keeper.mark)
	if at < 0 {
		return false
	}
	r.buffer = r.buffer[from+at+markSize:]
	return true
}

// stop ends the snippet by force. If a keeper is there it takes over.
func (r *Remote) stop() error {
	if r.keeper.pid == 0 {
		r.gone = true
		r.control.Kill(0)
		return ErrGone
	}
	r.control.Kill(r.keeper.pid)
	deadline := time.NewTimer(5 * time.Second)
	defer deadline.Stop()
	for n := len(r.buffer); ; {
		if r.takenOver(n) {
			return r.welcome()
		}
		select {
		case part, open := <-r.input:
			if open {
				r.buffer, n = append(r.buffer, part...), len(part)
				continue
			}
		case <-deadline.C:
		}
		r.gone = true
		r.control.Kill(0)
		return ErrGone
	}
}

// Discard gives up the state after the last snippet: the keeper takes over. The
// error is ErrRestored or ErrGone.
func (r *Remote) Discard() error { return r.stop() }

// welcome lets the keeper go on: it throws away what came for its child.
func (r *Remote) welcome() error {
	mark := r.keeper.mark
	r.keeper.pid, r.keeper.mark = 0, nil
	r.queue, r.queued = nil, 0
	r.send(mark)
	return ErrRestored
}
