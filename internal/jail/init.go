//go:build linux && (amd64 || arm64)

package jail

import (
	"errors"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// runInit is process 1 of the jail. It never returns.
//
// It runs on the main thread, which an init function holds for itself: the
// guest inherits what this thread gives up, and dies when this thread dies.
func runInit() {
	runtime.LockOSThread()
	var in initProcess
	if err := receive(&in.plan); err != nil {
		exit(helperFailed) // the launcher has gone
	}
	if err := in.build(); err != nil {
		m := message{Error: err.Error()}
		if l, ok := errors.AsType[*layerError](err); ok {
			m.Layer, m.Error = l.layer, l.err.Error()
		}
		_ = send(m) // a launcher that has gone needs no reason
		exit(helperFailed)
	}
	if err := in.ready(); err != nil {
		in.end()
	}
	go in.reap()
	if in.plan.Sample {
		go in.sample()
	}
	in.obey()
}

// initProcess is the state of the init.
type initProcess struct {
	plan   plan
	proxy  int // the listener, before it is sent
	guest  int // process number
	memory atomic.Bool
}

// build starts the guest, which waits, and builds the jail around it. That way
// the guest is executed while the binary and its libraries can still be found,
// and both start at the same time.
func (in *initProcess) build() error {
	if err := unix.CloseRange(connFD, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return layered(Privileges, err)
	}
	// pivot_root moves those who stand at the old root, and only those.
	if err := unix.Chdir("/"); err != nil {
		return layered(Mounts, err)
	}
	if err := in.plan.fail("init"); err != nil {
		return err
	}
	if in.plan.Proxy {
		var err error
		if in.proxy, err = listenForProxy(); err != nil {
			return layered(Network, err)
		}
	}
	if in.plan.has(Privileges) {
		if err := givePrivilegesUp(); err != nil {
			return layered(Privileges, err)
		}
	}
	if in.plan.Class == Nested {
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			return layered(Rlimits, err)
		}
	}
	if err := in.spawn(); err != nil {
		return err
	}
	if in.plan.has(Namespaces) {
		if err := unix.Sethostname([]byte("jail")); err != nil {
			return layered(Namespaces, err)
		}
	}
	if in.plan.has(Mounts) {
		if err := buildTree(&in.plan); err != nil {
			return layered(Mounts, err)
		}
	}
	// Only now: the guest must not inherit it.
	signal.Ignore(syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGABRT, syscall.SIGALRM,
		syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGPIPE, syscall.SIGTSTP, syscall.SIGTTIN, syscall.SIGTTOU)
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return layered(Privileges, err)
	}
	return layered(Privileges, keepInitCapabilities(in.plan.Class))
}

// spawn starts the guest.
func (in *initProcess) spawn() error {
	args := []string{helperName, roleProgram}
	env := []string{quietRuntime, swiftEnd}
	if in.plan.Worker != "" {
		args = []string{helperName, roleWorker, in.plan.Worker}
		env = slices.Concat(in.plan.Env, env) // the last one counts
	}
	files := []uintptr{0, 1, 2, connFD, initGate}
	var awake [2]int
	if withCgo {
		// The loader must find the libraries before the tree of the host goes.
		if err := unix.Pipe2(awake[:], unix.O_CLOEXEC); err != nil {
			return layered(Namespaces, err)
		}
		files = append(files, uintptr(awake[1]))
	}
	pid, err := syscall.ForkExec("/proc/self/exe", args, &syscall.ProcAttr{
		Dir:   "/",
		Env:   env,
		Files: files,
		Sys:   &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return layered(Namespaces, err)
	}
	in.guest = pid
	if withCgo {
		_ = unix.Close(awake[1])              // the guest has the other copy
		_, _ = unix.Read(awake[0], []byte{0}) // its end is what is waited for
	}
	for _, fd := range []int{connFD, initGate} {
		if err := unix.Close(fd); err != nil {
			return layered(Namespaces, err)
		}
	}
	return nil
}

// reap waits for every process of the jail. The end of the guest is the end of
// the jail.
func (in *initProcess) reap() {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case err == unix.EINTR:
		case err != nil:
			in.end()
		case pid == in.guest:
			_ = send(message{Exit: &exited{Status: status, Memory: in.memory.Load()}}) // it ends anyhow
			in.end()
		}
	}
}

