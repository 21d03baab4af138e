//go:build linux && (amd64 || arm64)

package jail

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rlmhq/rlm/internal/snippet/frame"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m)
}

// requireTier skips a test if a requirement is not met, or fails the test if tier local is
// mandatory.
func requireTier(t *testing.T, ok bool, want string) {
	t.Helper()
	if ok {
		return
	}

	if slices.Contains(strings.Split(os.Getenv("RLM_REQUIRE_TIERS"), ","), "local") {
		t.Fatalf("RLM_REQUIRE_TIERS names local, and this test needs %s", want)
	}
	t.Skipf("needs %s", want)
}

func requireRoot(t *testing.T) {
	t.Helper()
	requireTier(t, os.Geteuid() == 0, "root")
}

func requireCgroup(t *testing.T) {
	t.Helper()
	_, err := findCgroupParents()
	requireTier(t, err == nil, fmt.Sprintf("a cgroup (%v)", err))
}

func requireFull(t *testing.T) {
	t.Helper()
	r := Probe(t.Context())
	requireTier(t, r.Class == Full, fmt.Sprintf("jails of class full (%v)", r.Advice))
}

// systemBinds returns the existing system folders for a guest with programs.
func systemBinds() []Bind {
	var binds []Bind
	for _, dir := range []string{"/usr", "/bin", "/lib", "/lib64"} {
		if _, err := os.Stat(dir); err == nil {
			binds = append(binds, Bind{Source: dir})
		}
	}

	return binds
}

// startJail starts a jail that ends with the test.
func startJail(t *testing.T, cfg Config) *Process {
	t.Helper()
	cfg.AllowSampled = true
	p, err := Start(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Kill(); err != nil {
			t.Error(err)
		}
		if t.Failed() {
			t.Logf("the guest wrote %q", p.Output())
		}
		noTrace(t, p)
	})

	return p
}

