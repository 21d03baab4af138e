//go:build linux && (amd64 || arm64)

package jail

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// Times that nothing healthy comes near.
const (
	startTimeout = 30 * time.Second
	stopTimeout  = 10 * time.Second
)

// insideUID is the user and the group of the guest as it sees itself.
const insideUID = 65532

// nestable are the layers whose absence leads from class Full to Nested.
const nestable = Namespaces | Mounts | Network

// Start starts a jail and returns when its guest has attested every layer that
// the class promises; then the guest begins. The end of the context kills it.
//
// It fails closed: without all promised layers there is no jail. Class Full
// promises all but Cgroup, which needs root or delegation; without one the
// memory of the tree is sampled, and bounded by Limits.AddressSpace for each of
// Limits.Processes. AddressSpace is Memory and 4 GiB if zero: the Go runtime,
// which every guest begins with, reserves much that it never uses.
//
// Call Kill in the end, whatever happens.
func Start(ctx context.Context, cfg Config) (*Process, error) {
	return start(ctx, cfg, "")
}

// start is Start with a step that fails, for tests.
func start(ctx context.Context, cfg Config, failAt string) (*Process, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return nil, fmt.Errorf("cannot start a jail: %w", err)
	}
	if cfg.Off&Namespaces == 0 {
		p, err := launch(ctx, plan{Config: cfg, Class: Full, FailAt: failAt})
		l, ok := errors.AsType[*layerError](err)
		if err == nil || cfg.MinClass == Full || !ok || l.layer&nestable == 0 {
			return p, err
		}
	}
	return launch(ctx, plan{Config: cfg, Class: Nested, FailAt: failAt})
}

// withDefaults checks a configuration and fills it up.
func (c Config) withDefaults() (Config, error) {
	if c.Profile == "" {
		c.Profile = Interp
	}
	if c.MinClass == "" {
		c.MinClass = Full
	}
	if c.Dir == "" {
		c.Dir = "/sandbox"
	}
	fill := func(value *int64, fallback int64) {
		if *value <= 0 {
			*value = fallback
		}
	}
	l := &c.Limits
	fill(&l.Memory, 512<<20)
	fill(&l.FileSize, 64<<20)
	fill(&l.TmpBytes, 64<<20)
	fill(&l.TmpInodes, 4096)
	fill(&l.CPUSeconds, 3600)
	fill(&l.AddressSpace, l.Memory+4<<30)
	if l.Processes <= 0 {
		l.Processes = 64
	}
	if l.OpenFiles <= 0 {
		l.OpenFiles = 256
	}
	return c, c.check()
}

// check finds what contradicts itself.
func (c Config) check() error {
	switch {
	case (c.Path == "") == (c.Worker == ""):
		return errors.New("exactly one of Path and Worker must be set")
	case c.Profile != Interp && c.Profile != CPython:
		return fmt.Errorf("no profile is called %q", c.Profile)
	case c.MinClass != Full && c.MinClass != Nested:
		return fmt.Errorf("no class is called %q", c.MinClass)
	case c.Path != "" && c.Profile != CPython:
		return fmt.Errorf("program %s needs profile %s: %s cannot execute anything", c.Path, CPython, c.Profile)
	case c.Path != "" && (!filepath.IsAbs(c.Path) || len(c.Args) == 0):
		return fmt.Errorf("program %q must be an absolute path and have at least its name as argument", c.Path)
	case c.Proxy && (c.Profile != CPython || c.MinClass != Full || c.Off&Network != 0):
		return fmt.Errorf("a proxy needs profile %s and a network of its own, so class %s", CPython, Full)
	case c.Worker != "" && !registered(c.Worker):
		return fmt.Errorf("no worker is registered as %q", c.Worker)
	case c.Off != 0 && flag.Lookup("test.v") == nil:
		return errors.New("layers can be left out by tests only")
	}
	return nil
}

// launch starts a jail of one class.
func launch(ctx context.Context, pl plan) (*Process, error) {
	p := &Process{
		plan: pl, output: newTail(),
		launched: make(chan struct{}), done: make(chan struct{}), replies: map[int]chan struct{}{},
	}
	err := p.launch(ctx)
	close(p.launched)
	if err != nil {
		what := fmt.Errorf("cannot start a jail of class %s: %w", pl.Class, err)
		if text := strings.TrimSpace(string(p.output.bytes())); text != "" {
			what = fmt.Errorf("%w (it wrote %q)", what, text)
		}
		return nil, errors.Join(what, p.abandon())
	}
	return p, nil
}

