//go:build linux && (amd64 || arm64)

package jail

import (
	"os/signal"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// runInit is process 1 of the jail. It never returns.
//
// It runs on the main thread, which is locked while init functions run, because the guest inherits
// this thread's reduced privileges, and dies when this thread dies.
func runInit() {
	runtime.LockOSThread()

	var in initProcess
	if err := receiveFromLauncher(&in.plan); err != nil {
		exitHelper(helperFailed) // the launcher has ended
	}
	if err := in.buildJail(); err != nil {
		_ = sendToLauncher(describeError(err)) // if the launcher has ended, no reason is needed
		exitHelper(helperFailed)
	}
	if err := in.reportReady(); err != nil {
		in.endJail()
	}

	go in.reapProcesses()
	if in.plan.Sample {
		in.limit.Store(in.plan.Limits.Memory)
		go in.watchMemory()
	}
	in.carryOutOrders()
}

// initProcess holds the state of the init.
type initProcess struct {
	plan   plan
	proxy  int          // the listener, until it is sent
	guest  int          // process number
	memory atomic.Bool  // the guest was killed for lack of memory
	limit  atomic.Int64 // on memory, in bytes, where it is sampled
	// inOrder is held while an order is carried out, and after the end of the guest.
	inOrder sync.Mutex
}

// buildJail starts the guest, which waits, and builds the jail around it. In this order, the guest
// can still find the binary and its libraries, and the start of the guest and the construction of
// the jail overlap.
func (in *initProcess) buildJail() error {
	if err := in.prepareSelf(); err != nil {
		return err
	}
	if err := in.startGuest(); err != nil {
		return err
	}
	if err := in.buildWalls(); err != nil {
		return err
	}
	return in.protectSelf()
}

// prepareSelf gives up everything that the guest must not inherit, and sets up what requires the
// init's privileges.
func (in *initProcess) prepareSelf() error {
	if err := unix.CloseRange(connFD, ^uint(0), unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return inLayer(Privileges, err)
	}
	// pivot_root moves only the processes whose working folder is the old root.
	if err := unix.Chdir("/"); err != nil {
		return inLayer(Mounts, err)
	}
	if err := in.plan.failAt("init"); err != nil {
		return err
	}

	if in.plan.Proxy {
		var err error
		if in.proxy, err = listenForProxy(); err != nil {
			return inLayer(Network, err)
		}
	}
	if in.plan.wants(Privileges) {
		if err := dropPrivileges(); err != nil {
			return inLayer(Privileges, err)
		}
	}
	if in.plan.Class == Nested {
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			return inLayer(Rlimits, err)
		}
	}
	return nil
}

// startGuest starts the guest, which then waits for its plan.
func (in *initProcess) startGuest() error {
	args := []string{helperName, roleProgram}
	env := []string{noCgroupFiles, noRaceDelay}
	if in.plan.Worker != "" {
		args = []string{helperName, roleWorker, in.plan.Worker}
		env = slices.Concat(in.plan.Env, env) // the last value wins
	}

	files := []uintptr{0, 1, 2, connFD, initGate}
	var awake [2]int
	if withCgo {
		// The loader must find the libraries before the host's tree disappears.
		if err := unix.Pipe2(awake[:], unix.O_CLOEXEC); err != nil {
			return inLayer(Namespaces, err)
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
		return inLayer(Namespaces, err)
	}
	in.guest = pid

	if withCgo {
		_ = unix.Close(awake[1])              // the guest has the other copy
		_, _ = unix.Read(awake[0], []byte{0}) // waits until the guest closes it
	}
	for _, fd := range []int{connFD, initGate} {
		if err := unix.Close(fd); err != nil {
			return inLayer(Namespaces, err)
		}
	}
	return nil
}

// buildWalls builds the layers around the guest.
func (in *initProcess) buildWalls() error {
	if in.plan.wants(Namespaces) {
		if err := unix.Sethostname([]byte("jail")); err != nil {
			return inLayer(Namespaces, err)
		}
	}
	if in.plan.wants(Mounts) {
		return inLayer(Mounts, buildTree(&in.plan))
	}
	return nil
}

// protectSelf keeps the guest from killing or reading the init. It comes after startGuest, because
// the guest would inherit the ignored signals.
func (in *initProcess) protectSelf() error {
	signal.Ignore(
		syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGABRT,
		syscall.SIGALRM, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGPIPE, syscall.SIGTSTP,
		syscall.SIGTTIN, syscall.SIGTTOU,
	)
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return inLayer(Privileges, err)
	}
	return inLayer(Privileges, keepInitCapabilities(in.plan.Class))
}

