//go:build linux && (amd64 || arm64)

package jail

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// traces describes everything that leaking jails would leave on a host: descriptors and child
// processes of this process, cgroups and mounts.
func traces(t *testing.T) string {
	t.Helper()
	descriptors, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	children, err := filepath.Glob("/proc/self/task/*/children")
	if err != nil {
		t.Fatal(err)
	}
	var pids []string
	for _, name := range children {
		text, _ := os.ReadFile(name) // a thread may have ended
		pids = append(pids, strings.Fields(string(text))...)
	}

	mounts, err := readMounts()
	if err != nil {
		t.Fatal(err)
	}

	// Other programs on the host also mount file systems, so this keeps only the places where a
	// jail mounts.
	mounts = slices.DeleteFunc(mounts, func(m mounted) bool {
		name, _, _ := strings.Cut(strings.TrimPrefix(m.point, newRoot+"/"), "/")
		return m.point != newRoot && (!isBelow(newRoot, m.point) || !slices.Contains(jailed, name))
	})
	temporary, err := filepath.Glob(filepath.Join(os.TempDir(), "*"))
	if err != nil {
		t.Fatal(err)
	}

	return fmt.Sprintf("%d descriptors, children %v, cgroups %v, %d mounts, files %v",
		len(descriptors), pids, cgroupsOf(t, os.Getpid()), len(mounts), temporary)
}

// jailed are the folders of a jail's tree that are mount points.
var jailed = []string{"usr", "bin", "lib", "lib64", "proc", "dev", "tmp", "sandbox"}

// leavesNothing waits until there are no more traces than before. The kernel may take some time,
// but leaks persist.
func leavesNothing(t *testing.T, before, what string) {
	t.Helper()
	after := traces(t)
	for end := time.Now().Add(time.Minute); after != before && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond)
		after = traces(t)
	}
	if after != before {
		t.Errorf("%s leaves %s; before: %s", what, after, before)
	}
}

// cgroupsOf lists the groups created by a launcher.
func cgroupsOf(t *testing.T, pid int) []string {
	t.Helper()
	p, err := findCgroupParents()
	if err != nil {
		return nil
	}

	var all []string
	for _, parent := range p.folders {
		dirs, err := filepath.Glob(fmt.Sprintf("%s/%s%d-*", parent, cgroupPrefix(), pid))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, dirs...)
	}

	return all
}

func TestFailureAtAnyStepLeavesNothing(t *testing.T) {
	requireFull(t)
	t.Setenv("TMPDIR", t.TempDir()) // other processes have files in the usual folder

	// From now on, all files that the runtime opens only once are open.
	if err := startJail(t, Config{Worker: "echo"}).Kill(); err != nil {
		t.Fatal(err)
	}
	before := traces(t)
	for _, class := range []Class{Full, Nested} {
		for _, step := range []string{
			"cgroup", "spawn", "adopt", "init", "mounts", "guest", "attest", "go",
		} {
			if class == Nested && step == "mounts" {
				continue
			}
			cfg := Config{
				Worker: "echo", MinClass: class, Profile: Programs, Binds: systemBinds(),
				AllowSampled: true,
			}
			if class == Nested {
				cfg.Off = Namespaces
			}
			p, err := startFailing(t.Context(), cfg, step)
			if err == nil {
				t.Errorf("class %s starts in spite of a failure at %s, %v", class, step, p.Kill())
				continue
			}

			if !strings.Contains(err.Error(), errInjected.Error()) {
				t.Errorf("class %s at %s: %v", class, step, err)
			}
			leavesNothing(t, before, fmt.Sprintf("class %s that fails at %s", class, step))
		}
	}
}

func TestStartThatIsCancelledLeavesNothing(t *testing.T) {
	requireFull(t)
	t.Setenv("TMPDIR", t.TempDir()) // other processes have files in the usual folder
	before := traces(t)
	for i := range 20 {
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i)*2*time.Millisecond)
		p, err := Start(ctx, Config{Worker: "echo"})
		if err == nil {
			err = p.Kill()
		} else if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("after %d ms: %v", 2*i, err)
		}

		cancel()
		if err == nil {
			continue
		}

		leavesNothing(t, before, fmt.Sprintf("a start that is cancelled after %d ms", 2*i))
	}
}