// noTrace fails the test if anything of a jail remains.
func noTrace(t *testing.T, p *Process) {
	t.Helper()
	if p.cgroup != nil {
		for _, dir := range p.cgroup.listDirs() {
			if _, err := os.Stat(dir); err == nil {
				t.Errorf("cgroup %s is left", dir)
			}
		}
	}

	if p.slot == nil {
		return
	}

	// By now, another test run may use the slot and have threads with this user.
	s, err := lockSlot(filepath.Dir(p.slot.file.Name()), p.slot.uid)
	if err != nil {
		t.Error(err)
	}
	if s == nil {
		return
	}

	// The previous launcher with this slot may have died just now, and its jail may still be
	// ending.
	n := countTasks(s.uid)
	for end := time.Now().Add(time.Minute); n != 0 && time.Now().Before(end); n = countTasks(s.uid) {
		time.Sleep(10 * time.Millisecond)
	}
	if n != 0 {
		t.Errorf("%d threads of user %d are left", n, s.uid)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

// hostileGuest is a guest that attacks the jail.
type hostileGuest struct {
	*Process
	t *testing.T
	r *frame.Reader
	w *frame.Writer
}

func startHostile(t *testing.T, cfg Config) *hostileGuest {
	t.Helper()
	if cfg.Profile == "" {
		cfg.Profile = Programs
		cfg.Binds = append(cfg.Binds, systemBinds()...)
	}

	cfg.Worker = "hostile"
	p := startJail(t, cfg)
	return &hostileGuest{
		Process: p,
		t:       t,
		r:       frame.NewReader(p.Conn(), 1<<16),
		w:       frame.NewWriter(p.Conn(), 1<<16),
	}
}

// try makes the guest try an attempt, and returns the outcome.
func (h *hostileGuest) try(attempt string) string {
	h.t.Helper()
	if err := h.Conn().SetDeadline(time.Now().Add(2 * time.Minute)); err != nil {
		h.t.Fatal(err)
	}
	if err := h.w.Write(0, []byte(attempt)); err != nil {
		h.t.Fatalf("%s: %v", attempt, err)
	}
	_, answer, err := h.r.Next()
	if err != nil {
		return "gone"
	}

	return string(answer)
}

func (h *hostileGuest) expect(attempt, want string) {
	h.t.Helper()
	if got := h.try(attempt); got != want {
		h.t.Errorf("%s: %s, want %s", attempt, got, want)
	}
}

// wait waits for the end of a jail.
func wait(t *testing.T, p *Process) Exit {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()

	e, err := p.Wait(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func TestWorkerTalksAndEnds(t *testing.T) {
	requireFull(t)
	p := startJail(t, Config{Worker: "echo"})
	if _, err := io.WriteString(p.Conn(), "hello"); err != nil {
		t.Fatal(err)
	}
	answer := make([]byte, 5)
	if _, err := io.ReadFull(p.Conn(), answer); err != nil || string(answer) != "hello" {
		t.Fatalf("%q, %v", answer, err)
	}
	if err := p.conn.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if e := wait(t, p); e != (Exit{Code: 7}) {
		t.Errorf("%+v", e)
	}
}

func TestProgramRunsAndItsOutputIsKept(t *testing.T) {
	requireFull(t)
	p := startJail(t, Config{
		Path:    "/bin/sh",
		Args:    []string{"sh", "-c", "echo out; echo err >&2; echo $A >&3; pwd; exit 3"},
		Env:     []string{"A=b"},
		Profile: Programs,
		Binds:   systemBinds(),
	})
	said, err := io.ReadAll(p.Conn())
	if err != nil || string(said) != "b\n" {
		t.Errorf("%q, %v", said, err)
	}
	if e := wait(t, p); e != (Exit{Code: 3}) {
		t.Errorf("%+v", e)
	}
	if out := string(p.Output()); out != "out\nerr\n/sandbox\n" {
		t.Errorf("%q", out)
	}
}

func TestProgramThatIsNotThere(t *testing.T) {
	requireFull(t)
	p := startJail(t, Config{Path: "/none", Args: []string{"none"}, Profile: Programs})
	e, wrote := wait(t, p), string(p.Output())
	if e.Code != 127 || !strings.Contains(wrote, "cannot execute /none: no such file") {
		t.Errorf("%+v, %q", e, p.Output())
	}
}

func TestOutputIsBounded(t *testing.T) {
	requireFull(t)
	p := startJail(t, Config{Worker: "talk"})
	if e := wait(t, p); e.Code != 0 {
		t.Errorf("%+v", e)
	}
	if n := len(p.Output()); n < 2*tailHalf || n > 2*tailHalf+100 {
		t.Errorf("%d bytes were kept", n)
	}
}

func TestPanicOfAWorkerIsAnExitCode(t *testing.T) {
	requireFull(t)
	p := startJail(t, Config{Worker: "panic"})
	e, wrote := wait(t, p), string(p.Output())
	if e.Code != 2 || e.OOM || !strings.Contains(wrote, "as it should") {
		t.Errorf("%+v, %q", e, p.Output())
	}
}

func TestContextKills(t *testing.T) {
	requireFull(t)
	ctx, cancel := context.WithCancel(t.Context())
	p, err := Start(ctx, Config{Worker: "echo"})
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if e := wait(t, p); !e.Killed {
		t.Errorf("%+v", e)
	}
	if err := p.Kill(); err != nil {
		t.Error(err)
	}
	noTrace(t, p)
}

func TestKillTwiceAndAfterTheEnd(t *testing.T) {
	requireFull(t)
	p := startJail(t, Config{Worker: "echo"})
	for range 3 {
		if err := p.Kill(); err != nil {
			t.Error(err)
		}
	}

	if err := p.Signal(t.Context(), syscall.SIGINT); !errors.Is(err, errEnded) {
		t.Errorf("a jail that has ended can be signalled, or gives %v", err)
	}
	short, cancel := context.WithTimeout(t.Context(), time.Nanosecond)
	defer cancel()

	if _, err := p.Wait(short); err != nil {
		t.Errorf("a jail that has ended must be waited for: %v", err)
	}
}

func TestWaitHasADeadline(t *testing.T) {
	requireFull(t)
	p := startJail(t, Config{Worker: "echo"})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()

	if _, err := p.Wait(ctx); err == nil {
		t.Error("no error")
	}
}

func TestSignalReachesAllButTheInit(t *testing.T) {
	requireFull(t)
	p := startJail(t, Config{
		Path: "/bin/sh",
		Args: []string{
			"sh", "-c",
			`trap "echo caught >&3; exit 5" INT; echo ready >&3; while :; do /bin/sleep 0.05; done`,
		},
		Profile: Programs,
		Binds:   systemBinds(),
	})
	ready := make([]byte, 6)
	if _, err := io.ReadFull(p.Conn(), ready); err != nil {
		t.Fatal(err)
	}
	if err := p.Signal(t.Context(), syscall.SIGINT); err != nil {
		t.Fatal(err)
	}
	if said, err := io.ReadAll(p.Conn()); err != nil || string(said) != "caught\n" {
		t.Errorf("%q, %v", said, err)
	}
	if e := wait(t, p); e.Code != 5 {
		t.Errorf("%+v", e)
	}
}

func TestKillExceptSparesOne(t *testing.T) {
	requireFull(t)
	h := startHostile(t, Config{})
	h.expect("children 10", "done")
	before := childrenOf(t, h.Process)
	if err := h.KillExcept(t.Context(), h.Attestation().PID); err != nil {
		t.Fatal(err)
	}
	h.expect("pid", strconv.Itoa(h.Attestation().PID))

	for end := time.Now().Add(time.Minute); childrenOf(t, h.Process) > 1; {
		if time.Now().After(end) {
			t.Fatalf("%d processes, %d before", childrenOf(t, h.Process), before)
		}
		time.Sleep(time.Millisecond)
	}
}

// childrenOf counts the living processes below the init, from outside the jail.
func childrenOf(t *testing.T, p *Process) int {
	t.Helper()
	parents := map[int]int{}
	names, err := filepath.Glob("/proc/[0-9]*")
	if err != nil {
		t.Fatal(err)
	}

	for _, name := range names {
		if pid, err := strconv.Atoi(filepath.Base(name)); err == nil {
			parents[pid] = readParent(pid)
		}
	}

	count := 0
	for pid := range parents {
		if isDescendant(parents, pid, p.cmd.Process.Pid) && !isZombie(pid) {
			count++
		}
	}

	return count
}

func TestOrphansAreReaped(t *testing.T) {
	requireFull(t)
	h := startHostile(t, Config{})
	h.expect("orphans", "done")

	for end := time.Now().Add(time.Minute); ; time.Sleep(5 * time.Millisecond) {
		tasks, err := os.ReadFile(fmt.Sprintf("/proc/%[1]d/task/%[1]d/children", h.cmd.Process.Pid))
		if err == nil && len(strings.Fields(string(tasks))) <= 1 {
			return
		}

		if time.Now().After(end) {
			t.Fatalf("the init has the children %q, %v", tasks, err)
		}
	}
}

func TestStartRefuses(t *testing.T) {
	bind := func(binds ...Bind) Config { return Config{Worker: "echo", Binds: binds} }
	for name, cfg := range map[string]Config{
		"nothing to run":         {},
		"two things to run":      {Path: "/bin/true", Args: []string{"true"}, Worker: "echo"},
		"an unknown worker":      {Worker: "none"},
		"an unknown profile":     {Worker: "echo", Profile: "none"},
		"an unknown class":       {Worker: "echo", MinClass: "none"},
		"a program that cannot":  {Path: "/bin/true", Args: []string{"true"}},
		"a relative program":     {Path: "true", Args: []string{"true"}, Profile: Programs},
		"no arguments":           {Path: "/bin/true", Profile: Programs},
		"a relative bind":        bind(Bind{Source: "usr"}),
		"a bind that climbs":     bind(Bind{Source: "/usr", Target: "/a/../../b"}),
		"a bind over the root":   bind(Bind{Source: "/usr", Target: "/"}),
		"a bind over /proc":      bind(Bind{Source: "/usr", Target: "/proc"}),
		"a bind over /sandbox":   bind(Bind{Source: "/usr", Target: "/sandbox"}),
		"a bind twice":           bind(Bind{Source: "/usr"}, Bind{Source: "/bin", Target: "/usr"}),
		"a bind of nothing":      bind(Bind{Source: "/none"}),
		"a bind of a device":     bind(Bind{Source: "/dev/null", Target: "/null"}),
		"a plan that is too big": {Worker: "echo", Env: []string{strings.Repeat("x", maxMessage)}},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Start(t.Context(), cfg)
			if err == nil {
				t.Errorf("started, %v", p.Kill())
			} else if !strings.HasPrefix(err.Error(), "cannot start a jail") {
				t.Error(err)
			}
		})
	}
}

func TestBindOfAPrivateFolder(t *testing.T) {
	requireFull(t)
	private := t.TempDir() // other users cannot enter the parent folders
	if err := os.WriteFile(private+"/file", []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	writable := private + "/writable"
	if err := os.Mkdir(writable, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(writable, 0o777); err != nil {
		t.Fatal(err)
	}
	h := startHostile(t, Config{Binds: []Bind{
		{Source: private, Target: "/data/in"},
		{Source: writable, Target: "/out", Writable: true},
		{Source: private + "/file", Target: "/single"},
	}})
	h.expect("read /data/in/file", "done")
	h.expect("read /single", "done")
	h.expect("write /data/in/file", "EROFS")
	h.expect("write /data/in/writable/file", "EROFS")
	h.expect("write /out/file", "done")
	h.expect("script /out/script", "EACCES")
}

func TestProbeReportsFull(t *testing.T) {
	requireFull(t)
	r := Probe(t.Context())
	if r.LandlockABI == 0 || !r.UserNamespaces || len(r.Layers) != allLayers {
		t.Errorf("%+v", r)
	}
	if r.CgroupVersion == 0 && len(r.Advice) == 0 {
		t.Error("no advice about the cgroup")
	}
}
