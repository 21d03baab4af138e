package docker_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm/internal/snippet/outfiles"
	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/docker"
)

func gather(t *testing.T, b tiers.Sandbox, dir string) (tiers.Collected, error) {
	t.Helper()
	c, ok := b.(tiers.Collector)
	if !ok {
		t.Fatal("it is no Collector")
	}
	return c.Collect(t.Context(), dir)
}

func TestFilesComeBack(t *testing.T) {
	t.Parallel()
	b := box(t, usual(t, docker.Options{Warm: -1}), tiers.Config{Out: true})
	dir := filepath.Join(t.TempDir(), "files")
	run(t, b, `import os
os.makedirs('/out/d/e')
open('/out/a.txt', 'w').write('text')
open('/out/d/e/big', 'wb').write(bytes(5 << 20))
os.symlink('/etc/passwd', '/out/link')
import socket
socket.socket(socket.AF_UNIX).bind('/out/socket')
os.link('/out/a.txt', '/out/hard')
kept = 1`)
	got, err := gather(t, b, dir)
	if err != nil || got.Files != 2 || got.Bytes != 4+5<<20 || len(got.Refused) != 2 {
		t.Errorf("%+v %v", got, err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "a.txt")); string(text) != "text" {
		if alias, err2 := os.ReadFile(filepath.Join(dir, "hard")); string(
			alias,
		) != "text" { // the first of two names is the file
			t.Errorf("%q %v %q %v", text, err, alias, err2)
		}
	}
	if r := run(t, b, "print(kept, len(os.listdir('/out')))"); r.Stdout != "1 5\n" ||
		r.Lost != nil {
		t.Errorf("%q %+v", r.Stdout, r.Lost)
	}
	if again, err := gather(t, b, dir); err != nil || again.Files != 0 {
		t.Errorf("existing files were replaced: %+v %v", again, err)
	}
}

func TestPackingThatIsForgedHarmsNobody(t *testing.T) {
	t.Parallel()
	b := box(t, usual(t, docker.Options{Warm: -1}), tiers.Config{Out: true})
	top := t.TempDir()
	run(t, b, `import io, tarfile
def forged(fileobj=None, **k):
    class T:
        def __enter__(self): return self
        def __exit__(self, *a): pass
        def gettarinfo(self, *a):
            with real(fileobj=fileobj, mode='w|') as t:
                for name in ('../escape', '/tmp/rlm-escape', 'fine'):
                    info = tarfile.TarInfo(name)
                    info.size = 1
                    t.addfile(info, io.BytesIO(b'x'))
                info = tarfile.TarInfo('link')
                info.type, info.linkname = tarfile.SYMTYPE, '..'
                t.addfile(info)
                info = tarfile.TarInfo('link/escape')
                info.size = 1
                t.addfile(info, io.BytesIO(b'x'))
    return T()
real, tarfile.open = tarfile.open, forged`)
	got, err := gather(t, b, filepath.Join(top, "out"))
	if err != nil || got.Files != 2 || len(got.Refused) != 3 {
		t.Errorf("%+v %v", got, err)
	}
	entries, err := os.ReadDir(top)
	if err != nil || len(entries) != 1 {
		t.Errorf("%v %v", entries, err)
	}
	if _, err := os.Lstat("/tmp/rlm-escape"); err == nil {
		t.Error("a file was written outside")
	}
	run(t, b, "tarfile.open = lambda *a, **k: 1 / 0")
	if _, err := gather(t, b, filepath.Join(top, "second")); err == nil ||
		!strings.Contains(err.Error(), "ZeroDivisionError") {
		t.Errorf("%v", err)
	}
	if r := run(t, b, "print('alive')"); r.Stdout != "alive\n" {
		t.Errorf("%q", r.Stdout)
	}
}

