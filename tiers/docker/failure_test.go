package docker_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/docker"
)

// broken runs a snippet during which the tier must break, with a typed error and within a minute. A
// caller that waits for the snippet's output passes stdout.
func broken(t *testing.T, b tiers.Sandbox, source string, stdout ...io.Writer) *tiers.BrokenError {
	t.Helper()
	begun := time.Now()
	r, err := b.Run(
		context.Background(), tiers.Job{Source: source, Stdout: io.MultiWriter(stdout...)},
	)
	var broke *tiers.BrokenError
	if !errors.As(err, &broke) {
		t.Fatalf("%v\n%+v", err, r)
	}
	if took := time.Since(begun); took > time.Minute {
		t.Errorf("it took %v", took)
	}
	t.Log(err)
	return broke
}

func TestDaemonStopsDuringASnippet(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	tier := behind(t, g)
	b := box(t, tier, tiers.Config{Limits: tiers.Limits{Wall: time.Minute}})
	run(t, b, "kept = 1")
	had := noting{box: b}
	had.note()
	running, isCut := make(chan struct{}, 1), make(chan struct{})
	go func() {
		defer close(isCut)
		<-running
		g.cut()
	}()
	broke := broken(t, b, "print('running', flush=True)\nwhile True: pass", tells(running))
	<-isCut
	if broke.Effects != tiers.EffectsRan || broke.Lost == nil ||
		!slices.Equal(broke.Lost.Snippets, []int{1, 2}) {
		t.Errorf("%+v", broke)
	}
	if broke := broken(t, b, "print(1)"); broke.Effects != tiers.EffectsNeverRan ||
		!strings.Contains(broke.Error(), "start the daemon") {
		t.Errorf("while it is gone: %+v", broke)
	}
	g.listen(t)
	if r := run(t, b, "print('kept' in globals())"); r.Stdout != "False\n" {
		t.Errorf("%q", r.Stdout)
	}
	had.note()
	if err := errors.Join(b.Close(), tier.Close()); err != nil {
		t.Error(err)
	}
	gone(t, had.ids...)
}

func TestDaemonHangsDuringASnippet(t *testing.T) {
	t.Parallel()
	g := newGate(t)
	tier := behind(t, g)
	b := box(t, tier, tiers.Config{Limits: tiers.Limits{Wall: soon}})
	run(t, b, "kept = 1")
	had := noting{box: b}
	had.note()
	g.freeze()
	broke := broken(t, b, "print(1)")
	if broke.Lost == nil || !strings.Contains(broke.Error(), "does not answer") {
		t.Errorf("%+v", broke)
	}
	g.thaw()
	if r := run(t, b, "print('kept' in globals())"); r.Stdout != "False\n" {
		t.Errorf("%q", r.Stdout)
	}
	had.note()
	if err := errors.Join(b.Close(), tier.Close()); err != nil {
		t.Error(err)
	}
	gone(t, had.ids...)
}

// soon is a wall limit that a short snippet never exhausts, even on a busy machine.
const soon = 3 * time.Second

// alone opens a session, and returns it with its container.
func alone(t *testing.T, limits tiers.Limits) (tiers.Sandbox, string) {
	t.Helper()
	b := box(t, usual(t, docker.Options{Warm: -1}), tiers.Config{Limits: limits})
	run(t, b, "kept = 1")
	return b, docker.ContainerOf(b)
}

func TestASnippetThatIsKilledCostsItselfAlone(t *testing.T) {
	t.Parallel()
	b, id := alone(t, tiers.Limits{Wall: soon})
	r := run(
		t, b, "while True:\n    try:\n        while True: pass\n    except BaseException: pass",
	)
	if r.Status != tiers.StatusLimit || r.Lost == nil || !slices.Equal(r.Lost.Snippets, []int{2}) {
		t.Errorf("%s %+v", r.Status, r.Lost)
	}
	if r := run(t, b, "print(kept)"); r.Stdout != "1\n" || docker.ContainerOf(b) != id {
		t.Errorf("%q, in container %s after %s", r.Stdout, docker.ContainerOf(b), id)
	}
}