// launch takes the steps of starting. What it made so far is in p.
func (p *Process) launch(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := p.prepare(); err != nil {
		return err
	}
	ours, theirs, err := p.sockets()
	if err != nil {
		return err
	}
	trees, err := p.openTrees()
	if err == nil {
		err = p.spawn(append(theirs, trees...))
	}
	closeAll(append(theirs, trees...))
	if err == nil {
		err = p.adopt(ours)
	}
	closeAll(ours)
	if err != nil {
		return err
	}
	p.stopWatching = context.AfterFunc(ctx, p.kill)
	if err := p.handshake(); err != nil {
		return errors.Join(ctx.Err(), err)
	}
	p.wg.Go(p.listen)
	return nil
}

// prepare decides what the plan leaves open.
func (p *Process) prepare() error {
	trees, err := planTrees(p.plan.Binds)
	if err != nil {
		return err
	}
	p.plan.Trees = trees
	if !p.plan.has(Mounts) {
		if err := p.prepareNested(); err != nil {
			return err
		}
	}
	p.plan.HostUID, p.plan.UID = os.Getuid(), os.Getuid()
	if os.Geteuid() == 0 {
		p.slot, err = takeSlot()
		if err != nil {
			return layered(Namespaces, err)
		}
		if p.slot != nil {
			p.plan.HostUID, p.plan.UID = p.slot.uid, p.slot.uid
		}
	}
	if p.plan.Class == Full {
		p.plan.UID = insideUID
	} else if p.slot == nil {
		p.plan.Tasks = tasksOf(os.Getuid())
	}
	p.plan.HostNS, err = ownNamespaces()
	if err != nil {
		return err
	}
	if err := p.plan.fail("cgroup"); err != nil || !p.plan.has(Cgroup) {
		return err
	}
	p.cgroup, err = newCgroup(p.plan.Limits, p.plan.Class)
	if errors.Is(err, errNoCgroup) {
		p.plan.Sample, p.noCgroup, err = true, err, nil
	}
	return layered(Cgroup, err)
}

// prepareNested fits the plan to a jail without a file tree of its own, where
// there is no scratch folder either.
func (p *Process) prepareNested() error {
	if p.plan.Dir == "/sandbox" {
		p.plan.Dir = "/"
	}
	for _, t := range p.plan.Trees {
		if t.Source != t.Target {
			return fmt.Errorf("cannot bind %s to %s without an own file tree: both must be the same", t.Source, t.Target)
		}
	}
	return nil
}

// ownNamespaces returns the names of the launcher's namespaces.
func ownNamespaces() (map[string]string, error) {
	all := map[string]string{}
	for _, name := range []string{"user", "pid", "ipc", "uts", "cgroup", "mnt", "net"} {
		link, err := os.Readlink("/proc/self/ns/" + name)
		if err != nil {
			return nil, layered(Namespaces, err)
		}
		all[name] = link
	}
	return all, nil
}

// sockets makes the three connections and the pipe of the output, in the order
// of the descriptors of the helpers.
func (p *Process) sockets() (ours, theirs []*os.File, err error) {
	for _, kind := range []int{unix.SOCK_STREAM, unix.SOCK_SEQPACKET, unix.SOCK_SEQPACKET} {
		pair, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			closeAll(append(ours, theirs...))
			return nil, nil, fmt.Errorf("cannot make a socket pair: %w", err)
		}
		ours = append(ours, os.NewFile(uintptr(pair[0]), "jail"))
		theirs = append(theirs, os.NewFile(uintptr(pair[1]), "jail"))
	}
	return ours, theirs, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		_ = f.Close() // copies; what was written is elsewhere
	}
}

