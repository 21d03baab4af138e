//go:build linux && (amd64 || arm64)

package jail

import (
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestHostileAttemptsFail(t *testing.T) {
	requireFull(t)
	h := startHostile(t, Config{Env: []string{"A=b"}})
	for attempt, want := range map[string]string{
		"read /etc/passwd": "ENOENT", "read /proc/kallsyms": "ENOENT",
		"read /proc/sys/kernel/core_pattern": "ENOENT",
		"read /proc/sysrq-trigger":           "ENOENT", "read /sys/kernel/notes": "ENOENT",
		"list /": "EACCES", "list /dev": "EACCES",
		"read /proc/1/environ": "ENOENT", "read /proc/self/exe": "EACCES", "read /dev/null": "done",
		"write /usr/x": "EROFS", "write /x": "EROFS", "write /dev/x": "EROFS",
		"write /proc/self/oom_score_adj": "EACCES",
		"write /sandbox/x":               "done", "write /tmp/x": "done",
		"script /sandbox/y": "EACCES",
		"execute /bin/true": "done",
		"unix":              "EPERM", "inet": "EPERM", "inet6": "EPERM", "netlink": "EPERM",
		"packet": "EPERM",
		"alg":    "EPERM", "vsock": "EPERM",
		"pair": "done", "pair 2": "EPERM", "pair 5": "EPERM", "ptrace": "EPERM",
		"vm_readv": "EPERM", "unshare": "EPERM", "setns": "EPERM", "mount": "EPERM", "bpf": "EPERM",
		"io_uring": "EPERM", "userfaultfd": "EPERM", "keyctl": "EPERM", "memfd": "EPERM",
		"perf": "EPERM", "handle": "EPERM",
		"chroot": "EPERM", "setuid": "EPERM", "shmget": "EPERM", "mq_open": "EPERM",
		"clone3": "ENOSYS", "execveat": "EPERM",
		"new_user": "EPERM", "namespace": "EPERM", "unknown": "ENOSYS", "limit_init": "EPERM",
		"raise": "EPERM", "core": "1",
		"signal " + strconv.Itoa(os.Getpid()): "ESRCH",
		"ids":                                 "65532 65532 []", "env": "A=b", "hostname": "jail",
		"cwd":       "/sandbox<nil>",
		"processes": "0 others, 2 entries that are no process", "descriptors": "",
		"each_thread": "", "list_threads": "EACCES",
	} {
		if os.Geteuid() != 0 && (attempt == "ids" || attempt == "each_thread") {
			continue // an ordinary launcher cannot drop its groups
		}
		h.expect(attempt, want)
	}

	// The init ignores the signal, or Landlock refuses it.
	for _, attempt := range []string{"kill 1", "kill_parent"} {
		if got := h.try(attempt); got != "done" && got != "EPERM" {
			t.Errorf("%s: %s", attempt, got)
		}
	}

	h.expect("read /dev/null", "done")
}

func TestInterpCanDoHardlyAnything(t *testing.T) {
	requireFull(t)
	for profile, memory := range map[Profile]string{Compute: "EPERM", Engine: "done"} {
		h := startHostile(t, Config{Profile: profile, AllowSampled: true})
		for attempt, want := range map[string]string{
			"read /dev/null": "EPERM", "list /proc": "EPERM", "write /sandbox/x": "EPERM",
			"execute /bin/true": "EPERM",
			"unix":              "EPERM", "pair": "EPERM", "inet": "EPERM", "ptrace": "EPERM",
			"memfd":       memory,
			"exec_memory": memory,
			"new_user":    "EPERM", "clone3": "ENOSYS", "unknown": "ENOSYS", "kill 1": "EPERM",
			"kill_parent": "EPERM",
			"threads 20":  "done", "io_uring": "EPERM", "limit_init": "ENOSYS", "core": "1",
		} {
			h.expect(attempt, want)
		}
	}
}

// TestEachLayerHasANegativeControl tries attempts. Each must fail in a complete jail and with only
// one of the layers that stop it, and must succeed without all of these layers.
func TestEachLayerHasANegativeControl(t *testing.T) {
	requireFull(t)
	hold, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer hold.Close()

	datagrams, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer datagrams.Close()

	abstract, err := net.Listen("unix", fmt.Sprintf("@rlm-jail-test-%d", os.Getpid()))
	if err != nil {
		t.Fatal(err)
	}
	defer abstract.Close()

	canary := t.TempDir() + "/canary"
	if err := os.WriteFile(canary, nil, 0o644); err != nil {
		t.Fatal(err)
	}

	for _, c := range []struct {
		attempt string
		alone   []Layers // each of these suffices to stop it
	}{
		{"read /etc/passwd", []Layers{Mounts, Landlock}},
		{"list /", []Layers{Landlock}},
		{"dial tcp " + hold.Addr().String(), []Layers{Network, Seccomp, Landlock}},
		{"dial udp " + datagrams.LocalAddr().String(), []Layers{Network, Seccomp}},
		{"dial unix " + abstract.Addr().String(), []Layers{Network, Seccomp, Landlock}},
		{"namespace", []Layers{Seccomp}},
		{"memfd", []Layers{Seccomp}},
		{"netlink", []Layers{Seccomp}},
		{"shmget", []Layers{Seccomp}},
		{"files", []Layers{Rlimits}},
		{"large /sandbox/large", []Layers{Rlimits}},
		{"threads 60", []Layers{Rlimits, Cgroup}},
		{"flood 200", []Layers{Cgroup}},
		{"signal " + strconv.Itoa(os.Getpid()), []Layers{Namespaces}},
	} {
		t.Run(strings.ReplaceAll(c.attempt, "/", "_"), func(t *testing.T) {
			controls(t, c.attempt, c.alone)
		})
	}
}

// TestADatagramReachesNoSocketOfTheHost checks that a guest cannot create a pair of datagram
// sockets, with which it could send to a socket in a bound folder.
func TestADatagramReachesNoSocketOfTheHost(t *testing.T) {
	requireFull(t)
	name := t.TempDir() + "/socket"
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Net: "unixgram", Name: name})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()

	if err := os.Chmod(name, 0o777); err != nil {
		t.Fatal(err)
	}
	// The folder is writable, because a read-only folder has an overlayfs, on which sockets have no
	// listeners.
	binds := []Bind{{Source: filepath.Dir(name), Writable: true}}
	whole := startHostile(t, Config{Binds: binds})
	whole.expect("datagram "+name, "EPERM")
	control := startHostile(t, Config{Binds: binds, Off: Seccomp})
	control.expect("datagram "+name, "done")
}

