//go:build linux

package docker_test

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/docker"
)

func TestMountsAreReadOnly(t *testing.T) {
	t.Parallel()
	dir := openFolder(t)
	file := filepath.Join(dir, "data.csv")
	if err := os.WriteFile(file, []byte("a,b\n1,2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, 0o666); err != nil {
		t.Fatal(err)
	}
	tier := usual(t, docker.Options{Warm: -1})
	b := box(
		t,
		tier,
		tiers.Config{
			Mounts: []tiers.Mount{
				{Source: dir, Target: "/data"},
				{Source: file, Target: "/one.csv"},
			},
		},
	)
	r := run(t, b, `import pandas as pd
print(pd.read_csv('/data/data.csv').b.sum(), open('/one.csv').read(3))
for attempt in (lambda: open('/data/new', 'w'), lambda: open('/one.csv', 'a'), lambda: open('/data/data.csv', 'r+')):
    try: print(attempt())
    except OSError as e: print(e.strerror)`)
	if r.Stdout != "2 a,b\nRead-only file system\nRead-only file system\nRead-only file system\n" {
		t.Errorf("%q %+v", r.Stdout, r.Exception)
	}
	for source, target := range map[string]string{
		dir: "/usr/x", "/no/such/place": "/data", "/": "/data", "/proc/self": "/data",
		"/etc/hostname": "/data", "/dev/null": "/data",
		file: "relative", dir + "/.": "/data/../etc", filepath.Dir(dir): "/tmp/x",
	} {
		t.Run(fmt.Sprintf("%.60s", source), func(t *testing.T) {
			cfg := tiers.Config{Mounts: []tiers.Mount{{Source: source, Target: target}}}
			if b, err := tier.Open(t.Context(), cfg); err == nil {
				t.Errorf("%s was mounted at %s", source, target)
				_ = b.Close() // as above
			}
		})
	}
	both := []tiers.Mount{{Source: dir, Target: "/data"}, {Source: file, Target: "/data"}}
	if _, err := tier.Open(t.Context(), tiers.Config{Mounts: both}); err == nil ||
		!strings.Contains(err.Error(), "cannot mount two files or folders at") {
		t.Errorf("%v", err)
	}
}

// openFolder returns a new folder that every user may enter.
func openFolder(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for _, folder := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(folder, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// listen creates a socket to which every user may connect. Connections are counted.
func listen(t *testing.T, name string) <-chan struct{} {
	t.Helper()
	l, err := net.Listen("unix", name)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(name, 0o777); err != nil {
		t.Fatal(err)
	}
	came, ended := make(chan struct{}, 10), make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_ = conn.Close()
			came <- struct{}{}
		}
	}()
	t.Cleanup(func() {
		_ = l.Close() // ends the goroutine
		<-ended
	})
	return came
}

func TestAMountedFolderLeadsToNoProgram(t *testing.T) {
	t.Parallel()
	tier := usual(t, docker.Options{Warm: -1})
	dir := openFolder(t)
	came := listen(t, filepath.Join(dir, "socket"))
	mounts := func(dir string) tiers.Config {
		return tiers.Config{Mounts: []tiers.Mount{{Source: dir, Target: "/data"}}}
	}
	if b, err := tier.Open(t.Context(), mounts(dir)); err == nil ||
		!strings.Contains(err.Error(), "through which snippets could reach the host") {
		t.Errorf("a folder with a socket: %v", err)
		if b != nil {
			_ = b.Close() // as above
		}
	}
	other := openFolder(t)
	if err := unix.Mkfifo(filepath.Join(other, "pipe"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(other, "pipe"), 0o666); err != nil { // whatever the umask
		t.Fatal(err)
	}
	if b, err := tier.Open(t.Context(), mounts(other)); err == nil ||
		!strings.Contains(err.Error(), "through which snippets could reach the host") {
		t.Errorf("a folder with a pipe: %v", err)
		if b != nil {
			_ = b.Close() // as above
		}
	}
	// A snippet can see a socket created later, but cannot connect to it.
	later := openFolder(t)
	b := box(t, tier, mounts(later))
	came2 := listen(t, filepath.Join(later, "socket"))
	r := run(t, b, `import asyncio, multiprocessing, os, socket
print(os.path.exists('/data/socket'))
def attempt(deed):
    try: print(deed())
    except OSError as e: print(type(e).__name__)
attempt(lambda: socket.socket(socket.AF_UNIX).connect('/data/socket'))
attempt(lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
attempt(lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM))
attempt(lambda: socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET))
a, b = socket.socketpair()
attempt(lambda: a.connect('/data/socket'))
b.close()
attempt(lambda: a.connect('/data/socket'))
attempt(lambda: a.sendto(b'x', '/data/socket'))
async def f(): return await asyncio.to_thread(lambda: 'threads')
print(await f())
x, y = multiprocessing.Pipe()
x.send('pipes')
print(y.recv())`)
	want := "True\n" + strings.Repeat("PermissionError\n", 4)
	if !strings.HasPrefix(r.Stdout, want) || !strings.HasSuffix(r.Stdout, "threads\npipes\n") {
		t.Errorf("%q %+v", r.Stdout, r.Exception)
	}
	select {
	case <-came:
		t.Error("a snippet reached the program behind a socket")
	case <-came2:
		t.Error("a snippet reached the program behind a socket that was made later")
	default:
	}
}

// TestCheckedFoldersAreTheMountedOnes checks that the start fails if a folder was replaced with a
// link after the check, as a user of the host could do.
func TestCheckedFoldersAreTheMountedOnes(t *testing.T) {
	t.Parallel()
	tier := usual(t, docker.Options{Warm: -1})
	dir := openFolder(t)
	place := filepath.Join(dir, "a place")
	if err := os.Mkdir(place, 0o755); err != nil { //nolint:gosec // every user may see it
		t.Fatal(err)
	}
	mounts := []tiers.Mount{{Source: place, Target: "/a place"}}
	if err := tier.StartBetween(t.Context(), mounts, func() {}); err != nil {
		t.Errorf("nothing was changed: %v", err)
	}
	err := tier.StartBetween(t.Context(), mounts, func() {
		if err := os.Rename(place, place+" no more"); err != nil {
			t.Error(err)
		}
		if err := os.Symlink("/etc", place); err != nil {
			t.Error(err)
		}
	})
	if err == nil ||
		!strings.Contains(err.Error(), "the file or folder at /a place was replaced") {
		t.Errorf("%v", err)
	}
}
