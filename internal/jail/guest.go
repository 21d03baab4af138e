//go:build linux && (amd64 || arm64)

package jail

import (
	"errors"
	"fmt"
	"os"
	"os/signal"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// runGuest is the child of the init: it locks itself down, attests, waits for
// the word of the launcher, and becomes the program or runs the worker. It
// never returns.
func runGuest(worker func(conn *os.File) int) {
	runtime.LockOSThread()
	var g guest
	if err := receive(&g.plan); err != nil {
		exit(helperFailed) // the launcher has gone or has given up
	}
	m := message{Attestation: &g.attestation}
	if err := g.lockDown(); err != nil {
		m = message{Error: err.Error()}
		if l, ok := errors.AsType[*layerError](err); ok {
			m.Layer, m.Error = l.layer, l.err.Error()
		}
	}
	if err := send(m); err != nil || m.Error != "" {
		exit(helperFailed)
	}
	var o order
	if err := receive(&o); err != nil {
		exit(helperFailed) // the launcher did not like what it read
	}
	_ = unix.Close(launcherFD) // nothing is lost in it
	if worker == nil {
		g.execute()
	}
	conn, err := g.connection()
	if err == nil {
		err = g.environment()
	}
	if err != nil {
		exit(helperFailed)
	}
	// The main goroutine holds the main thread as long as init functions run.
	go func() { exit(worker(conn)) }()
	select {}
}

// guest is the state of the guest.
type guest struct {
	plan        plan
	attestation Attestation
	status      *os.File // opened early, read late
}

// lockDown gives everything up, in the one order that works, and attests. Each
// step is proven at the last moment when the proof is still possible.
func (g *guest) lockDown() error {
	p := &g.plan
	if err := p.fail("guest"); err != nil {
		return err
	}
	g.attestation.Class = p.Class
	g.attestation.PID, g.attestation.UID, g.attestation.HostUID = unix.Getpid(), unix.Getuid(), p.HostUID
	var err error
	if g.status, err = os.Open("/proc/thread-self/status"); err != nil {
		return layered(Mounts, err)
	}
	defer g.status.Close()
	if err := unix.Chdir(p.Dir); err != nil {
		return fmt.Errorf("cannot work in %s: %w", p.Dir, err)
	}
	steps := []struct {
		layer     Layers
		mechanism string
		do        func() error
	}{
		{Namespaces, "user, process, IPC, host name and cgroup namespaces", g.checkNamespaces},
		{Mounts, "own tmpfs root, read-only binds", g.checkTree},
		{Network, network(p), g.checkNetwork},
		{Rlimits, "setrlimit", g.limit},
		{Landlock, fmt.Sprintf("ABI %d", landlockABI()), g.landlock},
		{Privileges, "no capabilities, no_new_privs, locked securebits", g.dropPrivileges},
		{Seccomp, "allow-list, profile " + string(p.Profile), g.seccomp},
	}
	for _, s := range steps {
		if !p.has(s.layer) {
			g.attestation.Layers = append(g.attestation.Layers, LayerState{Name: s.layer.String(), Why: p.whyOff(s.layer)})
			continue
		}
		if err := s.do(); err != nil {
			return layered(s.layer, err)
		}
		g.attestation.Layers = append(g.attestation.Layers, LayerState{Name: s.layer.String(), On: true, Mechanism: s.mechanism})
	}
	return p.fail("attest")
}

// whyOff says why a layer was not asked for.
func (p *plan) whyOff(l Layers) string {
	if p.Off&l != 0 {
		return "left out by a test"
	}
	return "not part of class " + string(p.Class)
}

// checkNamespaces proves that the guest has none of the launcher's namespaces.
func (g *guest) checkNamespaces() error {
	return g.differ("user", "pid", "ipc", "uts", "cgroup", "mnt")
}

// checkNetwork proves that the guest has a network of its own.
func (g *guest) checkNetwork() error { return g.differ("net") }

// differ compares namespaces with those of the launcher.
func (g *guest) differ(names ...string) error {
	for _, name := range names {
		own, err := os.Readlink("/proc/self/ns/" + name)
		if err != nil {
			return err
		}
		if host := g.plan.HostNS[name]; host == "" || host == own {
			return fmt.Errorf("the %s namespace %s is the launcher's", name, own)
		}
	}
	return nil
}

// checkTree looks at what is mounted and enters the working folder.
func (g *guest) checkTree() error {
	mounts, err := readMounts()
	if err != nil {
		return err
	}
	for _, m := range mounts {
		g.attestation.Mounts = append(g.attestation.Mounts, m.point)
	}
	slices.Sort(g.attestation.Mounts)
	return checkMounts(&g.plan, mounts)
}

// landlock restricts and proves it: no rule allows to list the root.
func (g *guest) landlock() error {
	g.attestation.LandlockABI = landlockABI()
	if err := restrictFiles(&g.plan); err != nil {
		return err
	}
	fd, err := unix.Open("/", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err == nil {
		_ = unix.Close(fd) // the jail is given up
	}
	switch {
	case err == nil:
		return errors.New("/ can be listed")
	case !errors.Is(err, unix.EACCES):
		return fmt.Errorf("listing / gives the wrong error: %w", err)
	}
	return nil
}

// dropPrivileges makes sure that there is nothing left of what the init gave
// up before it started the guest.
func (g *guest) dropPrivileges() error {
	if err := setCapabilities(0); err != nil {
		return err
	}
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return err
	}
	status, err := readStatus(g.status)
	if err != nil {
		return err
	}
	if g.plan.Class == Nested {
		status["CapBnd"] = "0" // only root can empty it; no_new_privs makes it moot
	}
	return checkPrivileges(status)
}

// seccomp is last: after it hardly anything can be looked up.
func (g *guest) seccomp() error {
	if err := filterCalls(g.plan.Profile, g.plan.Proxy); err != nil {
		return err
	}
	status, err := readStatus(g.status)
	if err != nil {
		return err
	}
	return checkCalls(status, g.plan.Proxy)
}

// execute becomes the program. It never returns: a failure is reported as
// exit code 127 with the reason on standard error, as a shell would.
func (g *guest) execute() {
	// What the launcher ignored would stay ignored in the program.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP, syscall.SIGINT, syscall.SIGPIPE)
	err := syscall.Exec(g.plan.Path, g.plan.Args, g.plan.Env)
	fmt.Fprintf(os.Stderr, "cannot execute %s: %v\n", g.plan.Path, err)
	exit(127)
}

// connection returns the guest's end of the connection for a worker.
func (*guest) connection() (*os.File, error) {
	// So that the runtime waits for it without a thread.
	if err := unix.SetNonblock(connFD, true); err != nil {
		return nil, err
	}
	unix.CloseOnExec(connFD)
	return os.NewFile(connFD, "conn"), nil
}

// environment makes the environment what was asked for.
func (g *guest) environment() error {
	os.Clearenv()
	for _, variable := range g.plan.Env {
		name, value, _ := strings.Cut(variable, "=")
		if err := os.Setenv(name, value); err != nil {
			return fmt.Errorf("cannot set %q: %w", name, err)
		}
	}
	return nil
}

// limit sets the limits of the process, which its children inherit.
func (g *guest) limit() error {
	for _, r := range g.plan.rlimits() {
		if err := r.set(); err != nil {
			return err
		}
	}
	return nil
}

// rlimit is one limit of a process.
type rlimit struct {
	name       string
	resource   int
	soft, hard int64
}

// set sets a limit and reads it back.
func (r rlimit) set() error {
	want := unix.Rlimit{Cur: uint64(r.soft), Max: uint64(r.hard)}
	// By way of prlimit: the runtime meddles with the others.
	if err := unix.Prlimit(0, r.resource, &want, nil); err != nil {
		return fmt.Errorf("cannot set limit %s to %d: %w", r.name, r.hard, err)
	}
	var got unix.Rlimit
	if err := unix.Prlimit(0, r.resource, nil, &got); err != nil || got != want {
		return fmt.Errorf("limit %s is %d after setting it to %d: %w", r.name, got.Max, r.hard, err)
	}
	return nil
}

// ownTasks is room for the threads of the init, which count as the guest's.
const ownTasks = 16

// rlimits returns the limits of a plan.
func (p *plan) rlimits() []rlimit {
	l := p.Limits
	tasks := int64(l.Processes + ownTasks + p.Tasks)
	all := []rlimit{
		// One byte, not none: with none a core pattern that is a pipe still gets one.
		{"core", unix.RLIMIT_CORE, 1, 1},
		{"nofile", unix.RLIMIT_NOFILE, int64(l.OpenFiles), int64(l.OpenFiles)},
		{"fsize", unix.RLIMIT_FSIZE, l.FileSize, l.FileSize},
		// One second between the signal that can be handled and the one that cannot.
		{"cpu", unix.RLIMIT_CPU, l.CPUSeconds, l.CPUSeconds + 1},
		{"memlock", unix.RLIMIT_MEMLOCK, 0, 0},
		{"msgqueue", unix.RLIMIT_MSGQUEUE, 0, 0},
		{"sigpending", unix.RLIMIT_SIGPENDING, 256, 256},
		{"nproc", unix.RLIMIT_NPROC, tasks, tasks},
		{"stack", unix.RLIMIT_STACK, 8 << 20, 8 << 20},
	}
	if !withRace {
		all = append(all, rlimit{"as", unix.RLIMIT_AS, l.AddressSpace, l.AddressSpace})
	}
	return all
}