// controls tries an attempt with each of the layers that stop it alone, and without all of them.
func controls(t *testing.T, attempt string, alone []Layers) {
	t.Helper()
	var all Layers
	for _, l := range alone {
		all |= l
		if l == Cgroup {
			requireCgroup(t)
		}
		if l == Namespaces {
			requireRoot(t)
		}
		if l == Mounts && withCgo {
			t.Skip("with cgo the C library looks for threads in the /proc of the jail")
		}
	}

	limits := Limits{Memory: 128 << 20, FileSize: 2 << 20, Processes: 40}
	for _, l := range alone {
		h := startHostile(t, Config{Limits: limits, Off: all &^ l, MinClass: Nested})
		if got := h.try(attempt); got == "done" {
			t.Errorf("layer %s alone does not stop %q", l, attempt)
		}
	}

	if all&Namespaces != 0 {
		// Without namespaces, the host's user and Landlock must stop the attempt.
		h := startHostile(t, Config{Limits: limits, Off: all, MinClass: Nested})
		h.expect(attempt, "EPERM")
		return
	}

	h := startHostile(t, Config{Limits: limits, Off: all})
	h.expect(attempt, "done")
}

func TestForeignCallingConventionIsLethal(t *testing.T) {
	requireFull(t)
	if runtime.GOARCH != "amd64" {
		t.Skip("only amd64 has a second one")
	}
	h := startHostile(t, Config{})
	h.expect("x32", "gone")
	if e := wait(t, h.Process); e.Signal != syscall.SIGSYS {
		t.Errorf("%+v", e)
	}
}

