//go:build linux && (amd64 || arm64)

package jail

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"
)

// launch carries out the steps of a start. p holds the resources that the steps have created.
func (p *Process) launch(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := p.completePlan(); err != nil {
		return err
	}

	ours, theirs, err := makeSockets()
	if err != nil {
		return err
	}
	trees, err := p.openTrees()
	if err == nil {
		err = p.startInit(append(theirs, trees...))
	}
	closeFiles(append(theirs, trees...))
	if err == nil {
		err = p.adoptSockets(ours)
	}
	closeFiles(ours)
	if err == nil {
		err = p.joinCgroup()
	}
	if err != nil {
		return err
	}

	p.stopWatching = context.AfterFunc(ctx, p.beginKill)
	if err := p.handshake(); err != nil {
		return errors.Join(ctx.Err(), err)
	}
	p.wg.Go(p.readReports)
	return nil
}

// completePlan sets everything that the plan does not specify.
func (p *Process) completePlan() error {
	trees, err := planTrees(p.plan.Binds)
	if err != nil {
		return err
	}
	p.plan.Trees = trees
	if p.plan.wants(Mounts) {
		err = findMounts(trees)
	} else {
		err = p.planWithoutTree()
	}
	if err != nil {
		return err
	}

	if err := p.chooseUser(); err != nil {
		return err
	}
	if p.plan.HostNS, err = readNamespaces(); err != nil {
		return err
	}
	return p.makeCgroup()
}

// planWithoutTree adapts the plan to a jail without a file tree, and so without scratch folders.
func (p *Process) planWithoutTree() error {
	if p.plan.Dir == "/sandbox" {
		p.plan.Dir = "/"
	}
	for _, t := range p.plan.Trees {
		if t.Source != t.Target {
			return fmt.Errorf("cannot bind %s to %s without a separate file tree: "+
				"both paths must be the same", t.Source, t.Target)
		}
	}
	return nil
}

// chooseUser chooses the guest's user, inside and outside.
func (p *Process) chooseUser() error {
	p.plan.HostUID, p.plan.UID = os.Getuid(), os.Getuid()
	if os.Geteuid() == 0 {
		var err error
		if p.slot, err = takeSlot(); err != nil {
			return inLayer(Namespaces, err)
		}
		if p.slot != nil {
			p.plan.HostUID, p.plan.UID = p.slot.uid, p.slot.uid
		}
	}

	if p.plan.Class == Full {
		p.plan.UID = insideUID
	} else if p.slot == nil {
		p.plan.Tasks = countTasks(os.Getuid())
	}
	return nil
}

// makeCgroup creates the cgroup, or decides to sample the memory instead.
func (p *Process) makeCgroup() error {
	if err := p.plan.failAt("cgroup"); err != nil || !p.plan.wants(Cgroup) {
		return err
	}

	var err error
	p.cgroup, err = newCgroup(p.plan.Limits, p.plan.Class)
	if errors.Is(err, errNoCgroup) && (p.plan.AllowSampled || p.plan.Profile == Compute) {
		p.plan.Sample, p.noCgroup, err = true, err, nil
		p.plan.Trees = slices.DeleteFunc(p.plan.Trees, isZero)
	}
	return inLayer(Cgroup, err)
}

// readNamespaces returns the names of the launcher's namespaces.
func readNamespaces() (map[string]string, error) {
	all := map[string]string{}
	for _, name := range []string{"user", "pid", "ipc", "uts", "cgroup", "mnt", "net"} {
		link, err := os.Readlink("/proc/self/ns/" + name)
		if err != nil {
			return nil, inLayer(Namespaces, err)
		}
		all[name] = link
	}
	return all, nil
}

// makeSockets creates the three connections, in the order of the helpers' descriptors.
func makeSockets() (ours, theirs []*os.File, err error) {
	for _, kind := range []int{unix.SOCK_STREAM, unix.SOCK_SEQPACKET, unix.SOCK_SEQPACKET} {
		pair, err := unix.Socketpair(unix.AF_UNIX, kind|unix.SOCK_CLOEXEC, 0)
		if err != nil {
			closeFiles(append(ours, theirs...))
			return nil, nil, fmt.Errorf("cannot make a socket pair: %w", err)
		}
		ours = append(ours, os.NewFile(uintptr(pair[0]), "jail"))
		theirs = append(theirs, os.NewFile(uintptr(pair[1]), "jail"))
	}
	return ours, theirs, nil
}

func closeFiles(files []*os.File) {
	for _, f := range files {
		_ = f.Close() // copies, never written to
	}
}