// TestAForgedHoleFillsNoDisk checks that the host refuses a sparse file that takes a few bytes in
// the stream but would take nearly 2^63 bytes on the host's disk.
func TestAForgedHoleFillsNoDisk(t *testing.T) {
	t.Parallel()
	b := box(t, usual(t, docker.Options{Warm: -1}), tiers.Config{Out: true})
	run(t, b, `import io, tarfile
def forged(fileobj=None, **k):
    class T:
        def __enter__(self): return self
        def __exit__(self, *a): pass
        def gettarinfo(self, *a):
            with real(fileobj=fileobj, mode='w|', format=tarfile.PAX_FORMAT) as t:
                first = tarfile.TarInfo('first')
                first.size = 1
                t.addfile(first, io.BytesIO(b'x'))
                hole, length = tarfile.TarInfo('hole'), 2 ** 63 - 1
                hole.pax_headers = {'GNU.sparse.major': '1', 'GNU.sparse.minor': '0',
                                    'GNU.sparse.name': 'hole', 'GNU.sparse.realsize': str(length)}
                hole.size = 512
                t.addfile(hole, io.BytesIO(f'1\n{length}\n0\n'.encode().ljust(512, b'\0')))
    return T()
real, tarfile.open = tarfile.open, forged`)
	got, err := gather(t, b, filepath.Join(t.TempDir(), "out"))
	if !errors.Is(err, outfiles.ErrFlood) || got.Files != 1 || got.Bytes != 1 {
		t.Errorf("%+v %v", got, err)
	}
}

// TestFilesComeBackAfterABadEnd ends the first snippet of a session in each way that costs the
// session its process, and checks that the files written before are still there.
func TestFilesComeBackAfterABadEnd(t *testing.T) {
	t.Parallel()
	tier := usual(t, docker.Options{Warm: -1})
	const stubborn = "while True:\n    try:\n        while True: pass\n" +
		"    except BaseException: pass"
	for _, row := range []struct {
		name, source string
		cancelled    bool
	}{
		{"a limit of time", stubborn, false},
		{"an interrupt", stubborn, true},
		{"memory", "import mmap\nm = mmap.mmap(-1, 1 << 30)\n" +
			"for i in range(0, 1 << 30, 4096): m[i] = 1", false},
		{"a crash", "import ctypes\nctypes.string_at(1)", false},
	} {
		t.Run(row.name, func(t *testing.T) {
			t.Parallel()
			limits := tiers.Limits{Wall: 5 * time.Second, Memory: 128 << 20}
			if row.source == stubborn && !row.cancelled {
				limits.Wall = soon
			}
			b := box(t, tier, tiers.Config{Out: true, Limits: limits})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			written := make(chan struct{}, 1)
			if row.cancelled {
				go func() {
					<-written
					cancel()
				}()
			}
			r, err := b.Run(
				ctx,
				tiers.Job{
					Source: "open('/out/kept', 'w').write('it')\nprint('written', flush=True)\n" + row.source,
					Stdout: tells(written),
				},
			)
			if row.cancelled != errors.Is(err, context.Canceled) ||
				!row.cancelled && (err != nil || r.Lost == nil) {
				t.Errorf("%v %+v", err, r)
			}
			dir := filepath.Join(t.TempDir(), "files")
			got, err := gather(t, b, dir)
			text, read := os.ReadFile(filepath.Join(dir, "kept"))
			if err != nil || read != nil || string(text) != "it" || got.Lost != "" {
				t.Errorf("%+v %v, %q %v", got, err, text, read)
			}
		})
	}
	t.Run("the whole container", func(t *testing.T) {
		t.Parallel()
		b := box(t, tier, tiers.Config{Out: true})
		run(t, b, "open('/out/kept', 'w').write('it')")
		if r := run(t, b, "import os\nos.kill(-1, 9)\nos.abort()"); r.Lost == nil {
			t.Fatalf("%+v", r)
		}
		got, err := gather(t, b, filepath.Join(t.TempDir(), "files"))
		if err != nil || got.Files != 0 || !strings.Contains(got.Lost, "are lost") {
			t.Errorf("%+v %v", got, err)
		}
	})
}

// tells signals that something was written.
type tells chan struct{}

func (c tells) Write(b []byte) (int, error) {
	select {
	case c <- struct{}{}:
	default:
	}
	return len(b), nil
}
