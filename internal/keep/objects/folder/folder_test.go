package folder_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/rlmhq/rlm/internal/keep/objects"
	"github.com/rlmhq/rlm/internal/keep/objects/folder"
	"github.com/rlmhq/rlm/internal/testing/objectstest"
)

func open(tb testing.TB, dir string) *folder.Store {
	tb.Helper()
	s, err := folder.Open(dir)
	if err != nil {
		tb.Fatal(err)
	}
	return s
}

func put(tb testing.TB, s objects.Store, text string) objects.Object {
	tb.Helper()
	o, err := s.Put(tb.Context(), strings.NewReader(text))
	if err != nil {
		tb.Fatal(err)
	}
	return o
}

func pathOf(dir, digest string) string { return filepath.Join(dir, digest[:2], digest) }

func TestContract(t *testing.T) {
	objectstest.Run(t, func(t *testing.T) objectstest.Kit {
		t.Helper()
		dir := filepath.Join(t.TempDir(), "new", "objects")
		return objectstest.Kit{
			Open: func() objects.Store { return open(t, dir) },
			Damage: func(t *testing.T, digest string, change func([]byte) []byte) {
				t.Helper()
				stored, err := os.ReadFile(pathOf(dir, digest))
				if err == nil {
					err = os.WriteFile(pathOf(dir, digest), change(stored), 0o600)
				}
				if err != nil {
					t.Fatal(err)
				}
			},
		}
	})
}

// listFiles returns the paths below a folder, relative to it.
func listFiles(t *testing.T, dir string) (all []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			path, err = filepath.Rel(dir, path)
			all = append(all, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestFilesArePrivate(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("modes are of Unix")
	}
	dir := filepath.Join(t.TempDir(), "objects")
	o := put(t, open(t, dir), "private")
	for path, want := range map[string]fs.FileMode{
		dir: fs.ModeDir | 0o700, filepath.Dir(pathOf(dir, o.Digest)): fs.ModeDir | 0o700, pathOf(dir, o.Digest): 0o600,
	} {
		if info, err := os.Stat(path); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, want %v, %v", path, info.Mode(), want, err)
		}
	}
}

// The other tool must be able to read the files, and bytes must be compressed.
func TestAFileIsOfZstd(t *testing.T) {
	dir := t.TempDir()
	text := strings.Repeat("line\n", 100_000)
	o := put(t, open(t, dir), text)
	if info, err := os.Stat(pathOf(dir, o.Digest)); err != nil || info.Size() > 1000 {
		t.Errorf("%d bytes, %v", info.Size(), err)
	}

	tool, err := exec.LookPath("zstd")
	if err != nil {
		t.Skip("the program zstd is not installed")
	}
	out, err := exec.CommandContext(t.Context(), tool, "-dc", pathOf(dir, o.Digest)).Output()
	if err != nil || string(out) != text {
		t.Errorf("%d bytes, %v", len(out), err)
	}
}

func TestExistingBytesAreNotWrittenAgain(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	o := put(t, s, "once")
	old := time.Now().Add(-48 * time.Hour)
	if err := os.Chtimes(pathOf(dir, o.Digest), old, old); err != nil {
		t.Fatal(err)
	}
	before, err := os.Stat(pathOf(dir, o.Digest))
	if err != nil {
		t.Fatal(err)
	}

	again := put(t, s, "once")
	after, err := os.Stat(pathOf(dir, o.Digest))
	if err != nil || !os.SameFile(before, after) {
		t.Errorf("another file replaced the file of the object: %v", err)
	}
	if time.Since(again.Stored) > time.Hour || time.Since(after.ModTime()) > time.Hour {
		t.Errorf("the object is of %s, the file of %s", again.Stored, after.ModTime())
	}
	if files := listFiles(t, dir); len(files) != 1 {
		t.Errorf("the folder has %q", files)
	}
}

