package bigtext

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"runtime"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

// named is a foreign text with a name.
type named struct{ *strings.Reader }

func (named) Name() string { return "rows.csv" }

// shortened is a foreign text that has fewer bytes than it claims.
type shortened struct{ *strings.Reader }

func (c shortened) Size() int64 { return c.Reader.Size() + 1 }

// listed is a foreign text whose type is not comparable.
type listed []byte

func (l listed) Size() int64 { return int64(len(l)) }

func (l listed) ReadAt(p []byte, off int64) (int, error) {
	return bytes.NewReader(l).ReadAt(p, off)
}

func TestForeignTextsAreCopied(t *testing.T) {
	long := strings.Repeat("é", maxInMemory/2+1)
	for name, c := range map[string]struct {
		source Source
		want   string
		kind   Kind
	}{
		"empty":     {strings.NewReader(""), "", KindText},
		"short":     {strings.NewReader("short"), "short", KindText},
		"named":     {named{strings.NewReader("a,b")}, "a,b", KindCSV},
		"not UTF-8": {strings.NewReader("not all \xff of it"), "not all \xff of it", KindText},
		"a section": {
			io.NewSectionReader(strings.NewReader("0123456789"), 2, 3), "234", KindText,
		},
		"incomparable": {listed("a list"), "a list", KindText},
		"long":         {strings.NewReader(long), long, KindText},
	} {
		t.Run(name, func(t *testing.T) {
			text, err := Of(bg, c.source)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			n, err := text.Len(bg)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			data, _, err := text.Slice(bg, 0, n)
			if err != nil || string(data) != c.want || text.Kind() != c.kind {
				t.Errorf("%s: %.20q, %s, %v", name, data, text.Kind(), err)
			}
			runtime.KeepAlive(text)
		})
	}
}

func TestOwnTextsAreNotCopied(t *testing.T) {
	own := FromBytes("own", []byte("x"))
	if text, err := Of(bg, own); text != own || err != nil {
		t.Errorf("%p %v, want %p", text, err, own)
	}
}

func TestBrokenForeignTexts(t *testing.T) {
	if _, err := Of(bg, shortened{strings.NewReader("four")}); err == nil ||
		!strings.Contains(err.Error(), "1 bytes early") {
		t.Errorf("a text that ends early: %v", err)
	}
	ctx, cancel := context.WithCancel(bg)
	cancel()
	_, err := Of(ctx, strings.NewReader(strings.Repeat("x", maxInMemory+1)))
	if !errors.Is(err, context.Canceled) {
		t.Errorf("a cancelled copy: %v", err)
	}
}

// TestCopiesAreSharedAndFreed checks that two requests return the same copy while it is in use, and
// that its file is closed once the copy is unreachable.
func TestCopiesAreSharedAndFreed(t *testing.T) {
	source := strings.NewReader(strings.Repeat("x", maxInMemory+1))
	freed := make(chan struct{})
	func() {
		text, err := Of(bg, source)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := Of(bg, source); again != text || err != nil {
			t.Errorf("a second copy: %v", err)
		}
		runtime.AddCleanup(text, func(struct{}) { close(freed) }, struct{}{})
	}()

	forgotten := func() bool {
		copies.mu.Lock()
		defer copies.mu.Unlock()
		_, known := copies.known[source]
		return !known
	}
	for deadline := time.Now().Add(time.Minute); !forgotten(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the copy was not forgotten")
		}
		runtime.GC()
	}
	<-freed
}

// TestClosedCopiesStayClosed closes a copy, which must not be freed a second time by the collector.
func TestClosedCopiesStayClosed(t *testing.T) {
	var free func() error
	func() {
		text, err := Of(bg, strings.NewReader(strings.Repeat("x", maxInMemory+1)))
		if err != nil {
			t.Fatal(err)
		}
		if err := text.Close(); err != nil {
			t.Error(err)
		}
		free = text.free
	}()
	runtime.GC()
	if err := free(); err != nil {
		t.Errorf("freed twice: %v", err)
	}
}

// folder is a foreign directory.
type folder struct {
	fstest.MapFS
	names []string
}

func (f folder) Names() []string { return f.names }

func (f folder) Size(name string) (int64, error) {
	info, err := fs.Stat(f.MapFS, name)
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}

func TestForeignDirectories(t *testing.T) {
	long := strings.Repeat("x", maxInMemory+1)
	files := fstest.MapFS{"b.txt": {Data: []byte("bravo")}, "a/long": {Data: []byte(long)}}
	d, err := DirOf(folder{files, []string{"b.txt", "a/long", "b.txt"}})
	if err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(d.Names(), " "); got != "a/long b.txt" {
		t.Errorf("names %q", got)
	}
	for name, want := range map[string]string{"b.txt": "bravo", "a/long": long} {
		t.Run(name, func(t *testing.T) {
			text, err := d.Text(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			data, _, err := text.Slice(bg, 0, int64(len(want)))
			if err != nil || string(data) != want {
				t.Errorf("%s: %.20q %v", name, data, err)
			}
			if data, err := fs.ReadFile(d, name); err != nil || string(data) != want {
				t.Errorf("%s, read as a file: %.20q %v", name, data, err)
			}
		})
	}
	if _, err := d.Text(t.Context(), "c"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a missing file: %v", err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	for _, wrong := range []string{"/etc/passwd", "../x", "missing"} {
		t.Run(wrong, func(t *testing.T) {
			if _, err := DirOf(folder{files, []string{wrong}}); err == nil {
				t.Errorf("%q was taken", wrong)
			}
		})
	}
}

func TestReadAt(t *testing.T) {
	text := open(t, writeFile(t, []byte("0123456789")))
	section := io.NewSectionReader(text, 3, 4)
	if data, err := io.ReadAll(section); string(data) != "3456" || err != nil {
		t.Errorf("%q %v", data, err)
	}
	buf := make([]byte, 4)
	for _, c := range []struct {
		off  int64
		want string
		err  error
	}{{0, "0123", nil}, {8, "89", io.EOF}, {10, "", io.EOF}, {99, "", io.EOF}, {-1, "", errRange}} {
		if n, err := text.ReadAt(buf, c.off); string(buf[:n]) != c.want || !errors.Is(err, c.err) {
			t.Errorf("%d: %q %v", c.off, buf[:n], err)
		}
	}
	if err := text.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := text.ReadAt(buf, 0); !errors.Is(err, errClosed) {
		t.Errorf("after Close: %v", err)
	}
}
