//go:build linux && (amd64 || arm64)

package jail

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// Process is a running jail. Its methods are safe for concurrent use.
type Process struct {
	plan         plan
	cmd          *exec.Cmd // the init
	started      bool      // cmd runs and finish will come
	conn         *net.UnixConn
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
	launched     chan struct{} // closed when Start has written all that finish reads
	done         chan struct{} // closed by finish

	// Written by listen before done is closed.
	reported *exited

	// Written by finish before done is closed.
	exit    Exit
	usage   Usage
	cleanup error

	mu      sync.Mutex // guards what follows, and writing to control
	orders  int
	replies map[int]chan struct{}
}

// Conn returns the launcher's end of a stream socket whose other end is
// descriptor 3 of the guest. Kill closes it.
func (p *Process) Conn() net.Conn { return p.conn }

// Proxy returns the listener that Config.Proxy asked for, nil without. The
// launcher accepts from it whatever the guest connects to; Kill closes it.
func (p *Process) Proxy() net.Listener { return p.proxy }

// Output returns what the guest has written to its standard output and error:
// the first and the last 32 KiB.
func (p *Process) Output() []byte { return p.output.bytes() }

// Attestation returns what the guest proved before it started.
func (p *Process) Attestation() Attestation { return p.attestation }

// Signal sends a signal to every process of the jail but its init, and returns
// when it has been sent. The context bounds the waiting.
func (p *Process) Signal(ctx context.Context, sig syscall.Signal) error {
	if sig <= 0 {
		return fmt.Errorf("cannot send signal %d to a jail: not a signal", sig)
	}
	return p.order(ctx, order{Signal: int(sig)})
}

// KillExcept kills every process of the jail but its init, the guest, whose end
// would be the jail's, and the one with the number pid inside. It returns when
// they are being killed.
func (p *Process) KillExcept(ctx context.Context, pid int) error {
	if pid <= 1 {
		return fmt.Errorf("cannot spare process %d of a jail: not a process of the guest", pid)
	}
	return p.order(ctx, order{Keep: pid})
}

// order has an order carried out by the init.
func (p *Process) order(ctx context.Context, o order) error {
	reply := make(chan struct{})
	p.mu.Lock()
	p.orders++
	o.ID = p.orders
	p.replies[o.ID] = reply
	err := errors.Join(p.control.SetWriteDeadline(time.Now().Add(stopTimeout)), put(p.control, o))
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		delete(p.replies, o.ID)
		p.mu.Unlock()
	}()
	if err != nil {
		return fmt.Errorf("cannot give an order to the init: %w", errors.Join(ErrEnded, err))
	}
	ctx, cancel := context.WithTimeout(ctx, stopTimeout)
	defer cancel()
	select {
	case <-reply:
		return nil
	case <-p.done:
		return fmt.Errorf("cannot carry out an order: %w", ErrEnded)
	case <-ctx.Done():
		return fmt.Errorf("cannot wait for an order to be carried out: %w", ctx.Err())
	}
}

// listen reads what the init says, until it has gone.
func (p *Process) listen() {
	for {
		var m message
		file, err := get(p.control, &m)
		if err != nil {
			return
		}
		if file != nil {
			_ = file.Close() // nothing was asked for
		}
		if m.Exit != nil {
			p.reported = m.Exit
		}
		if m.Done != 0 {
			p.mu.Lock()
			if reply, ok := p.replies[m.Done]; ok {
				close(reply)
				delete(p.replies, m.Done)
			}
			p.mu.Unlock()
		}
	}
}

// Wait waits until every process of the jail has ended, or until the context
// ends, which does not end the jail. Its error is about the waiting and the
// cleaning up; how the guest ended is the Exit.
func (p *Process) Wait(ctx context.Context) (Exit, error) {
	select {
	case <-p.done:
		return p.exit, p.cleanup
	default:
	}
	select {
	case <-p.done:
		return p.exit, p.cleanup
	case <-ctx.Done():
		return Exit{}, fmt.Errorf("cannot wait for the jail any longer: %w", ctx.Err())
	}
}

