package collect

import (
	"archive/tar"
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

type entry struct {
	name, link, text string
	kind             byte
}

func stream(tb testing.TB, entries ...entry) *bytes.Reader {
	tb.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)
	for _, e := range entries {
		if e.kind == 0 {
			e.kind = tar.TypeReg
		}
		head := &tar.Header{Name: e.name, Linkname: e.link, Typeflag: e.kind, Mode: 0o6777, Size: int64(len(e.text))}
		if err := w.WriteHeader(head); err != nil {
			tb.Fatal(err)
		}
		if _, err := w.Write([]byte(e.text)); err != nil {
			tb.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return bytes.NewReader(out.Bytes())
}

var roomy = Limits{Bytes: 1 << 20, Entries: 100}

func TestFilesAndFoldersAreTaken(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	got, err := Unpack(stream(t, entry{name: "./", kind: tar.TypeDir}, entry{name: "./a.txt", text: "A"}, entry{name: "d/", kind: tar.TypeDir}, entry{name: "d/e/b.txt", text: "BB"}), dir, roomy)
	if err != nil || got.Files != 2 || got.Bytes != 3 || len(got.Refused) > 0 {
		t.Errorf("%+v %v", got, err)
	}
	for name, want := range map[string]string{"a.txt": "A", "d/e/b.txt": "BB"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		info, stat := os.Stat(filepath.Join(dir, name))
		if err != nil || stat != nil || string(text) != want || info.Mode()&(os.ModeSetuid|0o111) != 0 {
			t.Errorf("%s: %q %v %v", name, text, err, info.Mode())
		}
	}
}

func TestWhatLeadsElsewhereIsRefused(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "out")
	got, err := Unpack(stream(t,
		entry{name: "../outside", text: "x"}, entry{name: "/outside", text: "x"}, entry{name: "a/../../outside", text: "x"},
		entry{name: "link", kind: tar.TypeSymlink, link: "/etc"}, entry{name: "link/passwd", text: "x"},
		entry{name: "hard", kind: tar.TypeLink, link: "../outside"}, entry{name: "device", kind: tar.TypeChar},
		entry{name: "pipe", kind: tar.TypeFifo}, entry{name: "back\\slash", text: "x"}, entry{name: "new\nline", text: "x"},
		entry{name: strings.Repeat("d/", 40) + "deep", text: "x"}, entry{name: "twice", text: "first"}, entry{name: "twice", text: "second"},
		entry{name: "twice/below", text: "x"},
	), dir, roomy)
	if err != nil {
		t.Fatal(err)
	}
	if got.Files != 2 || len(got.Refused) != 12 { // link/passwd is a file in a folder of that name; twice, once
		t.Errorf("%d files, refused: %q", got.Files, got.Refused)
	}
	if text, err := os.ReadFile(filepath.Join(dir, "twice")); string(text) != "first" {
		t.Errorf("%q %v", text, err)
	}
	if _, err := os.Lstat(filepath.Join(top, "outside")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("something was written outside: %v", err)
	}
}

func TestNamesThatDeceiveAreRefused(t *testing.T) {
	odd := []string{
		"bell\x07", "escape\x1b[2J", "delete\x7f", "next\u0085line", "c1\u009b2J", "back\u202egnp.exe", "isolate\u2066x", "mark\u200fx", "arabic\u061cx",
		"line\u2028x", "paragraph\u2029x", "bad\xff", "a:b",
	}
	var entries []entry
	for _, name := range odd {
		entries = append(entries, entry{name: name, text: "x"}, entry{name: name + "/folder", kind: tar.TypeDir})
	}
	plain := []string{"größe", "日本", "family \U0001F468\u200d\U0001F469", "می\u200cخواهم", "a b"}
	for _, name := range plain {
		entries = append(entries, entry{name: name, text: "x"})
	}
	got, err := Unpack(stream(t, entries...), filepath.Join(t.TempDir(), "out"), roomy)
	if err != nil || got.Files != len(plain) || len(got.Refused) != 2*len(odd) {
		t.Errorf("%v: %d files, refused: %q", err, got.Files, got.Refused)
	}
}

func TestAFolderThatIsNotEmptyIsLeftAlone(t *testing.T) {
	dir := t.TempDir()
	if err := os.Symlink("/etc", filepath.Join(dir, "link")); err != nil {
		t.Skip(err)
	}
	if _, err := Unpack(stream(t, entry{name: "link/x", text: "x"}), dir, roomy); err == nil || !strings.Contains(err.Error(), "is not empty") {
		t.Errorf("%v", err)
	}
}

func TestAFloodEndsTheCollecting(t *testing.T) {
	if _, err := Unpack(stream(t, entry{name: "a", text: strings.Repeat("x", 100)}), filepath.Join(t.TempDir(), "o"), Limits{Bytes: 99, Entries: 10}); !errors.Is(err, ErrFlood) {
		t.Errorf("bytes: %v", err)
	}
	if _, err := Unpack(stream(t, entry{name: "a"}, entry{name: "b"}, entry{name: "c"}), filepath.Join(t.TempDir(), "o"), Limits{Bytes: 99, Entries: 2}); !errors.Is(err, ErrFlood) {
		t.Errorf("entries: %v", err)
	}
	if _, err := Unpack(bytes.NewReader([]byte("no tar at all, but long enough to be taken for one "+strings.Repeat("x", 1000))), filepath.Join(t.TempDir(), "o"), roomy); err == nil {
		t.Error("rubbish was understood")
	}
}

// FuzzUnpack reads what a guest could send: nothing is written outside of the
// folder, and no more than the limits.
func FuzzUnpack(f *testing.F) {
	for _, name := range []string{"a", "../b", "d/e", "/x"} {
		data := new(bytes.Buffer)
		if _, err := data.ReadFrom(stream(f, entry{name: name, text: "text"}, entry{name: name, kind: tar.TypeSymlink, link: "/etc"})); err != nil {
			f.Fatal(err)
		}
		f.Add(data.Bytes())
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		top := t.TempDir()
		got, _ := Unpack(bytes.NewReader(data), filepath.Join(top, "out"), Limits{Bytes: 1000, Entries: 10}) // any error is fine
		entries, err := os.ReadDir(top)
		if err != nil || len(entries) != 1 || got.Bytes > 1000 || got.Files > 10 {
			t.Errorf("%v %v %+v", entries, err, got)
		}
	})
}