// launcher is the environment variable that turns this test binary into a launcher, which a test
// kills.
const launcher = "JAIL_TEST_LAUNCHER"

// TestLauncher is not a test, but the launcher that TestDeathOfTheLauncherLeavesNothing runs.
func TestLauncher(t *testing.T) {
	kind := os.Getenv(launcher)
	if kind == "" {
		t.Skip("it is run by another test")
	}
	cfg := Config{Profile: Programs, Binds: systemBinds()}
	if kind == string(Nested) {
		cfg.MinClass, cfg.Off = Nested, Namespaces
	}
	h := startHostile(t, cfg)
	h.expect("children 5", "done")
	fmt.Println("ready", h.cmd.Process.Pid)
	select {}
}

func TestDeathOfTheLauncherLeavesNothing(t *testing.T) {
	requireFull(t)
	for _, kind := range []Class{Full, Nested} {
		t.Run(string(kind), func(t *testing.T) { dies(t, kind) })
	}
}

func dies(t *testing.T, kind Class) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self, "-test.run=^TestLauncher$", "-test.v")
	c.Env = append(os.Environ(), launcher+"="+string(kind))
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	said := ""
	buf := make([]byte, 1<<10)
	for !strings.Contains(said, "ready ") || !strings.HasSuffix(said, "\n") {
		n, err := out.Read(buf)
		said += string(buf[:n])
		if err != nil {
			t.Fatalf("the launcher said %q, %v", said, err)
		}
	}

	_, number, _ := strings.Cut(said, "ready ")
	pid, err := strconv.Atoi(strings.TrimSpace(number))
	if err != nil {
		t.Fatal(err)
	}
	tree := treeOf(t, pid)
	if len(tree) < 7 {
		t.Errorf("the jail has only the processes %v", tree)
	}
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait() // it was killed
	gone := func() bool {
		for pid, start := range tree {
			if readStartTime(pid) == start && !isZombie(pid) {
				return false
			}
		}
		return true
	}
	for end := time.Now().Add(time.Minute); !gone(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("processes are left")
		}
	}

	// The next start removes the groups.
	if err := startJail(t, Config{Worker: "echo"}).Kill(); err != nil {
		t.Error(err)
	}
	if left := cgroupsOf(t, c.Process.Pid); len(left) != 0 {
		t.Errorf("cgroups %v are left", left)
	}
}

// treeOf returns a process and its descendants, with their start times.
func treeOf(t *testing.T, root int) map[int]string {
	t.Helper()
	names, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}
	parents := map[int]int{}
	for _, name := range names {
		if pid, err := strconv.Atoi(filepath.Base(name)); err == nil {
			parents[pid] = readParent(pid)
		}
	}

	tree := map[int]string{root: readStartTime(root)}
	for pid := range parents {
		if isDescendant(parents, pid, root) {
			tree[pid] = readStartTime(pid)
		}
	}

	return tree
}

func TestNestedHoldsWithoutNamespaces(t *testing.T) {
	p, err := Start(t.Context(), Config{Worker: "echo", MinClass: Nested, Off: Namespaces})
	requireTier(t, err == nil, fmt.Sprintf("jails of class nested (%v)", err))
	if err := p.Kill(); err != nil {
		t.Error(err)
	}
	h := startHostile(t, Config{MinClass: Nested, Off: Namespaces})
	if a := h.Attestation(); a.Class != Nested || !a.holds(Landlock|Seccomp|Rlimits|Privileges) ||
		a.holds(Namespaces) {
		t.Errorf("%+v", a)
	}

	outside := filepath.Join(t.TempDir(), "outside")
	for attempt, want := range map[string]string{
		"read /etc/passwd": "EACCES", "list /": "EACCES", "write " + outside: "EACCES",
		"read /proc/self/environ": "EACCES",
		"inet":                    "EPERM", "unix": "EPERM", "ptrace": "EPERM",
		"execute /bin/true":                   "done",
		"signal " + strconv.Itoa(os.Getpid()): "EPERM", "signal 1": "EPERM", "kill_parent": "EPERM",
		"list_threads": "EACCES",
	} {
		h.expect(attempt, want)
	}

	h.expect("children 3", "done")
	tree := treeOf(t, h.cmd.Process.Pid)
	if len(tree) < 5 {
		t.Errorf("the jail has only the processes %v", tree)
	}
	if err := h.Kill(); err != nil {
		t.Error(err)
	}

	for pid, start := range tree {
		if readStartTime(pid) == start && !isZombie(pid) {
			t.Errorf("process %d is left", pid)
		}
	}
}