// reapProcesses reaps every process of the jail. The end of the guest is the end of the jail.
func (in *initProcess) reapProcesses() {
	for {
		var status unix.WaitStatus
		pid, err := unix.Wait4(-1, &status, 0, nil)
		switch {
		case err == unix.EINTR:
		case err != nil:
			in.endJail()
		case pid == in.guest:
			end := &exited{Status: status, Memory: in.memory.Load()}
			_ = sendToLauncher(message{Exit: end}) // the jail ends in any case
			in.inOrder.Lock()
			in.endJail()
		}
	}
}

// carryOutOrders carries out the launcher's orders until the launcher has ended.
func (in *initProcess) carryOutOrders() {
	for {
		var o order
		if err := receiveFromLauncher(&o); err != nil || o.End {
			in.endJail()
		}

		if err := in.carryOut(o); err != nil {
			in.endJail()
		}
	}
}

// carryOut carries out an order and confirms it. The jail ends only after the confirmation, even if
// the order has killed the guest.
func (in *initProcess) carryOut(o order) error {
	in.inOrder.Lock()
	defer in.inOrder.Unlock()

	switch {
	case o.Signal != 0:
		in.signalAll(syscall.Signal(o.Signal))
	case o.Keep != 0:
		in.killExcept(o.Keep)
	case o.Memory != 0:
		in.limit.Store(o.Memory)
	}
	return sendToLauncher(message{Done: o.ID})
}

// endJail ends the jail and never returns. In a process namespace, the kernel kills the remaining
// processes.
func (in *initProcess) endJail() {
	if in.plan.Class == Nested {
		in.killExcept(0)

		end := time.Now().Add(time.Second)
		for ; time.Now().Before(end); runtime.Gosched() {
			if _, err := unix.Wait4(-1, nil, unix.WNOHANG, nil); err == unix.ECHILD {
				break
			}
		}
	}
	exitHelper(0)
}

// signalAll signals every process except this one.
func (in *initProcess) signalAll(sig syscall.Signal) {
	if in.plan.wants(Namespaces) {
		_ = unix.Kill(-1, sig) // fails if there are no other processes
		return
	}
	for _, pid := range in.listOthers() {
		_ = unix.Kill(pid, sig) // it may have ended
	}
}

// killExcept kills every process except this one. If keep is not 0, it also spares the guest and
// the process keep. It stops them first, so that none can escape by forking.
func (in *initProcess) killExcept(keep int) {
	for range 1000 {
		in.signalAll(unix.SIGSTOP)
		if !in.killOthers(keep) {
			break
		}
		runtime.Gosched()
	}
	if keep != 0 {
		_ = unix.Kill(keep, unix.SIGCONT) // it may have ended
		_ = unix.Kill(in.guest, unix.SIGCONT)
	}
}

// killOthers makes one round of killExcept and reports whether it killed any process.
func (in *initProcess) killOthers(keep int) bool {
	killed := false
	for _, pid := range in.listOthers() {
		spared := pid == keep || pid == in.guest && keep != 0
		if !spared && !isZombie(pid) && unix.Kill(pid, unix.SIGKILL) == nil {
			killed = true
		}
	}
	return killed
}