func TestContainerIsKilled(t *testing.T) {
	t.Parallel()
	b, id := alone(t, tiers.Limits{})
	running, isKilled := make(chan struct{}, 1), make(chan struct{})
	go func() {
		defer close(isKilled)
		<-running
		daemonCall(t, http.MethodPost, "/containers/"+id+"/kill", nil)
	}()
	broke := broken(
		t, b, "import time\nprint('running', flush=True)\ntime.sleep(20)", tells(running),
	)
	<-isKilled
	if broke.Lost == nil || !slices.Equal(broke.Lost.Snippets, []int{1, 2}) ||
		!strings.Contains(broke.Error(), "the container was killed") {
		t.Errorf("%+v %+v", broke, broke.Lost)
	}
	if r := run(t, b, "print('kept' in globals())"); r.Stdout != "False\n" {
		t.Errorf("%q", r.Stdout)
	}
}

func TestContainerIsRemoved(t *testing.T) {
	t.Parallel()
	b, id := alone(t, tiers.Limits{})
	daemonCall(t, http.MethodDelete, "/containers/"+id+"?force=1", nil)
	if broke := broken(t, b, "print(1)"); broke.Lost == nil {
		t.Errorf("%+v", broke)
	}
	if r := run(t, b, "print('kept' in globals())"); r.Stdout != "False\n" {
		t.Errorf("%q", r.Stdout)
	}
}

// pause freezes a container. The kernel cannot freeze a process that waits for a disk, so on a busy
// machine pause may have to try again.
func pause(t *testing.T, id string) {
	t.Helper()
	for attempt := 1; ; attempt++ {
		err := tryDaemonCall(t, http.MethodPost, "/containers/"+id+"/pause", nil)
		switch {
		case err == nil:
			return
		case attempt == 10 || !strings.Contains(err.Error(), "unable to freeze"):
			t.Fatal(err)
		}
		time.Sleep(time.Second)
	}
}

func TestContainerIsPaused(t *testing.T) {
	t.Parallel()
	b, id := alone(t, tiers.Limits{Wall: soon})
	pause(t, id)
	if broke := broken(t, b, "print(1)"); broke.Lost == nil ||
		!strings.Contains(broke.Error(), "the container was paused") {
		t.Errorf("%+v", broke)
	}
	if r := run(t, b, "print('kept' in globals())"); r.Stdout != "False\n" {
		t.Errorf("%q", r.Stdout)
	}
}

func TestAWarmContainerThatDiedIsNotHandedOut(t *testing.T) {
	t.Parallel()
	tier := usual(t, docker.Options{Warm: 1})
	for _, wait := range []bool{true, false} { // the tier has noticed the end already, or not yet
		if err := tier.Warm(t.Context()); err != nil {
			t.Fatal(err)
		}
		for _, id := range tier.Waiting() {
			daemonCall(t, http.MethodPost, "/containers/"+id+"/kill", nil)
		}
		if wait {
			time.Sleep(200 * time.Millisecond)
		}
		b := box(t, tier, tiers.Config{})
		if r := run(t, b, "print(1)"); r.Stdout != "1\n" || r.Lost != nil {
			t.Errorf("%+v", r)
		}
		if err := b.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestOutOfMemoryDiffersFromACrash(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, source string
		status       tiers.Status
	}{
		{"memory that is shared", "import mmap\nm = mmap.mmap(-1, 1 << 30)\n" +
			"for i in range(0, 1 << 30, 4096): m[i] = 1", tiers.StatusLimit},
		{"a fault", "import ctypes\nctypes.string_at(1)", tiers.StatusCrashed},
		{"an end by hand", "import os\nos._exit(137)", tiers.StatusCrashed},
		{"a signal by hand", "import os\nos.kill(os.getpid(), 9)", tiers.StatusCrashed},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			b := box(
				t, usual(t, docker.Options{Warm: -1}),
				tiers.Config{Limits: tiers.Limits{Memory: 128 << 20}},
			)
			run(t, b, "kept = 1")
			r := run(t, b, row.source)
			if r.Status != row.status ||
				r.Status == tiers.StatusLimit && r.Limit != tiers.LimitMemory || r.Lost == nil {
				t.Errorf("%s %q %+v %+v", r.Status, r.Limit, r.Exception, r.Lost)
			}
			if r := run(t, b, "print(1)"); r.Stdout != "1\n" || r.Lost != nil {
				t.Errorf("%+v", r)
			}
		})
	}
}