// openTrees opens the binds for a guest that could not reach them itself.
func (p *Process) openTrees() ([]*os.File, error) {
	if p.slot == nil || !p.plan.has(Mounts) {
		return nil, nil
	}
	var files []*os.File
	for i := range p.plan.Trees {
		t := &p.plan.Trees[i]
		fd, err := t.open()
		if errors.Is(err, unix.EPERM) {
			return files, nil // a root that is none; the init tries
		}
		if err != nil {
			closeAll(files)
			return nil, layered(Mounts, err)
		}
		t.FD = firstTree + len(files)
		files = append(files, os.NewFile(uintptr(fd), t.Source))
	}
	return files, nil
}

// spawn starts the init. The thread that does it stays until the init has
// ended, because the kernel takes the end of the thread for that of the parent.
func (p *Process) spawn(files []*os.File) error {
	if err := p.plan.fail("spawn"); err != nil {
		return err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("cannot make a pipe: %w", err)
	}
	p.cmd = exec.CommandContext(context.Background(), "/proc/self/exe")
	p.cmd.Args, p.cmd.Env, p.cmd.Dir = []string{helperName}, []string{quietRuntime, swiftEnd, "GOMAXPROCS=2"}, "/"
	p.cmd.Stdout, p.cmd.Stderr, p.cmd.ExtraFiles = w, w, files
	p.cmd.SysProcAttr = p.attributes()
	started := make(chan error)
	p.wg.Go(func() { p.output.fill(r) })
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := p.cmd.Start()
		_ = w.Close() // a copy
		p.started = err == nil
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // the end of the init is no news
			p.finish(r)
		}
	}()
	if err := <-started; err != nil {
		p.wg.Wait()
		_ = r.Close() // nothing was written
		if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EACCES) {
			return fmt.Errorf("cannot execute this binary as user %d: make it readable and executable for all: %w", p.plan.HostUID, err)
		}
		return layered(Namespaces, fmt.Errorf("cannot make namespaces, which this kernel or container forbids: %w", err))
	}
	return nil
}

// attributes says how the init is cloned.
func (p *Process) attributes() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setsid: true}
	if p.slot != nil {
		attr.Credential = &syscall.Credential{Uid: uint32(p.plan.UID), Gid: uint32(p.plan.UID)}
	}
	if p.plan.Class == Nested {
		// It must live to kill the others when it sees the launcher go.
		attr.Pdeathsig = 0
		return attr
	}
	attr.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWIPC |
		unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP
	if p.plan.has(Network) {
		attr.Cloneflags |= unix.CLONE_NEWNET
	}
	hostGID := os.Getgid()
	if p.slot != nil {
		hostGID = p.slot.uid
	}
	attr.UidMappings = []syscall.SysProcIDMap{{ContainerID: insideUID, HostID: p.plan.HostUID, Size: 1}}
	attr.GidMappings = []syscall.SysProcIDMap{{ContainerID: insideUID, HostID: hostGID, Size: 1}}
	// Only a launcher that is root can drop its groups, and must.
	attr.GidMappingsEnableSetgroups = p.slot != nil
	attr.AmbientCaps = []uintptr{unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP, unix.CAP_KILL, unix.CAP_SYS_PTRACE}
	if p.plan.Proxy {
		attr.AmbientCaps = append(attr.AmbientCaps, unix.CAP_NET_ADMIN) // to switch loopback on
	}
	return attr
}

// adopt turns our ends of the sockets into connections.
func (p *Process) adopt(ours []*os.File) error {
	conns := make([]*net.UnixConn, len(ours))
	for i, f := range ours {
		c, err := net.FileConn(f)
		if err != nil {
			for _, c := range conns[:i] {
				_ = c.Close() // nothing was written
			}
			return fmt.Errorf("cannot use a socket: %w", err)
		}
		conns[i], _ = c.(*net.UnixConn)
	}
	p.conn, p.control, p.gate = conns[0], conns[1], conns[2]
	if err := p.plan.fail("adopt"); err != nil {
		return err
	}
	if p.cgroup == nil {
		return nil
	}
	return layered(Cgroup, p.cgroup.add(p.cmd.Process.Pid))
}

// errInjected is what a step gives that a test lets fail.
var errInjected = errors.New("injected failure")

// fail fails at the step that a test chose.
func (p *plan) fail(step string) error {
	if p.FailAt != step {
		return nil
	}
	return fmt.Errorf("%w at %s", errInjected, step)
}