func TestManyAtOnce(t *testing.T) {
	requireFull(t)
	var users sync.Map
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			p, err := Start(t.Context(), Config{Worker: "echo"})
			if err != nil {
				t.Error(err)
				return
			}

			if uid := p.Attestation().HostUID; os.Geteuid() == 0 {
				if _, taken := users.LoadOrStore(uid, true); taken {
					t.Errorf("two jails have user %d", uid)
				}
			}
			defer func() {
				if err := p.Kill(); err != nil {
					t.Error(err)
				}
			}()

			answer := make([]byte, 1)
			if _, err := p.Conn().Write(answer); err != nil {
				t.Error(err)
			}
			if _, err := p.Conn().Read(answer); err != nil {
				t.Error(err)
			}
		})
	}

	all.Wait()
}

func TestPrivilegesHaveANegativeControl(t *testing.T) {
	requireFull(t)
	h := startHostile(t, Config{Off: Privileges | Seccomp | Landlock})
	if h.try("each_thread") == "" {
		t.Error("privileges are dropped without the layer that drops them")
	}
	h.expect("mount", "done")
	whole := startHostile(t, Config{Off: Seccomp})
	whole.expect("mount", "EPERM")
	whole.expect("setuid", "EINVAL") // there is no user 0
}

func TestScratchIsBounded(t *testing.T) {
	requireFull(t)
	h := startHostile(t, Config{Limits: Limits{TmpBytes: 4 << 20, TmpInodes: 100}})
	for _, dir := range scratch {
		h.expect("fill "+dir, "ENOSPC after 4 MiB")
		h.expect("inodes "+dir, "ENOSPC")
	}

	control := startHostile(
		t,
		Config{Limits: Limits{TmpBytes: 80 << 20, TmpInodes: 11000, FileSize: 80 << 20}},
	)
	control.expect("fill /tmp", "done")
	control.expect("inodes /tmp", "done")
}

func TestMemoryFloodsDifferFromCrashes(t *testing.T) {
	requireFull(t)
	for _, off := range []Layers{0, Cgroup} {
		cfg, attempt := Config{Limits: Limits{Memory: 128 << 20}}, "flood 300"
		switch {
		case off == 0:
			requireCgroup(t)
		case os.Geteuid() == 0:
			continue // with a cgroup, there is no sampler to test
		default:
			attempt = "hoard 300" // the memory stays until the sampler detects it
		}

		h := startHostile(t, cfg)
		if got := h.try(attempt); got != "gone" {
			t.Errorf("the flood went %s", got)
		}
		if e := wait(t, h.Process); !e.OOM || !h.OOM() {
			t.Errorf("%+v", e)
		}
		break
	}

	h := startHostile(t, Config{})
	if err := h.Signal(t.Context(), 9); err != nil && !errors.Is(err, errEnded) {
		t.Error(err)
	}
	if e := wait(t, h.Process); e.OOM || e.Signal != 9 {
		t.Errorf("%+v", e)
	}
}

// requireNoCgroup skips a test of the sampler. TestAsOrdinaryUser runs it.
func requireNoCgroup(t *testing.T) {
	t.Helper()
	if _, err := findCgroupParents(); err == nil {
		t.Skip("there is a cgroup")
	}
}

// TestMemoryIsSampledWithoutACgroup checks the sampler with guests that keep memory in each place
// that the kernel does not charge to a process.
func TestMemoryIsSampledWithoutACgroup(t *testing.T) {
	requireFull(t)
	requireNoCgroup(t)
	for _, attempt := range []string{"hoard 300", "queues 120", "keep /tmp"} {
		t.Run(attempt, func(t *testing.T) {
			h := startHostile(t, Config{Limits: Limits{
				Memory: 64 << 20, TmpBytes: 96 << 20, FileSize: 96 << 20,
			}})
			h.expect("read /dev/null", "done") // a normal guest stays below the limit

			if got := h.try(attempt); got != "gone" {
				t.Fatalf("it went %s", got)
			}
			if !h.OOM() {
				t.Error("no process was ended for its memory")
			}
			if e := wait(t, h.Process); !e.OOM {
				t.Errorf("%+v", e)
			}
		})
	}
}