// A changed byte does not change the length, so only a comparison finds it.
func TestPutReplacesChangedBytes(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	o := put(t, s, "what was stored")
	stored, err := os.ReadFile(pathOf(dir, o.Digest))
	if err != nil {
		t.Fatal(err)
	}
	stored[len(stored)-1] ^= 1
	if err := os.WriteFile(pathOf(dir, o.Digest), stored, 0o600); err != nil {
		t.Fatal(err)
	}
	put(t, s, "what was stored")
	wantText(t, s, o.Digest, "what was stored")
}

func wantText(t *testing.T, s objects.Store, digest, want string) {
	t.Helper()
	r, err := s.Open(t.Context(), digest)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if got, err := io.ReadAll(r); err != nil || string(got) != want {
		t.Errorf("%q, %v", got, err)
	}
}

func TestOnlyRegularFilesAreObjects(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	whole := put(t, s, "whole")
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.Rename(pathOf(dir, whole.Digest), outside); err != nil {
		t.Fatal(err)
	}
	for name, make := range map[string]func(path string) error{
		"a link":   func(path string) error { return os.Symlink(outside, path) },
		"a folder": func(path string) error { return os.Mkdir(path, 0o700) },
	} {
		t.Run(name, func(t *testing.T) {
			if err := make(pathOf(dir, whole.Digest)); err != nil {
				t.Skip(err)
			}
			if _, err := s.Open(t.Context(), whole.Digest); !errors.Is(err, objects.ErrDamaged) {
				t.Errorf("Open: %v", err)
			}
			if _, err := s.Stat(t.Context(), whole.Digest); !errors.Is(err, objects.ErrDamaged) {
				t.Errorf("Stat: %v", err)
			}
			if err := s.List(t.Context(), func(o objects.Object) error { return errors.New(o.Digest) }); err != nil {
				t.Errorf("List: %v", err)
			}
			if err := s.Remove(t.Context(), whole.Digest); err != nil {
				t.Errorf("Remove: %v", err)
			}
		})
	}
	if _, err := os.Stat(outside); err != nil {
		t.Errorf("the target of the link: %v", err)
	}
}

func TestPutReplacesALink(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	o := put(t, s, "whole")
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.Rename(pathOf(dir, o.Digest), outside); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(outside, pathOf(dir, o.Digest)); err != nil {
		t.Skip(err)
	}
	put(t, s, "whole")
	wantText(t, s, o.Digest, "whole")
	if info, err := os.Lstat(pathOf(dir, o.Digest)); err != nil || !info.Mode().IsRegular() {
		t.Errorf("%v, %v", info.Mode(), err)
	}
}