// obey carries out the orders of the launcher, until it has gone.
func (in *initProcess) obey() {
	for {
		var o order
		if err := receive(&o); err != nil || o.End {
			in.end()
		}
		switch {
		case o.Signal != 0:
			in.signalAll(syscall.Signal(o.Signal))
		case o.Keep != 0:
			in.killExcept(o.Keep)
		}
		if err := send(message{Done: o.ID}); err != nil {
			in.end()
		}
	}
}

// end ends the jail. In a process namespace the kernel kills who is left.
func (in *initProcess) end() {
	if in.plan.Class == Nested {
		in.killExcept(0)
		for deadline := time.Now().Add(time.Second); time.Now().Before(deadline); runtime.Gosched() {
			if _, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); err == unix.ECHILD {
				break
			}
		}
	}
	exit(0)
}

// signalAll signals every process but this one.
func (in *initProcess) signalAll(sig syscall.Signal) {
	if in.plan.has(Namespaces) {
		_ = unix.Kill(-1, sig) // nobody left is no error
		return
	}
	for _, pid := range in.others() {
		_ = unix.Kill(pid, sig) // it may have ended
	}
}

// killExcept kills every process but this one and keep. They are stopped
// first, so that none can fork away.
func (in *initProcess) killExcept(keep int) {
	for range 1000 {
		in.signalAll(unix.SIGSTOP)
		killed := false
		for _, pid := range in.others() {
			if spared := pid == keep || pid == in.guest && keep != 0; !spared && !isZombie(pid) {
				killed = unix.Kill(pid, unix.SIGKILL) == nil || killed
			}
		}
		if !killed {
			break
		}
		runtime.Gosched()
	}
	if keep != 0 {
		_ = unix.Kill(keep, unix.SIGCONT) // it may have ended
		_ = unix.Kill(in.guest, unix.SIGCONT)
	}
}

// others lists the processes of the jail except this one. Without a process
// namespace these are its descendants.
func (in *initProcess) others() []int {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	self := os.Getpid()
	parents := map[int]int{}
	for _, entry := range entries {
		if pid, err := strconv.Atoi(entry.Name()); err == nil && pid != self {
			parents[pid] = 0
			if in.plan.Class == Nested {
				parents[pid] = parentOf(pid)
			}
		}
	}
	var all []int
	for pid := range parents {
		if in.plan.Class != Nested || descends(parents, pid, self) {
			all = append(all, pid)
		}
	}
	return all
}

// descends reports whether a process is below another one.
func descends(parents map[int]int, pid, ancestor int) bool {
	for range len(parents) + 1 {
		if pid = parents[pid]; pid == ancestor {
			return true
		}
		if pid == 0 {
			return false
		}
	}
	return false
}

// statFields returns what follows the name in /proc/<pid>/stat: state, parent, …
func statFields(pid int) []string {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return nil
	}
	// The name is in brackets and may contain brackets itself.
	return strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
}

// parentOf returns the parent of a process, 0 if there is none.
func parentOf(pid int) int {
	if fields := statFields(pid); len(fields) > 1 {
		if parent, err := strconv.Atoi(fields[1]); err == nil {
			return parent
		}
	}
	return 0
}

// isZombie reports whether a process has ended and waits to be reaped.
func isZombie(pid int) bool {
	fields := statFields(pid)
	return len(fields) == 0 || fields[0] == "Z" || fields[0] == "X"
}

// sample ends the jail when its processes together use more memory than they
// may. It stands in for a cgroup and is slower than a guest in a hurry, which
// the limit of address space bounds.
func (in *initProcess) sample() {
	page := int64(os.Getpagesize())
	for range time.Tick(50 * time.Millisecond) {
		var sum int64
		for _, pid := range in.others() {
			text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/statm")
			if fields := strings.Fields(string(text)); err == nil && len(fields) > 1 {
				if resident, err := strconv.ParseInt(fields[1], 10, 64); err == nil {
					sum += resident * page
				}
			}
		}
		if sum > in.plan.Limits.Memory {
			in.memory.Store(true)
			in.signalAll(unix.SIGKILL)
		}
	}
}
