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

	"github.com/rlmhq/rlm/internal/machine/mapbudget"
	"github.com/rlmhq/rlm/internal/machine/pagemap"
)

// runGuest is the child of the init. It locks itself down, sends its attestation, waits for the
// launcher's permission, and becomes the program or runs the worker. It never returns.
func runGuest(worker func(conn *os.File) int) {
	runtime.LockOSThread()

	var g guest
	if err := receiveFromLauncher(&g.plan); err != nil {
		exitHelper(helperFailed) // the launcher has ended or given up
	}
	m := message{Attestation: &g.attestation}
	if err := g.lockDown(); err != nil {
		m = describeError(err)
	}
	if err := sendToLauncher(m); err != nil || m.Error != "" {
		exitHelper(helperFailed)
	}

	var o order
	if err := receiveFromLauncher(&o); err != nil {
		exitHelper(helperFailed) // the launcher rejected the attestation
	}
	_ = unix.Close(launcherFD) // no data is lost

	if worker == nil {
		g.executeProgram()
	}
	g.runWorker(worker)
}

// guest holds the state of the guest.
type guest struct {
	plan        plan
	attestation Attestation
	status      *os.File // opened early, read late
}

// lockDown gives up every privilege, in the only order that works, and sends the attestation. It
// proves each step at the last moment when a proof is still possible.
func (g *guest) lockDown() error {
	p := &g.plan
	if err := p.failAt("guest"); err != nil {
		return err
	}
	g.attestation.Class, g.attestation.PID = p.Class, unix.Getpid()
	g.attestation.UID, g.attestation.HostUID = unix.Getuid(), p.HostUID

	var err error
	if g.status, err = os.Open("/proc/thread-self/status"); err != nil {
		return inLayer(Mounts, err)
	}
	defer g.status.Close()
	if p.Profile == Engine {
		if err := pagemap.Keep(); err != nil {
			return inLayer(Mounts, err)
		}
		mapbudget.Process()
	}
	if err := unix.Chdir(p.Dir); err != nil {
		return fmt.Errorf("cannot work in %s: %w", p.Dir, err)
	}

	for _, s := range g.lockSteps() {
		state := LayerState{Name: s.layer.String()}
		if p.wants(s.layer) {
			if err := s.do(); err != nil {
				return inLayer(s.layer, err)
			}
			state.On, state.Mechanism = true, s.mechanism
		} else {
			state.Why = p.whyOff(s.layer)
		}
		g.attestation.Layers = append(g.attestation.Layers, state)
	}
	return p.failAt("attest")
}

// lockStep sets up one layer and proves that it is in force.
type lockStep struct {
	layer     Layers
	mechanism string
	do        func() error
}

// lockSteps returns the steps of lockDown, in order.
func (g *guest) lockSteps() []lockStep {
	return []lockStep{
		{
			Namespaces, "user, process, IPC, host name and cgroup namespaces",
			func() error {
				return g.compareNamespaces("user", "pid", "ipc", "uts", "cgroup", "mnt")
			},
		},
		{Mounts, describeTree(&g.plan), g.checkTree},
		{
			Network, describeNetwork(&g.plan),
			func() error { return g.compareNamespaces("net") },
		},
		{Rlimits, "setrlimit", g.setLimits},
		{Landlock, fmt.Sprintf("ABI %d", landlockABI()), g.restrictFiles},
		{
			Privileges, "no capabilities, no_new_privs, locked securebits",
			g.checkPrivileges,
		},
		{Seccomp, "allow-list, profile " + string(g.plan.Profile), g.filterCalls},
	}
}

// whyOff returns why a layer was not requested.
func (p *plan) whyOff(l Layers) string {
	if p.Off&l != 0 {
		return "left out by a test"
	}
	return "not part of class " + string(p.Class)
}

// compareNamespaces proves that the guest does not share namespaces with the launcher.
func (g *guest) compareNamespaces(names ...string) error {
	for _, name := range names {
		own, err := os.Readlink("/proc/self/ns/" + name)
		if err != nil {
			return err
		}
		if host := g.plan.HostNS[name]; host == "" || host == own {
			return fmt.Errorf("the %s namespace %s belongs to the launcher", name, own)
		}
	}
	return nil
}

