//go:build unix

package local_test

import (
	"bufio"
	"context"
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

	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/internal/wall/jail"
	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/local"
	"github.com/rlmhq/rlm/tiers/tiertest"
)

// abandonEnv makes the test binary a program that opens a sandbox and waits to be
// killed.
const abandonEnv = "RLM_LOCAL_ABANDON"

const daemon = "import os\nif os.fork() == 0:\n    os.setsid()\n" +
	"    os.execv('/bin/sleep', ['sleep', '%s'])"

func abandon() {
	tier := local.New(
		local.Options{Python: os.Getenv("RLM_PYTHON"), Warm: 2, AllowSampled: true},
	)
	ctx := context.Background()
	err := tier.Warm(ctx)
	if err == nil {
		var box tiers.Sandbox
		if box, err = tier.Open(ctx, tiers.Config{}); err == nil {
			_, err = box.Run(ctx, tiers.Job{Source: fmt.Sprintf(daemon, os.Getenv(abandonEnv))})
		}
	}
	fmt.Println("running", err)
	select {}
}

func TestKilledParentLeavesNothing(t *testing.T) {
	usual(t) // the tier works here
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	mark := fmt.Sprintf("86397.%d", os.Getpid()) // unique to this test run
	c := exec.Command(self)
	c.Env = append(os.Environ(), abandonEnv+"="+mark)
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "running <nil>\n" {
		t.Errorf("%q %v", line, err)
	}
	eventually(
		t, "the daemon runs", func() bool { return len(processes("sleep\x00"+mark+"\x00")) == 1 },
	)
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, out) // until the child is dead
	_ = c.Wait()                    // it was killed
	eventually(
		t, "the daemon has ended",
		func() bool { return len(processes("sleep\x00"+mark+"\x00")) == 0 },
	)
	eventually(t, "nothing of the jails is left", func() bool {
		// Every start removes abandoned control groups.
		run(
			t,
			box(
				t, newTier(t, local.Options{Python: os.Getenv("RLM_PYTHON"), Warm: -1}),
				tiers.Config{},
			),
			"1",
		)
		return len(groups(c.Process.Pid)) == 0
	})
}

func eventually(t *testing.T, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("not so: %s", what)
		}
	}
}

// groups returns the control groups that a launcher created.
func groups(pid int) []string {
	var all []string
	_ = filepath.WalkDir(
		"/sys/fs/cgroup",
		func(path string, d os.DirEntry, err error) error { // without a folder, there are no groups
			if err == nil && d.IsDir() && strings.HasPrefix(d.Name(), "rlm-") &&
				strings.Contains(d.Name(), fmt.Sprintf("-%d-", pid)) {
				all = append(all, path)
			}
			return nil
		},
	)
	return all
}

// remains are the things that a process can leave behind.
type remains struct {
	descriptors              int
	groups, children, mounts []string
	files                    []string
}

func look(t *testing.T) remains {
	t.Helper()
	var r remains
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	mounts, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(mounts)) {
		if !strings.Contains(line, "docker") { // a daemon's containers come and go
			r.mounts = append(r.mounts, line)
		}
	}
	r.descriptors = len(entries)
	r.groups = groups(os.Getpid())
	tasks, _ := filepath.Glob("/proc/self/task/*/children") // the pattern is a constant
	for _, task := range tasks {
		pids, _ := os.ReadFile(task) // a thread that has ended has none
		r.children = append(r.children, strings.Fields(string(pids))...)
	}
	r.files, _ = filepath.Glob(os.TempDir() + "/*") // as above
	return r
}

