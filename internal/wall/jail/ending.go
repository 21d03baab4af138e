//go:build linux && (amd64 || arm64)

package jail

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"
	"time"
)

// Kill kills every process of the jail and closes Conn. When it returns, no process, mount, cgroup
// or descriptor of the jail remains. It can be called at any time, and repeatedly.
func (p *Process) Kill() error {
	p.beginKill()
	_ = p.conn.Close() // fails if it is closed already

	select {
	case <-p.done:
		return p.cleanup
	case <-time.After(stopTimeout):
	}

	// Only a process that hangs in the kernel leads here.
	if p.cgroup != nil {
		p.cgroup.kill()
	}
	select {
	case <-p.done:
		return p.cleanup
	case <-time.After(stopTimeout):
		return fmt.Errorf("cannot end the jail with init %d: it still runs after %v",
			p.cmd.Process.Pid, 2*stopTimeout)
	}
}

// beginKill starts killing every process. In class Full, it does not wait.
func (p *Process) beginKill() {
	if p.isDone() {
		return
	}
	p.killed.Store(true)
	if p.plan.Class == Nested && p.askToEnd() {
		return
	}
	_ = p.cmd.Process.Kill() // it may have ended
}

// askToEnd makes the init of a nested jail kill the other processes, because the kernel does not do
// this without a process namespace. It reports whether the jail has ended.
func (p *Process) askToEnd() bool {
	p.mu.Lock()
	err := p.writeOrder(order{End: true}, time.Second)
	p.mu.Unlock()

	if err == nil {
		select {
		case <-p.done:
			return true
		case <-time.After(2 * time.Second):
		}
	}

	if p.cgroup != nil {
		p.cgroup.kill()
	}
	return false
}

// finish collects the facts about the jail after the init has ended, and cleans up.
func (p *Process) finish(output *os.File) {
	<-p.launched

	if p.plan.Class == Nested {
		// A process may have escaped, and must not delay the end by keeping its output open.
		_ = output.SetReadDeadline(time.Now().Add(time.Second)) // pipes have deadlines
	}
	if p.control != nil {
		// The init's end of the socket is closed. This deadline bounds the time of a slow reader.
		_ = p.control.SetReadDeadline(time.Now().Add(stopTimeout)) // sockets have deadlines
	}
	p.wg.Wait()
	_ = output.Close() // only read from

	p.exit = p.describeExit()
	state := p.cmd.ProcessState
	p.usage.CPUNanos = int64(state.UserTime() + state.SystemTime())
	if p.cgroup != nil {
		p.usage = p.cgroup.readUsage()
	}

	p.cleanup = p.releaseResources()
	close(p.done)
}

// describeExit returns how the guest ended.
func (p *Process) describeExit() Exit {
	e := Exit{Code: -1, Signal: syscall.SIGKILL}
	if r := p.reported; r != nil {
		e.Signal, e.OOM = 0, r.Memory
		if r.Status.Signaled() { //nolint:misspell // the method's name
			e.Signal = r.Status.Signal()
		} else {
			e.Code = r.Status.ExitStatus()
		}
	} else {
		e.Killed = p.killed.Load()
	}
	e.OOM = e.OOM || p.cgroup != nil && p.cgroup.sawOOM()
	return e
}

// releaseResources releases everything that a jail holds, except for its processes.
func (p *Process) releaseResources() error {
	if p.stopWatching != nil {
		p.stopWatching()
	}
	for _, c := range []*net.UnixConn{p.control, p.gate} {
		if c != nil {
			_ = c.Close() // it may be closed already
		}
	}
	if p.proxy != nil {
		_ = p.proxy.Close() // it may be closed already
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

// undoLaunch undoes the steps of a failed launch.
func (p *Process) undoLaunch() error {
	if !p.started {
		return p.releaseResources()
	}
	if p.conn == nil { // the sockets could not be adopted
		_ = p.cmd.Process.Kill() // it may have ended
		<-p.done
		return p.cleanup
	}
	return p.Kill()
}