// TestPipesAreSampledWithoutACgroup fills pipes in several processes. Each process stays far below
// the limit, but their sum exceeds it.
func TestPipesAreSampledWithoutACgroup(t *testing.T) {
	requireFull(t)
	requireNoCgroup(t)
	const python = "/usr/bin/python3"
	_, err := os.Stat(python)
	requireTier(t, err == nil, python)

	p := startJail(t, Config{
		Path: python, Profile: Programs, Binds: systemBinds(),
		Args: []string{"python3", "-I", "-c", `
import os, time
for child in range(8):
    if os.fork() == 0:
        for pipe in range(120):
            os.write(os.pipe()[1], bytes(1 << 16))
        break
time.sleep(10)
`},
		Limits: Limits{Memory: 80 << 20},
	})
	if e := wait(t, p); !e.OOM {
		t.Errorf("%+v, it wrote %q", e, p.Output())
	}
}

// TestUnmeasurableMemoryIsRefused tries calls that would make the sampler's estimates too low. With
// a cgroup, which counts this memory, a guest may make these calls.
func TestUnmeasurableMemoryIsRefused(t *testing.T) {
	requireFull(t)
	_, err := findCgroupParents()
	h := startHostile(t, Config{})
	for attempt, sampled := range map[string]string{
		"shared 1": "EPERM", "read_some /dev/zero": "ENOENT",
		fmt.Sprint("setsockopt ", unix.SO_SNDBUF): "EPERM",
		fmt.Sprint("setsockopt ", unix.SO_RCVBUF): "EPERM",
		fmt.Sprint("fcntl ", unix.F_SETPIPE_SZ):   "EPERM",
	} {
		want := sampled
		if err == nil {
			want = "done"
			if strings.HasPrefix(attempt, "fcntl") {
				want = "EBADF" // it is not a pipe
			}
		}
		h.expect(attempt, want)
	}
}

// TestProgramsNeedACgroupOrPermission checks that profile Programs needs a cgroup or a permission,
// because samples miss memory that only programs can allocate.
func TestProgramsNeedACgroupOrPermission(t *testing.T) {
	requireFull(t)
	requireNoCgroup(t)
	for profile, want := range map[Profile]bool{Compute: true, Programs: false} {
		p, err := Start(t.Context(), Config{Worker: "echo", Profile: profile})
		if p != nil {
			err = errors.Join(err, p.Kill())
		}
		if got := err == nil; got != want {
			t.Errorf("profile %s starts: %v, %v", profile, got, err)
		}
	}
}

// TestNoFileOfTheHostIsWatched checks that notifications and leases are refused. The folders of the
// host are the same inodes in a jail, so they would reveal or affect the host's accesses.
func TestNoFileOfTheHostIsWatched(t *testing.T) {
	requireFull(t)
	whole := startHostile(t, Config{})
	control := startHostile(t, Config{Off: Seccomp})
	for command, without := range map[int]string{
		unix.F_NOTIFY: "done", unix.F_SETLEASE: "EACCES",
	} {
		attempt := fmt.Sprint("fcntl ", command)
		whole.expect(attempt, "EPERM")
		control.expect(attempt, without)
	}
}

func TestForkBombStops(t *testing.T) {
	requireFull(t)
	h := startHostile(t, Config{Limits: Limits{Processes: 40}})
	if got := h.try("forks 200"); !strings.HasPrefix(got, "EAGAIN after ") {
		t.Errorf("%s", got)
	}
	p := startJail(t, Config{
		Path: "/bin/sh",
		Args: []string{
			"sh",
			"-c",
			`f() { f | f & }; f; /bin/sleep 0.3; echo alive >&3; /bin/sleep 1000`,
		},
		Profile: Programs,
		Binds:   systemBinds(),
		Limits:  Limits{Processes: 40},
	})
	_ = p // the end of the test ends the jail
}

// TestALockOfTheHostsFileEndsWithTheJail checks that a lock ends with the jail. A bind exposes the
// inode itself, so a guest can lock it; SECURITY.md describes the consequences.
func TestALockOfTheHostsFileEndsWithTheJail(t *testing.T) {
	requireFull(t)
	name := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(name, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()

	binds := []Bind{{Source: name, Target: "/file"}}
	h := startHostile(t, Config{Binds: binds})
	h.expect("lock /file", "done")
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); !errors.Is(err, unix.EWOULDBLOCK) {
		t.Errorf("the guest's lock is not the host's: %v; correct SECURITY.md", err)
	}
	other := startHostile(t, Config{Binds: binds})
	other.expect("lock /file", "EAGAIN")

	if err := h.Kill(); err != nil {
		t.Fatal(err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		t.Errorf("the lock outlives the jail: %v", err)
	}
}
