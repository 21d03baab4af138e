//go:build linux

package docker_test

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rlmhq/rlm/images"
	"github.com/rlmhq/rlm/internal/wall/dockerapi"
	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/docker"
	"github.com/rlmhq/rlm/tiers/tiertest"
)

// ownDaemon is a Docker daemon for this test alone, so the test may stop it.
type ownDaemon struct {
	dir, host string
	command   *exec.Cmd
	ended     chan struct{} // closed when it has ended; err is the reason
	err       error
}

// newDaemon starts a daemon and gives it the image.
func newDaemon(t *testing.T) *ownDaemon {
	t.Helper()
	usual(t, docker.Options{Warm: -1}) // containers work here
	for _, program := range []string{"dockerd", "docker"} {
		if _, err := exec.LookPath(program); err != nil {
			tiertest.Require(t, docker.Name, err)
		}
	}
	if os.Geteuid() != 0 {
		t.Skip("only root can start a daemon beside the one that is there")
	}
	dir, err := os.MkdirTemp( //nolint:usetesting // paths of sockets must be short
		"", "rlm-dockerd-",
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		unmount(t, dir)
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	d := &ownDaemon{dir: dir, host: "unix://" + filepath.Join(dir, "docker.sock")}
	d.start(t)
	t.Cleanup(func() { d.stop(t, syscall.SIGTERM) })
	recipe, err := images.Find("python")
	if err != nil {
		t.Fatal(err)
	}
	save := exec.CommandContext(t.Context(), "docker", "save", recipe.Name)
	load := exec.CommandContext(t.Context(), "docker", "load")
	load.Env = append(os.Environ(), "DOCKER_HOST="+d.host)
	if load.Stdin, err = save.StdoutPipe(); err != nil {
		t.Fatal(err)
	}
	if err := save.Start(); err != nil {
		t.Fatal(err)
	}
	out, err := load.CombinedOutput()
	if err := errors.Join(err, save.Wait()); err != nil {
		t.Fatalf("cannot give the daemon the image: %v\n%s", err, out)
	}
	return d
}

// start starts the daemon, or restarts it after stop, and waits until it answers.
func (d *ownDaemon) start(t *testing.T) {
	t.Helper()
	log, err := os.OpenFile(filepath.Join(d.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	d.command = exec.Command(
		"dockerd", "--host", d.host, "--data-root", filepath.Join(d.dir, "data"), "--exec-root",
		filepath.Join(d.dir, "exec"), "--pidfile", filepath.Join(d.dir, "pid"),
		"--bridge", "none", "--iptables=false", "--containerd-namespace", "rlm-test",
		"--containerd-plugins-namespace", "rlm-test-plugins",
	)
	d.command.Stdout, d.command.Stderr = log, log
	// The daemon gets a separate network: without a bridge, it would remove the other daemon's
	// bridge.
	d.command.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if err := d.command.Start(); err != nil {
		t.Fatal(err)
	}
	d.ended = make(chan struct{})
	go func(command *exec.Cmd, ended chan struct{}) {
		d.err = command.Wait()
		close(ended)
	}(d.command, d.ended)
	client, err := dockerapi.New(d.host)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	for {
		if _, err = client.Check(context.WithoutCancel(t.Context())); err == nil {
			return
		}
		select {
		case <-time.After(50 * time.Millisecond):
		case <-d.ended:
			t.Fatalf("the daemon did not start: %v\n%s", err, d.log(t))
		}
	}
}

// log returns the end of the daemon's log.
func (d *ownDaemon) log(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(d.dir, "log"))
	if err != nil {
		t.Error(err)
	}
	return string(text[max(0, len(text)-4000):])
}

// stop ends the daemon with a signal, and waits for the daemon and its containerd to end: the next
// daemon must not mistake the dying containerd for a live one.
func (d *ownDaemon) stop(t *testing.T, signal syscall.Signal) {
	t.Helper()
	note := filepath.Join(d.dir, "exec", "containerd", "containerd.pid")
	pid, err := os.ReadFile(note)
	if err != nil {
		t.Logf("its containerd is not its own: %v", err)
	}
	if err := d.command.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		t.Error(err)
	}
	<-d.ended
	if d.err != nil && signal == syscall.SIGTERM {
		t.Errorf("%v\n%s", d.err, d.log(t))
	}
	for len(pid) > 0 {
		stat, err := os.ReadFile(filepath.Join("/proc", strings.TrimSpace(string(pid)), "stat"))
		if err != nil || strings.Contains(string(stat), ") Z ") {
			_ = os.Remove(note) // a zombie looks alive, and perhaps nothing reaps it
			return
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// unmount removes the mounts that a killed daemon left below its folder.
func unmount(t *testing.T, dir string) {
	t.Helper()
	table, err := os.ReadFile("/proc/self/mounts")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(table), "\n") {
		if fields := strings.Fields(line); len(fields) > 1 &&
			strings.HasPrefix(fields[1], dir+"/") {
			// If a mount remains, the removal of the folder fails.
			_ = unix.Unmount(
				fields[1], unix.MNT_DETACH,
			)
		}
	}
}

// TestDaemonIsRestarted restarts a real daemon while sessions are alive, gracefully and by force.
// It checks that the sessions report their losses and continue, and that no containers remain.
func TestDaemonIsRestarted(t *testing.T) {
	t.Parallel()
	d := newDaemon(t)
	tier := docker.New(docker.Options{Host: d.host, Warm: -1})
	t.Cleanup(func() { _ = tier.Close() }) // as below
	busy := box(t, tier, tiers.Config{Limits: tiers.Limits{Wall: time.Minute}})
	idle := box(t, tier, tiers.Config{})
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGKILL} {
		for _, b := range []tiers.Sandbox{busy, idle} {
			if r := run(t, b, "kept = 1\nprint('kept')"); r.Stdout != "kept\n" {
				t.Fatalf("%+v", r)
			}
		}
		running, stopped := make(chan struct{}, 1), make(chan struct{})
		go func() {
			defer close(stopped)
			<-running
			d.stop(t, signal)
		}()
		_, err := busy.Run(
			t.Context(),
			tiers.Job{
				Source: "print('running', flush=True)\nwhile True: pass", Stdout: tells(running),
			},
		)
		<-stopped
		var broke *tiers.BrokenError
		if !errors.As(err, &broke) || broke.Effects != tiers.EffectsRan || broke.Lost == nil ||
			len(broke.Lost.Snippets) < 2 {
			t.Errorf("%v: %v", signal, err)
		}
		t.Log(err)
		if again := broken(t, busy, "print(1)"); again.Effects != tiers.EffectsNeverRan ||
			!strings.Contains(again.Error(), "start the daemon") {
			t.Errorf("%v, while it is gone: %v", signal, again)
		}
		d.start(t)
		if r := run(t, busy, "print('kept' in globals())"); r.Stdout != "False\n" {
			t.Errorf("%v: %+v", signal, r)
		}
		lost := broken(t, idle, "print(1)").Lost
		if lost == nil || len(lost.Snippets) < 2 {
			t.Errorf("%v: %+v", signal, lost)
		}
		if r := run(t, idle, "print('kept' in globals())"); r.Stdout != "False\n" {
			t.Errorf("%v: %+v", signal, r)
		}
	}
	if err := errors.Join(busy.Close(), idle.Close(), tier.Close()); err != nil {
		t.Error(err)
	}
	client, err := dockerapi.New(d.host)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	left, err := client.List(t.Context(), map[string]string{"rlm.tier": docker.Name})
	if err != nil || len(left) > 0 {
		t.Errorf("containers are left: %v %v", left, err)
	}
}
