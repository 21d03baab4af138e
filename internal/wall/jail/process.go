//go:build linux && (amd64 || arm64)

package jail

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// errEnded is wrapped by the error of an order that came too late: the jail had ended
// before it, or ended by it without a confirmation.
var errEnded = errors.New("the jail has ended")

// Process is a running jail. Its methods are safe for concurrent use.
type Process struct {
	plan         plan
	cmd          *exec.Cmd     // the init
	started      bool          // cmd runs, and finish will be called
	conn         *net.UnixConn // to the worker or the program
	control      *net.UnixConn // to the init
	gate         *net.UnixConn // to the guest, until it starts
	proxy        net.Listener  // in the guest's network, nil if there is none
	output       *tail
	cgroup       *cgroup
	noCgroup     error // why there is none
	slot         *slot
	attestation  Attestation
	stopWatching func() bool // the context
	wg           sync.WaitGroup
	killed       atomic.Bool
	outgrown     atomic.Bool   // the init has reported that it ends all for their memory
	launched     chan struct{} // closed when Start has written all that finish reads
	done         chan struct{} // closed by finish

	// Written by readReports before done is closed.
	reported *exited

	// Written by finish before done is closed.
	exit    Exit
	usage   Usage
	cleanup error

	mu      sync.Mutex // guards what follows, and writing to control
	orders  int
	replies map[int]chan struct{}
}

// Conn returns the launcher's end of a stream socket whose other end is descriptor 3 of
// the guest. Kill closes it.
func (p *Process) Conn() net.Conn { return p.conn }

// Proxy returns the listener of Config.Proxy, nil without it. The launcher accepts the guest's
// connections from it. Kill closes it.
func (p *Process) Proxy() net.Listener { return p.proxy }

// Output returns what the guest has written to its standard output and error: the first
// and the last 32 KiB.
func (p *Process) Output() []byte { return p.output.bytes() }

// Attestation returns what the guest proved before it started.
func (p *Process) Attestation() Attestation { return p.attestation }

// Signal sends a signal to every process of the jail but its init, and returns when it has
// been sent. The context bounds the waiting.
func (p *Process) Signal(ctx context.Context, sig syscall.Signal) error {
	if sig <= 0 {
		return fmt.Errorf("cannot send signal %d to a jail: not a signal", sig)
	}
	return p.sendOrder(ctx, order{Signal: int(sig)})
}

// KillExcept kills every process of the jail but three: its init, the guest, whose end
// would be the end of the jail, and the process that has the number pid inside. It returns
// when they are being killed.
func (p *Process) KillExcept(ctx context.Context, pid int) error {
	if pid <= 1 {
		return fmt.Errorf("cannot spare process %d of a jail: not a process of the guest", pid)
	}
	return p.sendOrder(ctx, order{Keep: pid})
}

// sendOrder sends an order to the init and waits until it has been carried out.
func (p *Process) sendOrder(ctx context.Context, o order) error {
	reply := make(chan struct{})

	p.mu.Lock()
	p.orders++
	o.ID = p.orders
	p.replies[o.ID] = reply
	err := p.writeOrder(o, stopTimeout)
	p.mu.Unlock()

	defer func() {
		p.mu.Lock()
		delete(p.replies, o.ID)
		p.mu.Unlock()
	}()
	if err != nil {
		return fmt.Errorf("cannot send an order to the init: %w", errors.Join(errEnded, err))
	}

	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	select {
	case <-reply:
		return nil
	case <-p.done:
		select {
		case <-reply: // the order has ended the jail
			return nil
		default:
			return fmt.Errorf("cannot carry out an order: %w", errEnded)
		}
	case <-ctx.Done():
		return fmt.Errorf("the init of the jail did not answer in time: %w", ctx.Err())
	}
}

// writeOrder writes an order within some time. The caller holds mu.
func (p *Process) writeOrder(o order, within time.Duration) error {
	return errors.Join(
		p.control.SetWriteDeadline(time.Now().Add(within)),
		writeMessage(p.control, o),
	)
}

// readReports reads what the init sends, until it is gone.
func (p *Process) readReports() {
	for {
		var m message
		file, err := readMessage(p.control, &m)
		if err != nil {
			return
		}
		if file != nil {
			_ = file.Close() // none was asked for
		}

		if m.Outgrown {
			p.outgrown.Store(true)
		}
		if m.Exit != nil {
			p.reported = m.Exit
		}
		if m.Done != 0 {
			p.confirmOrder(m.Done)
		}
	}
}

// confirmOrder wakes whoever waits for an order.
func (p *Process) confirmOrder(id int) {
	p.mu.Lock()
	defer p.mu.Unlock()

	if reply, ok := p.replies[id]; ok {
		close(reply)
		delete(p.replies, id)
	}
}

// Wait waits until every process of the jail has ended, or until the context ends, which
// does not end the jail. Its error is about the waiting and the cleaning up; the Exit is
// about the guest.
func (p *Process) Wait(ctx context.Context) (Exit, error) {
	if p.isDone() {
		return p.exit, p.cleanup
	}
	select {
	case <-p.done:
		return p.exit, p.cleanup
	case <-ctx.Done():
		return Exit{}, fmt.Errorf("cannot wait for the jail any longer: %w", ctx.Err())
	}
}

// isDone reports whether the jail has ended and everything about its end is known.
func (p *Process) isDone() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// OOM reports whether something in the jail was ended for its memory. Without a cgroup it asks
// the init, so that the answer includes every process whose end the caller has noticed.
func (p *Process) OOM() bool {
	if p.plan.Sample {
		p.awaitReports()
	}
	if p.isDone() {
		return p.exit.OOM
	}
	return p.outgrown.Load() || p.cgroup != nil && p.cgroup.sawOOM()
}

// awaitReports waits until all that the init has sent is read. Reports arrive in order, so the
// confirmation of an order that orders nothing is enough.
func (p *Process) awaitReports() {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()

	if err := p.sendOrder(ctx, order{}); errors.Is(err, errEnded) {
		_, _ = p.Wait(ctx) // the caller asks for the memory only
	}
}

// Usage returns what the jail has used so far.
func (p *Process) Usage() Usage {
	if p.isDone() {
		return p.usage
	}
	if p.cgroup == nil {
		return Usage{}
	}
	return p.cgroup.readUsage()
}