func TestALinkInThePlaceOfASubfolderIsRefused(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	o := put(t, s, "whole")
	outside := t.TempDir()
	shard := filepath.Dir(pathOf(dir, o.Digest))
	if err := os.Rename(shard, filepath.Join(outside, "shard")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(outside, "shard"), shard); err != nil {
		t.Skip(err)
	}

	_, putErr := open(t, dir).Put(t.Context(), strings.NewReader("whole"))
	_, openErr := s.Open(t.Context(), o.Digest)
	for name, err := range map[string]error{
		"Put": putErr, "Open": openErr, "Remove": s.Remove(t.Context(), o.Digest),
	} {
		if err == nil || !strings.Contains(err.Error(), "is not a folder") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := os.Stat(filepath.Join(outside, "shard", o.Digest)); err != nil {
		t.Errorf("the target of the link: %v", err)
	}
}

func TestAFailedPutLeavesNoFile(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	broken := errors.New("broken")
	_, err := s.Put(t.Context(), io.MultiReader(objectstest.Bytes(0, 6<<20), iotest.ErrReader(broken)))
	if !errors.Is(err, broken) || !strings.Contains(err.Error(), dir) {
		t.Error(err)
	}
	if files := listFiles(t, dir); files != nil {
		t.Errorf("it left %q", files)
	}
}

func TestListRemovesOldLeftOvers(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	o := put(t, s, "kept")
	old := time.Now().Add(-25 * time.Hour)
	for name, isOld := range map[string]bool{".new-1": true, ".new-2": false, "notes.txt": true} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if isOld {
			if err := os.Chtimes(path, old, old); err != nil {
				t.Fatal(err)
			}
		}
	}

	var listed []string
	if err := s.List(t.Context(), func(o objects.Object) error {
		listed = append(listed, o.Digest)
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if strings.Join(listed, " ") != o.Digest {
		t.Errorf("listed are %q", listed)
	}
	want := filepath.Join(o.Digest[:2], o.Digest)
	if got := strings.Join(listFiles(t, dir), " "); got != ".new-2 "+want+" notes.txt" {
		t.Errorf("the folder has %s", got)
	}
}

func TestAFileOfALaterVersionIsNotDamaged(t *testing.T) {
	dir := t.TempDir()
	s := open(t, dir)
	o := put(t, s, "later")
	if err := folder.SetVersion(pathOf(dir, o.Digest), o.Digest, 2); err != nil {
		t.Fatal(err)
	}
	_, err := s.Open(t.Context(), o.Digest)
	if err == nil || errors.Is(err, objects.ErrDamaged) || !strings.Contains(err.Error(), "its file has the format 2") {
		t.Error(err)
	}
}

// A stream of zeros of any length is a small file, and its reader must not need memory for it.
func TestMemoryIsBounded(t *testing.T) {
	s := open(t, t.TempDir())
	const size = 256 << 20
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	o, err := s.Put(t.Context(), io.LimitReader(zeros{}, size))
	if err != nil {
		t.Fatal(err)
	}
	r, err := s.Open(t.Context(), o.Digest)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	if n, err := io.Copy(io.Discard, r); err != nil || n != size {
		t.Errorf("%d bytes, %v", n, err)
	}
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 64<<20 {
		t.Errorf("%d MiB were allocated in total", used>>20)
	}
}

type zeros struct{}

// Read implements io.Reader.
func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func TestAnUnusableFolder(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := folder.Open(file); err == nil || !strings.Contains(err.Error(), "cannot make the folder of objects") {
		t.Error(err)
	}

	dir := filepath.Join(t.TempDir(), "objects")
	s := open(t, dir)
	if err := os.Remove(dir); err != nil {
		t.Fatal(err)
	}
	_, err := s.Put(t.Context(), strings.NewReader("x"))
	if !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), "cannot store an object in") {
		t.Error(err)
	}
	if err := s.List(t.Context(), func(objects.Object) error { return nil }); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func BenchmarkPut(b *testing.B) {
	s := open(b, b.TempDir())
	data := benchmarkBytes(b)
	b.SetBytes(int64(len(data)))
	for i := 0; b.Loop(); i++ {
		data[0], data[1] = byte(i), byte(i>>8) // no object exists
		if _, err := s.Put(b.Context(), bytes.NewReader(data)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkPutOfExistingBytes(b *testing.B) {
	s := open(b, b.TempDir())
	data := benchmarkBytes(b)
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		if _, err := s.Put(b.Context(), bytes.NewReader(data)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkOpen(b *testing.B) {
	s := open(b, b.TempDir())
	data := benchmarkBytes(b)
	o, err := s.Put(b.Context(), bytes.NewReader(data))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(o.Size)
	for b.Loop() {
		if err := discard(b.Context(), s, o.Digest); err != nil {
			b.Fatal(err)
		}
	}
}

// benchmarkBytes returns 64 MiB, half of them compressible.
func benchmarkBytes(b *testing.B) []byte {
	b.Helper()
	data, err := io.ReadAll(objectstest.Bytes(0, 64<<20))
	if err != nil {
		b.Fatal(err)
	}
	return data
}

func discard(ctx context.Context, s objects.Store, digest string) error {
	r, err := s.Open(ctx, digest)
	if err != nil {
		return err
	}
	defer r.Close()
	_, err = io.Copy(io.Discard, r)
	return err
}