// describeTree describes how the file tree is separated from the host's files.
func describeTree(p *plan) string {
	const how = "separate tmpfs root, read-only binds"
	mounts, err := readMounts()
	if err != nil {
		return how // checkTree reports the error
	}

	for _, t := range p.Trees {
		isCover := func(m mounted) bool { return m.point == t.Target && m.kind == "overlay" }
		if t.Folder && !t.Write && !slices.ContainsFunc(mounts, isCover) {
			return how + "; locks on " + t.Target + " reach the host, as overlayfs cannot cover it"
		}
	}
	return how + ", folders under overlayfs"
}

// checkTree proves that only the planned trees are mounted.
func (g *guest) checkTree() error {
	mounts, err := readMounts()
	if err != nil {
		return err
	}
	for _, m := range mounts {
		g.attestation.Mounts = append(g.attestation.Mounts, m.point)
	}
	slices.Sort(g.attestation.Mounts)
	g.attestation.Mounts = slices.Compact(g.attestation.Mounts) // a covered folder appears twice
	return checkMounts(&g.plan, mounts)
}

// restrictFiles applies the Landlock rules. It proves that they are in force by listing the root,
// which no rule allows.
func (g *guest) restrictFiles() error {
	g.attestation.LandlockABI = landlockABI()
	if err := restrictFiles(&g.plan); err != nil {
		return err
	}

	fd, err := unix.Open("/", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	switch {
	case err == nil:
		_ = unix.Close(fd) // the start fails
		return errors.New("the guest can list /: Landlock does not restrict it")
	case !errors.Is(err, unix.EACCES):
		return fmt.Errorf("the guest cannot list /, but with the wrong error: %w", err)
	}
	return nil
}

// checkPrivileges proves that the guest has none of the privileges that the init gave up before it
// started the guest.
func (g *guest) checkPrivileges() error {
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
		status["CapBnd"] = "0" // only root can empty it, and with no_new_privs it has no effect
	}
	return checkPrivileges(status)
}

// filterCalls installs the seccomp filter. It comes last, because the filter refuses most of the
// calls that the checks need.
func (g *guest) filterCalls() error {
	if err := installFilter(&g.plan); err != nil {
		return err
	}
	status, err := readStatus(g.status)
	if err != nil {
		return err
	}
	return checkFilter(status, g.plan.Proxy)
}

// executeProgram becomes the program. It never returns. A failure leads to exit code 127 with the
// reason on standard error, as in a shell.
func (g *guest) executeProgram() {
	// Otherwise, the program would ignore the signals that the launcher ignored.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGHUP, syscall.SIGINT, syscall.SIGPIPE)

	err := syscall.Exec(g.plan.Path, g.plan.Args, g.plan.Env)
	fmt.Fprintf(os.Stderr, "cannot execute %s: %v\n", g.plan.Path, err)
	exitHelper(127)
}

// runWorker runs the worker function of this binary. It never returns.
func (g *guest) runWorker(worker func(conn *os.File) int) {
	conn, err := openConnection()
	if err == nil {
		err = g.setEnvironment()
	}
	if err != nil {
		exitHelper(helperFailed)
	}

	// The main goroutine occupies the main thread while init functions run.
	go func() { exitHelper(worker(conn)) }()
	select {}
}

// openConnection returns the guest's end of a worker's connection.
func openConnection() (*os.File, error) {
	// The runtime then needs no thread to wait for the connection.
	if err := unix.SetNonblock(connFD, true); err != nil {
		return nil, err
	}
	unix.CloseOnExec(connFD)
	return os.NewFile(connFD, "conn"), nil
}

// setEnvironment sets the requested environment.
func (g *guest) setEnvironment() error {
	os.Clearenv()
	for _, variable := range g.plan.Env {
		name, value, _ := strings.Cut(variable, "=")
		if err := os.Setenv(name, value); err != nil {
			return fmt.Errorf("cannot set %q: %w", name, err)
		}
	}
	return nil
}