// OOM reports whether something in the jail was ended for its memory.
func (p *Process) OOM() bool {
	select {
	case <-p.done:
		return p.exit.OOM
	default:
		return p.cgroup != nil && p.cgroup.oom()
	}
}

// Usage returns what the jail has used so far.
func (p *Process) Usage() Usage {
	select {
	case <-p.done:
		return p.usage
	default:
	}
	if p.cgroup == nil {
		return Usage{}
	}
	return p.cgroup.usage()
}

// Kill ends every process of the jail, closes Conn, and returns when nothing
// of the jail is left: no process, mount, cgroup or descriptor. It can be
// called at any time and again.
func (p *Process) Kill() error {
	p.kill()
	_ = p.conn.Close() // closed twice is closed
	select {
	case <-p.done:
		return p.cleanup
	case <-time.After(stopTimeout):
	}
	// Only a process that hangs in the kernel gets here.
	if p.cgroup != nil {
		p.cgroup.kill()
	}
	select {
	case <-p.done:
		return p.cleanup
	case <-time.After(stopTimeout):
		return fmt.Errorf("cannot end the jail with init %d: it still runs after %v", p.cmd.Process.Pid, 2*stopTimeout)
	}
}

// kill begins to end every process, without waiting.
func (p *Process) kill() {
	select {
	case <-p.done:
		return
	default:
	}
	p.killed.Store(true)
	if p.plan.Class == Nested {
		// Its init has to kill the others, and a little time to do it.
		p.mu.Lock()
		err := errors.Join(p.control.SetWriteDeadline(time.Now().Add(time.Second)), put(p.control, order{End: true}))
		p.mu.Unlock()
		if err == nil {
			select {
			case <-p.done:
				return
			case <-time.After(2 * time.Second):
			}
		}
		if p.cgroup != nil {
			p.cgroup.kill()
		}
	}
	_ = p.cmd.Process.Kill() // it may have ended
}

// finish collects what there is to know when the init has ended, and removes
// what is left of the jail.
func (p *Process) finish(output *os.File) {
	<-p.launched
	if p.plan.Class == Nested {
		// A process that got away must not hold us up.
		_ = output.SetReadDeadline(time.Now().Add(time.Second)) // pipes have deadlines
	}
	if p.control != nil {
		// The init's end is closed; this is for a listener that is slow.
		_ = p.control.SetReadDeadline(time.Now().Add(stopTimeout)) // sockets have deadlines
	}
	p.wg.Wait()
	_ = output.Close() // it was only read
	p.exit = p.how()
	p.usage.CPUNanos = int64(p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime())
	if p.cgroup != nil {
		p.usage = p.cgroup.usage()
	}
	p.cleanup = p.release()
	close(p.done)
}

// how says how the guest ended.
func (p *Process) how() Exit {
	e := Exit{Code: -1, Signal: syscall.SIGKILL}
	if r := p.reported; r != nil {
		e.Code, e.Signal, e.OOM = -1, 0, r.Memory
		if r.Status.Signaled() { //nolint:misspell // it is called so
			e.Signal = r.Status.Signal()
		} else {
			e.Code = r.Status.ExitStatus()
		}
	} else {
		e.Killed = p.killed.Load()
	}
	e.OOM = e.OOM || p.cgroup != nil && p.cgroup.oom()
	return e
}

// release gives back what a jail holds besides processes.
func (p *Process) release() error {
	if p.stopWatching != nil {
		p.stopWatching()
	}
	for _, c := range []*net.UnixConn{p.control, p.gate} {
		if c != nil {
			_ = c.Close() // closed twice is closed
		}
	}
	if p.proxy != nil {
		_ = p.proxy.Close() // closed twice is closed
	}
	var err error
	if p.cgroup != nil {
		err = p.cgroup.remove(context.Background())
	}
	if p.slot != nil {
		err = errors.Join(err, p.slot.Close())
	}
	return err
}

// abandon undoes what launch did before it failed.
func (p *Process) abandon() error {
	if !p.started {
		return p.release()
	}
	if p.conn == nil { // the sockets could not be adopted
		_ = p.cmd.Process.Kill() // it may have ended
		<-p.done
		return p.cleanup
	}
	return p.Kill()
}
