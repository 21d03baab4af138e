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

// errEnded is wrapped by the error of an order that was too late. The jail had ended before, or
// ended during the order without confirming it.
var errEnded = errors.New("the jail has ended")

// Process is a running jail. Its methods are safe for concurrent use.
type Process struct {
	plan         plan
	cmd          *exec.Cmd     // the init
	started      bool          // cmd runs, and finish will be called
	conn         *net.UnixConn // to the worker or program
	control      *net.UnixConn // to the init
	gate         *net.UnixConn // to the guest, until it starts
	proxy        net.Listener  // in the guest's network; may be nil
	output       *tail
	cgroup       *cgroup
	noCgroup     error // why there is no cgroup
	slot         *slot
	attestation  Attestation
	stopWatching func() bool // the context
	wg           sync.WaitGroup
	killed       atomic.Bool
	outgrown     atomic.Bool   // the init reported that it kills all processes for lack of memory
	launched     chan struct{} // closed once Start has written everything that finish reads
	done         chan struct{} // closed by finish

	// readReports writes this field before done is closed.
	reported *exited

	// finish writes these fields before it closes done.
	exit    Exit
	usage   Usage
	cleanup error

	mu      sync.Mutex // guards the fields below, and writing to control
	orders  int
	replies map[int]chan struct{}
}

// Conn returns the launcher's end of a stream socket whose other end is the guest's descriptor 3.
// Kill closes it.
func (p *Process) Conn() net.Conn { return p.conn }

// Proxy returns the listener of Config.Proxy, or nil without it. The launcher accepts the guest's
// connections from it. Kill closes it.
func (p *Process) Proxy() net.Listener { return p.proxy }

// Output returns the guest's standard output and error: the first and the last 32 KiB.
func (p *Process) Output() []byte { return p.output.bytes() }

// Attestation returns the attestation of the jail, which was made before the guest's first
// instruction.
func (p *Process) Attestation() Attestation { return p.attestation }

// Signal sends a signal to every process of the jail except its init, and returns once it has been
// sent. The context bounds the wait.
func (p *Process) Signal(ctx context.Context, sig syscall.Signal) error {
	if sig <= 0 {
		return fmt.Errorf("cannot send signal %d to a jail: not a signal", sig)
	}
	return p.sendOrder(ctx, order{Signal: int(sig)})
}

// KillExcept kills every process of the jail except three: the init, the guest, whose end would end
// the jail, and the process whose number in the jail is pid. It returns when the signals have been
// sent.
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
		case <-reply: // the order ended the jail
			return nil
		default:
			return fmt.Errorf("cannot carry out an order: %w", errEnded)
		}
	case <-ctx.Done():
		return fmt.Errorf("the init of the jail did not answer in time: %w", ctx.Err())
	}
}

// writeOrder writes an order within a time limit. The caller holds mu.
func (p *Process) writeOrder(o order, within time.Duration) error {
	return errors.Join(
		p.control.SetWriteDeadline(time.Now().Add(within)),
		writeMessage(p.control, o),
	)
}

// readReports reads the init's messages until the init has ended.
func (p *Process) readReports() {
	for {
		var m message
		file, err := readMessage(p.control, &m)
		if err != nil {
			return
		}
		if file != nil {
			_ = file.Close() // no file was requested
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

// confirmOrder wakes the goroutine that waits for an order.
func (p *Process) confirmOrder(id int) {
	p.mu.Lock()
	defer p.mu.Unlock()

	if reply, ok := p.replies[id]; ok {
		close(reply)
		delete(p.replies, id)
	}
}

// Wait waits until every process of the jail has ended, or until the context ends, which does not
// end the jail. The error describes the wait and the cleanup; the Exit describes the guest.
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

// isDone reports whether the jail has ended and its end is fully recorded.
func (p *Process) isDone() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// OOM reports whether anything in the jail was killed for lack of memory. Without a cgroup, it
// queries the init, so the answer includes every process whose end the caller has noticed.
func (p *Process) OOM() bool {
	if p.plan.Sample {
		p.awaitReports()
	}
	if p.isDone() {
		return p.exit.OOM
	}
	return p.outgrown.Load() || p.cgroup != nil && p.cgroup.sawOOM()
}

// awaitReports waits until everything that the init has sent has been read. Reports arrive in
// order, so the confirmation of an empty order is enough.
func (p *Process) awaitReports() {
	ctx, cancel := context.WithTimeout(context.Background(), stopTimeout)
	defer cancel()

	if err := p.sendOrder(ctx, order{}); errors.Is(err, errEnded) {
		_, _ = p.Wait(ctx) // the caller needs only the memory reports
	}
}

// Usage returns the resources that the jail has used.
func (p *Process) Usage() Usage {
	if p.isDone() {
		return p.usage
	}
	if p.cgroup == nil {
		return Usage{}
	}
	return p.cgroup.readUsage()
}
