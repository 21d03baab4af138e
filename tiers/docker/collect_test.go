package docker_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

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
		if alias, err2 := os.ReadFile(filepath.Join(dir, "hard")); string(alias) != "text" { // the first of two names is the file
			t.Errorf("%q %v %q %v", text, err, alias, err2)
		}
	}
	if r := run(t, b, "print(kept, len(os.listdir('/out')))"); r.Stdout != "1 5\n" || r.Lost != nil {
		t.Errorf("%q %+v", r.Stdout, r.Lost)
	}
	if _, err := gather(t, b, dir); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("%v", err)
	}
}

func TestPackingThatIsForgedHarmsNobody(t *testing.T) {
	b := box(t, usual(t, docker.Options{Warm: -1}), tiers.Config{Out: true})
	top := t.TempDir()
	run(t, b, `import io, tarfile
def forged(fileobj=None, **k):
    class T:
        def __enter__(self): return self
        def __exit__(self, *a): pass
        def add(self, *a):
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
	if _, err := gather(t, b, filepath.Join(top, "second")); err == nil || !strings.Contains(err.Error(), "ZeroDivisionError") {
		t.Errorf("%v", err)
	}
	if r := run(t, b, "print('alive')"); r.Stdout != "alive\n" {
		t.Errorf("%q", r.Stdout)
	}
}

func TestMountsAreReadOnly(t *testing.T) {
	dir := t.TempDir()
	for _, folder := range []string{dir, filepath.Dir(dir)} { // for all users
		if err := os.Chmod(folder, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "data.csv")
	if err := os.WriteFile(file, []byte("a,b\n1,2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(file, 0o666); err != nil {
		t.Fatal(err)
	}
	tier := usual(t, docker.Options{Warm: -1})
	b := box(t, tier, tiers.Config{Mounts: []tiers.Mount{{Source: dir, Target: "/data"}, {Source: file, Target: "/one.csv"}}})
	r := run(t, b, `import pandas as pd
print(pd.read_csv('/data/data.csv').b.sum(), open('/one.csv').read(3))
for attempt in (lambda: open('/data/new', 'w'), lambda: open('/one.csv', 'a'), lambda: open('/data/data.csv', 'r+')):
    try: print(attempt())
    except OSError as e: print(e.strerror)`)
	if r.Stdout != "2 a,b\nRead-only file system\nRead-only file system\nRead-only file system\n" {
		t.Errorf("%q %+v", r.Stdout, r.Exception)
	}
	for source, target := range map[string]string{
		dir: "/usr/x", "/no/such/place": "/data", "/": "/data", "/proc/self": "/data", "/etc/hostname": "/data", "/dev/null": "/data",
		file: "relative", dir + "/.": "/data/../etc", filepath.Dir(dir): "/tmp/x",
	} {
		if b, err := tier.Open(t.Context(), tiers.Config{Mounts: []tiers.Mount{{Source: source, Target: target}}}); err == nil {
			t.Errorf("%s was mounted at %s", source, target)
			_ = b.Close() // as above
		}
	}
	both := []tiers.Mount{{Source: dir, Target: "/data"}, {Source: file, Target: "/data"}}
	if _, err := tier.Open(t.Context(), tiers.Config{Mounts: both}); err == nil || !strings.Contains(err.Error(), "two things") {
		t.Errorf("%v", err)
	}
}