func TestNothingIsLeft(t *testing.T) {
	skip.Short(t, "it runs many sessions")
	usual(t)
	t.Setenv("TMPDIR", t.TempDir()) // other processes' temporary files do not matter
	before := look(t)
	for name, use := range map[string]func(*testing.T, *local.Tier){
		"after Close": func(t *testing.T, tier *local.Tier) {
			t.Helper()
			b := box(t, tier, tiers.Config{})
			run(t, b, fmt.Sprintf(daemon, "86398"))
		},
		"after a crash": func(t *testing.T, tier *local.Tier) {
			t.Helper()
			run(t, box(t, tier, tiers.Config{}), "import os\nos.kill(-1, 9)")
		},
		"of an idle tier": func(t *testing.T, tier *local.Tier) {
			t.Helper()
			_ = tier.Warm(t.Context()) // checked below
		},
		"of openings that are cancelled": func(t *testing.T, tier *local.Tier) {
			t.Helper()
			for i := range 10 {
				ctx, cancel := context.WithTimeout(t.Context(),
					time.Duration(i*20)*time.Millisecond)
				if b, err := tier.Open(ctx,
					tiers.Config{Limits: tiers.Limits{Memory: 100 << 20}}); err == nil {
					_ = b.Close() // it was tested
				}
				cancel()
			}
		},
		"of runs that are cancelled": func(t *testing.T, tier *local.Tier) {
			t.Helper()
			b := box(t, tier, tiers.Config{})
			for i := range 5 {
				ctx, cancel := context.WithTimeout(t.Context(),
					time.Duration(i*10)*time.Millisecond)
				_, _ = b.Run(ctx, tiers.Job{Source: "while True: pass"}) // it fails
				cancel()
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Run(
				"use",
				func(t *testing.T) {
					use(t, newTier(t,
						local.Options{Python: os.Getenv("RLM_PYTHON")}))
				},
			)
			var more []string
			for range 1000 { // the kernel needs time
				if more = look(t).since(before); len(more) == 0 {
					return
				}
				time.Sleep(20 * time.Millisecond)
			}
			t.Errorf("it has left %q", more)
		})
	}
}

// since lists the remains that were added since an earlier state.
func (r remains) since(before remains) (more []string) {
	if r.descriptors > before.descriptors {
		more = append(
			more, fmt.Sprintf("%d descriptors after %d", r.descriptors, before.descriptors),
		)
	}
	for _, both := range [][2][]string{
		{r.groups, before.groups},
		{r.children, before.children},
		{r.mounts, before.mounts},
		{r.files, before.files},
	} {
		for _, one := range both[0] {
			if !slices.Contains(both[1], one) {
				more = append(more, one)
			}
		}
	}
	return more
}

// needCommonPython skips a test if no Python is accessible to all users, or fails it if the tier is
// required.
func needCommonPython(t *testing.T) {
	t.Helper()
	_, err := os.Stat("/usr/bin/python3")
	tiertest.Require(t, local.Name, err)
}

// TestNested checks that the tier works without namespaces, as inside most containers.
func TestNested(t *testing.T) {
	needCommonPython(t)
	tier := newTier(t, local.Options{Python: "/usr/bin/python3", Warm: -1, AllowNested: true})
	tier.Without(jail.Namespaces)
	b := box(t, tier, tiers.Config{Limits: tiers.Limits{Wall: 3 * time.Second}})
	if r := run(t, b, "x = 5\nprint(x)"); r.Stdout != "5\n" {
		t.Errorf("%s %q %+v", r.Status, r.Stdout, r.Exception)
	}
	time.Sleep(100 * time.Millisecond)
	source := "while True:\n    try:\n        while True: pass\n    except BaseException: pass"
	if r := run(t, b, source); r.Status != tiers.StatusLimit {
		t.Errorf("%s", r.Status)
	}
	if r := run(t, b, "print(x)"); r.Stdout != "5\n" {
		t.Errorf("the state was not kept: %s %q", r.Status, r.Stdout)
	}
}

// TestAsOrdinaryUser reruns tests as a user other than root.
func TestAsOrdinaryUser(t *testing.T) {
	skip.Short(t, "it runs many sessions")
	if os.Getuid() != 0 {
		t.Skip("it needs root to become somebody else")
	}
	needCommonPython(t)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "rlm-local") //nolint:usetesting // t.TempDir is root's alone
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	binary := filepath.Join(dir, "local.test")
	data, err := os.ReadFile(self)
	if err == nil {
		err = os.WriteFile(binary, data, 0o755) //nolint:gosec // another user runs it
	}
	if err == nil {
		err = os.Chmod(dir, 0o755) //nolint:gosec // as above
	}
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(
		binary, "-test.timeout=8m",
		"-test.run=^Test(OutputOfChildren|HostileHarm|NothingIsLeft|ThreadsCall.*|KilledParent.*|KernelMemory.*)$",
	)
	c.Dir = "/"
	c.Env = append(os.Environ(), "RLM_PYTHON=/usr/bin/python3", "HOME=/tmp", "TMPDIR=/tmp")
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	if out, err := c.CombinedOutput(); err != nil {
		t.Errorf("%v: %.3000s", err, out)
	}
}

// processes returns the processes of this machine whose arguments contain a string.
func processes(text string) []int {
	entries, _ := os.ReadDir("/proc") // no process, no match
	var found []int
	for _, e := range entries {
		line, _ := os.ReadFile("/proc/" + e.Name() + "/cmdline") // as above
		if pid, err := strconv.Atoi(e.Name()); err == nil && strings.Contains(string(line), text) {
			found = append(found, pid)
		}
	}
	return found
}