func TestFilesInMemoryAreBounded(t *testing.T) {
	t.Parallel()
	b := box(t, usual(t, docker.Options{Warm: -1}), tiers.Config{})
	for _, place := range []string{"/tmp", "/sandbox", "/dev/shm"} {
		t.Run(place, func(t *testing.T) {
			r := run(t, b, fmt.Sprintf(`import os
def full(make):
    try:
        while True: make()
    except OSError as e:
        return e.strerror
n = 0
def bytes_():
    global n
    n += 1
    with open(f'%[1]s/b{n}', 'wb') as f: f.write(bytes(1 << 20))
def files():
    global n
    n += 1
    open(f'%[1]s/f{n}', 'w').close()
print(full(bytes_), n <= 65)
for f in os.listdir('%[1]s'): os.remove('%[1]s/' + f)
n = 0
print(full(files), n <= 4096)
for f in os.listdir('%[1]s'): os.remove('%[1]s/' + f)`, place))
			if r.Stdout != "No space left on device True\nNo space left on device True\n" {
				t.Errorf("%s: %s %q %+v", place, r.Status, r.Stdout, r.Exception)
			}
		})
	}
	r := run(t, b, "open('/tmp/x', 'w').write('fine')\nprint(open('/tmp/x').read())")
	if r.Stdout != "fine\n" {
		t.Errorf("%q", r.Stdout)
	}
}

func TestImageThatIsMissingIsNamed(t *testing.T) {
	t.Parallel()
	usual(t, docker.Options{Warm: -1})
	id := "sha256:" + strings.Repeat("0", 64)
	tier := newTier(t, docker.Options{Host: os.Getenv("DOCKER_HOST"), Image: id, Warm: -1})
	for _, err := range []error{tier.Probe(t.Context()), openError(t, tier)} {
		if err == nil ||
			!strings.Contains(err.Error(), "has no image "+id+": build it with rlm images build") {
			t.Errorf("%v", err)
		}
	}
}

func openError(t *testing.T, tier *docker.Tier) error {
	t.Helper()
	b, err := tier.Open(t.Context(), tiers.Config{})
	if err == nil {
		_ = b.Close() // it should not have opened at all
	}
	return err
}

// abandonEnv makes the test binary a program that opens a sandbox and waits to be
// killed.
const abandonEnv = "RLM_DOCKER_ABANDON"

func abandon() {
	tier := docker.New(docker.Options{Host: os.Getenv("DOCKER_HOST")})
	ctx := context.Background()
	err := tier.Warm(ctx)
	if err == nil {
		var b tiers.Sandbox
		if b, err = tier.Open(ctx, tiers.Config{}); err == nil {
			fmt.Println("running", err)
			_, _ = b.Run(ctx, tiers.Job{Source: "while True: pass"}) // until it is killed
		}
	}
	fmt.Println("cannot run", err)
}

func TestContainersOfACrashedProgramAreRemoved(t *testing.T) {
	t.Parallel()
	tier := usual(t, docker.Options{Warm: -1})
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command(self)
	c.Env = append(os.Environ(), abandonEnv+"=1")
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
	if _, err := tier.RemoveAbandoned(t.Context()); err != nil {
		t.Error(err)
	}
	if len(containers(t, c.Process.Pid)) == 0 {
		t.Error("a container of a program that runs was removed")
	}
	if err := c.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = c.Wait() // it was killed
	run(t, box(t, tier, tiers.Config{}), "print(1)")
	if removed, err := tier.RemoveAbandoned(t.Context()); err != nil {
		t.Error(removed, err)
	}
	if left := containers(t, c.Process.Pid); len(left) > 0 {
		t.Errorf("containers are left: %v", left)
	}
}