// openTrees opens the binds for a guest that cannot reach them itself.
func (p *Process) openTrees() ([]*os.File, error) {
	if p.slot == nil || !p.plan.wants(Mounts) {
		return nil, nil
	}

	var files []*os.File
	for i := range p.plan.Trees {
		t := &p.plan.Trees[i]
		fd, err := t.openDetached()
		if errors.Is(err, unix.EPERM) {
			return files, nil // root without privileges; the init tries
		}
		if err != nil {
			closeFiles(files)
			return nil, inLayer(Mounts, err)
		}
		t.FD = firstTree + len(files)
		files = append(files, os.NewFile(uintptr(fd), t.Source))
	}
	return files, nil
}

// startInit starts the init. The thread that starts it stays alive until the init has ended,
// because for the kernel, the end of that thread is the end of the parent.
func (p *Process) startInit(files []*os.File) error {
	if err := p.plan.failAt("spawn"); err != nil {
		return err
	}
	r, w, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("cannot make a pipe: %w", err)
	}
	p.cmd = p.initCommand(w, files)
	p.wg.Go(func() { p.output.readFrom(r) })

	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()

		err := p.cmd.Start()
		_ = w.Close() // the init has a copy
		p.started = err == nil
		started <- err
		if err == nil {
			_ = p.cmd.Wait() // the init's exit code has no meaning
			p.finish(r)
		}
	}()

	if err := <-started; err != nil {
		p.wg.Wait()
		_ = r.Close() // no data was written
		return p.explainStart(err)
	}
	return nil
}

// initCommand returns the command of the init, which writes to output.
func (p *Process) initCommand(output *os.File, files []*os.File) *exec.Cmd {
	cmd := exec.CommandContext(context.Background(), "/proc/self/exe")
	cmd.Args = []string{helperName}
	cmd.Env = []string{noCgroupFiles, noRaceDelay, "GOMAXPROCS=2"}
	cmd.Dir = "/"
	cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = output, output, files
	cmd.SysProcAttr = p.cloneAttributes()
	return cmd
}

// explainStart explains why the init could not be started.
func (p *Process) explainStart(err error) error {
	if errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EACCES) {
		return fmt.Errorf("cannot execute this binary as user %d: "+
			"make it readable and executable for all: %w", p.plan.HostUID, err)
	}
	return inLayer(Namespaces, fmt.Errorf(
		"cannot make namespaces, which this kernel or container forbids: %w", err))
}

// cloneAttributes returns the attributes for cloning the init.
func (p *Process) cloneAttributes() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setsid: true}
	if p.slot != nil {
		uid := uint32(p.plan.UID)
		attr.Credential = &syscall.Credential{Uid: uid, Gid: uid}
	}
	if p.plan.Class == Nested {
		// The init outlives the launcher for a moment, to kill the other processes.
		attr.Pdeathsig = 0
		return attr
	}

	attr.Cloneflags = unix.CLONE_NEWUSER | unix.CLONE_NEWNS | unix.CLONE_NEWPID |
		unix.CLONE_NEWIPC | unix.CLONE_NEWUTS | unix.CLONE_NEWCGROUP
	if p.plan.wants(Network) {
		attr.Cloneflags |= unix.CLONE_NEWNET
	}

	hostGID := os.Getgid()
	if p.slot != nil {
		hostGID = p.slot.uid
	}
	attr.UidMappings = []syscall.SysProcIDMap{
		{ContainerID: insideUID, HostID: p.plan.HostUID, Size: 1},
	}
	attr.GidMappings = []syscall.SysProcIDMap{
		{ContainerID: insideUID, HostID: hostGID, Size: 1},
	}
	// Only a launcher that is root can drop its groups, and it must do so.
	attr.GidMappingsEnableSetgroups = p.slot != nil

	attr.AmbientCaps = []uintptr{
		unix.CAP_SYS_ADMIN, unix.CAP_SETPCAP, unix.CAP_KILL, unix.CAP_SYS_PTRACE,
	}
	if p.plan.Proxy {
		attr.AmbientCaps = append(attr.AmbientCaps, unix.CAP_NET_ADMIN) // for loopback
	}
	return attr
}

// adoptSockets turns the launcher's ends of the sockets into connections.
func (p *Process) adoptSockets(ours []*os.File) error {
	conns := make([]*net.UnixConn, len(ours))
	for i, f := range ours {
		c, err := net.FileConn(f)
		if err != nil {
			for _, c := range conns[:i] {
				_ = c.Close() // no data was written
			}
			return fmt.Errorf("cannot use a socket: %w", err)
		}
		conns[i], _ = c.(*net.UnixConn)
	}
	p.conn, p.control, p.gate = conns[0], conns[1], conns[2]
	return p.plan.failAt("adopt")
}

// joinCgroup moves the init into the cgroup before the init starts other processes.
func (p *Process) joinCgroup() error {
	if p.cgroup == nil {
		return nil
	}
	return inLayer(Cgroup, p.cgroup.add(p.cmd.Process.Pid))
}