func TestNestedSignalsAndSpares(t *testing.T) {
	h := startHostile(t, Config{MinClass: Nested, Off: Namespaces})
	h.expect("children 3", "done")
	if err := h.KillExcept(t.Context(), h.Attestation().PID); err != nil {
		t.Fatal(err)
	}
	h.expect("pid", strconv.Itoa(h.Attestation().PID))
	if err := h.Signal(t.Context(), syscall.SIGKILL); err != nil && !errors.Is(err, errEnded) {
		t.Fatal(err)
	}
	if e := wait(t, h.Process); e.Signal != syscall.SIGKILL {
		t.Errorf("%+v", e)
	}
}

// TestRefusedNamespacesLeadToNested runs itself in an environment where no namespaces can be
// created.
func TestRefusedNamespacesLeadToNested(t *testing.T) {
	const inside = "JAIL_TEST_REFUSED"
	if os.Getenv(inside) != "" {
		if _, err := Start(t.Context(), Config{Worker: "echo"}); err == nil {
			t.Error("class full starts without namespaces")
		}
		r := Probe(t.Context())
		if r.Class != Nested || r.UserNamespaces || len(r.Advice) < 2 {
			t.Errorf("%+v", r)
		}

		return
	}

	requireRoot(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}

	// The limit applies to a user namespace, so the host's limit is unchanged.
	c := exec.Command("/bin/sh", "-c",
		`echo 0 >/proc/sys/user/max_user_namespaces && exec "$0" -test.run='^TestRefused'`, self)
	c.Env = append(os.Environ(), inside+"=1")
	c.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:                 syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
		UidMappings:                []syscall.SysProcIDMap{{HostID: 0, Size: 300000}},
		GidMappings:                []syscall.SysProcIDMap{{HostID: 0, Size: 300000}},
		GidMappingsEnableSetgroups: true,
	}

	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

// TestAsOrdinaryUser repeats the other tests as a user other than root.
func TestAsOrdinaryUser(t *testing.T) {
	requireRoot(t)
	if testing.Short() {
		t.Skip("it runs all the others")
	}
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}

	// Only root can read the binary at its own path.
	binary := filepath.Join(t.TempDir(), "test")
	copyFile(t, binary, self)

	for dir := filepath.Dir(binary); dir != os.TempDir() && dir != "/"; dir = filepath.Dir(dir) {
		if err := os.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}

	c := exec.Command(binary, "-test.timeout=8m")
	c.Dir = "/"
	c.Env = append(os.Environ(), "TMPDIR=/tmp", "RLM_REQUIRE_TIERS=")
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, out)
	}
}

func copyFile(t *testing.T, to, from string) {
	t.Helper()
	r, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()

	w, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(w, r); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}

// BenchmarkStart measures the time to start a jail with an attested guest, and to end it.
func BenchmarkStart(b *testing.B) {
	for _, c := range []struct {
		name string
		cfg  Config
	}{
		{"worker", Config{Worker: "echo"}},
		{"worker-nested", Config{Worker: "echo", MinClass: Nested, Off: Namespaces}},
		{"worker-nocgroup", Config{Worker: "echo", Off: Cgroup}},
		{"program", Config{
			Path: "/bin/true", Args: []string{"true"}, Profile: Programs, Binds: systemBinds(),
			AllowSampled: true,
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			var started time.Duration
			for b.Loop() {
				begin := time.Now()
				p, err := Start(b.Context(), c.cfg)
				if err != nil {
					b.Fatal(err)
				}
				started += time.Since(begin)
				if err := p.Kill(); err != nil {
					b.Fatal(err)
				}
			}

			b.ReportMetric(float64(started.Microseconds())/float64(b.N)/1000, "ms/start")
		})
	}
}
