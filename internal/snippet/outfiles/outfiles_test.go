package outfiles

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
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
		head := &tar.Header{
			Name:     e.name,
			Linkname: e.link,
			Typeflag: e.kind,
			Mode:     0o6777,
			Size:     int64(len(e.text)),
		}
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
	got, err := Unpack(stream(t,
		entry{name: "./", kind: tar.TypeDir}, entry{name: "./a.txt", text: "A"},
		entry{name: "d/", kind: tar.TypeDir}, entry{name: "d/e/b.txt", text: "BB"},
	), dir, roomy)
	if err != nil || got.Files != 2 || got.Bytes != 3 || len(got.Refused) > 0 {
		t.Errorf("%+v %v", got, err)
	}

	for name, want := range map[string]string{"a.txt": "A", "d/e/b.txt": "BB"} {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join(dir, name))
			info, stat := os.Stat(filepath.Join(dir, name))
			if err != nil || stat != nil || string(text) != want ||
				info.Mode()&(os.ModeSetuid|0o111) != 0 {
				t.Errorf("%s: %q %v %v", name, text, err, info.Mode())
			}
		})
	}
}

func TestPathsOutOfTheFolderAreRefused(t *testing.T) {
	top := t.TempDir()
	dir := filepath.Join(top, "out")
	got, err := Unpack(stream(t,
		entry{name: "../outside", text: "x"}, entry{name: "/outside", text: "x"},
		entry{name: "a/../../outside", text: "x"},
		entry{name: "link", kind: tar.TypeSymlink, link: "/etc"},
		entry{name: "link/passwd", text: "x"},
		entry{name: "hard", kind: tar.TypeLink, link: "../outside"},
		entry{name: "device", kind: tar.TypeChar},
		entry{name: "pipe", kind: tar.TypeFifo}, entry{name: "back\\slash", text: "x"},
		entry{name: "new\nline", text: "x"},
		entry{name: strings.Repeat("d/", 40) + "deep", text: "x"},
		entry{name: "twice", text: "first"}, entry{name: "twice", text: "second"},
		entry{name: "twice/below", text: "x"},
	), dir, roomy)
	if err != nil {
		t.Fatal(err)
	}
	// link/passwd is a file in a folder named link, and one of the two entries twice is accepted.
	if got.Files != 2 || len(got.Refused) != 12 {
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
		"bell\x07", "escape\x1b[2J", "delete\x7f", "next\u0085line", "c1\u009b2J",
		"back\u202egnp.exe", "isolate\u2066x", "mark\u200fx", "arabic\u061cx",
		"line\u2028x", "paragraph\u2029x", "bad\xff", "a:b",
	}
	var entries []entry
	for _, name := range odd {
		folder := entry{name: name + "/folder", kind: tar.TypeDir}
		entries = append(entries, entry{name: name, text: "x"}, folder)
	}
	plain := []string{
		"größe", "日本", "family \U0001F468\u200d\U0001F469", "می\u200cخواهم", "a b",
	}
	for _, name := range plain {
		entries = append(entries, entry{name: name, text: "x"})
	}
	got, err := Unpack(stream(t, entries...), filepath.Join(t.TempDir(), "out"), roomy)
	if err != nil || got.Files != len(plain) || len(got.Refused) != 2*len(odd) {
		t.Errorf("%v: %d files, refused: %q", err, got.Files, got.Refused)
	}
}

func TestExistingFilesStay(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	if err := os.Symlink(outside, filepath.Join(dir, "link")); err != nil {
		t.Skip(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "old"), []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}

	got, err := Unpack(stream(t, entry{name: "link/x", text: "x"},
		entry{name: "old", text: "replaced"}, entry{name: "new", text: "new"}), dir, roomy)
	if err != nil || got.Files != 1 || got.Bytes != 3 || len(got.Refused) != 2 {
		t.Errorf("%+v %v", got, err)
	}
	for name, want := range map[string]string{"old": "old", "new": "new"} {
		if text, err := os.ReadFile(filepath.Join(dir, name)); string(text) != want {
			t.Errorf("%s: %q %v", name, text, err)
		}
	}

	for folder, most := range map[string]int{dir: 3, outside: 0} {
		if entries, err := os.ReadDir(folder); err != nil || len(entries) != most {
			t.Errorf("%s has %v %v", folder, entries, err)
		}
	}
}

func TestAFileIsCompleteOrAbsent(t *testing.T) {
	var whole bytes.Buffer
	_, _ = stream(t, entry{name: "a", text: "whole"},
		entry{name: "b", text: strings.Repeat("x", 5000)}).WriteTo(&whole)
	dir := t.TempDir()
	got, err := Unpack(bytes.NewReader(whole.Bytes()[:3000]), dir, roomy)
	if err == nil || got.Files != 1 {
		t.Errorf("%+v %v", got, err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 || entries[0].Name() != "a" {
		t.Errorf("%v %v", entries, err)
	}
}

func TestAFloodEndsTheCollecting(t *testing.T) {
	unpack := func(from io.Reader, limits Limits) error {
		_, err := Unpack(from, filepath.Join(t.TempDir(), "o"), limits)
		return err
	}

	large := entry{name: "a", text: strings.Repeat("x", 100)}
	err := unpack(stream(t, large), Limits{Bytes: 99, Entries: 10})
	if !errors.Is(err, ErrFlood) {
		t.Errorf("bytes: %v", err)
	}

	many := stream(t, entry{name: "a"}, entry{name: "b"}, entry{name: "c"})
	if err := unpack(many, Limits{Bytes: 99, Entries: 2}); !errors.Is(err, ErrFlood) {
		t.Errorf("entries: %v", err)
	}

	text := "no tar at all, but long enough to be taken for one " + strings.Repeat("x", 1000)
	if err := unpack(strings.NewReader(text), roomy); err == nil {
		t.Error("what is no tar stream was taken")
	}
}

// TestAFloodOfFoldersEndsTheCollecting checks that folders are counted even if they occur only in
// the paths of files, without entries in the stream.
func TestAFloodOfFoldersEndsTheCollecting(t *testing.T) {
	var entries []entry
	for i := range 10 {
		name := fmt.Sprintf("%d/%sfile", i, strings.Repeat("d/", 20))
		entries = append(entries, entry{name: name, text: "x"})
	}
	dir := filepath.Join(t.TempDir(), "out")
	got, err := Unpack(stream(t, entries...), dir, roomy)
	if !errors.Is(err, ErrFlood) {
		t.Errorf("%+v %v", got, err)
	}
	folders := 0
	err = filepath.WalkDir(dir, func(_ string, d os.DirEntry, err error) error {
		if d != nil && d.IsDir() {
			folders++
		}
		return err
	})
	if err != nil || folders > roomy.Entries+1 {
		t.Errorf("%d folders, %v", folders, err)
	}
}

// holes returns a stream with a file that consists of one hole of the given size: a few bytes of
// the stream become any number of bytes on the disk.
func holes(tb testing.TB, name string, size int64) []byte {
	tb.Helper()
	var out bytes.Buffer
	w := tar.NewWriter(&out)

	// Package archive/tar writes no such files. This one uses PAX records.
	records := map[string]string{
		"GNU.sparse.major":    "1",
		"GNU.sparse.minor":    "0",
		"GNU.sparse.name":     name,
		"GNU.sparse.realsize": strconv.FormatInt(size, 10),
	}
	var pax bytes.Buffer
	for _, key := range slices.Sorted(maps.Keys(records)) {
		record := " " + key + "=" + records[key] + "\n"
		for n := len(record) + 1; ; n++ {
			if whole := strconv.Itoa(n) + record; len(whole) == n {
				pax.WriteString(whole)
				break
			}
		}
	}

	table := make([]byte, 512)
	copy(table, fmt.Sprintf("1\n%d\n0\n", size))

	for _, part := range []struct {
		name string
		body []byte
	}{
		{"PaxHeaders/x", pax.Bytes()},
		{"GNUSparseFile/x", table},
	} {
		head := &tar.Header{
			Name: part.name, Typeflag: tar.TypeReg, Size: int64(len(part.body)),
			Format: tar.FormatUSTAR,
		}
		if err := w.WriteHeader(head); err != nil {
			tb.Fatal(err)
		}
		if _, err := w.Write(part.body); err != nil {
			tb.Fatal(err)
		}
	}

	if err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	data := out.Bytes()
	data[156] = tar.TypeXHeader // which the writer would not write either
	copy(data[148:156], "        ")
	sum := 0
	for _, b := range data[:512] {
		sum += int(b)
	}
	copy(data[148:156], fmt.Sprintf("%06o\x00 ", sum))

	return data
}

// TestAHoleCountsAsMuchAsItFills checks that the length of a hole is counted, and that a length
// near the largest number does not overflow the sum.
func TestAHoleCountsAsMuchAsItFills(t *testing.T) {
	small := bytes.NewReader(holes(t, "small", 1000))
	got, err := Unpack(small, filepath.Join(t.TempDir(), "out"), roomy)
	if err != nil || got.Files != 1 || got.Bytes != 1000 {
		t.Fatalf("a hole is not read as one: %+v %v", got, err)
	}
	first := make([]byte, 1024) // a file of one byte, without the end of the stream
	if _, err := io.ReadFull(stream(t, entry{name: "a", text: "x"}), first); err != nil {
		t.Fatal(err)
	}

	for _, size := range []int64{roomy.Bytes, math.MaxInt64 - 1000, math.MaxInt64} {
		data := append(slices.Clone(first), holes(t, "hole", size)...)
		got, err := Unpack(bytes.NewReader(data), filepath.Join(t.TempDir(), "out"), roomy)
		if err == nil || got.Bytes > 1 {
			t.Errorf("%d: %+v %v", size, got, err)
		}
	}
}

// FuzzUnpack unpacks streams that a guest could send. Nothing may be written outside the folder, or
// beyond the limits.
func FuzzUnpack(f *testing.F) {
	for _, name := range []string{"a", "../b", "d/e", "/x"} {
		data := new(bytes.Buffer)
		link := entry{name: name, kind: tar.TypeSymlink, link: "/etc"}
		from := stream(f, entry{name: name, text: "text"}, link)
		if _, err := data.ReadFrom(from); err != nil {
			f.Fatal(err)
		}
		f.Add(data.Bytes())
	}

	f.Add(holes(f, "hole", 1<<40))
	f.Fuzz(func(t *testing.T, data []byte) {
		top := t.TempDir()
		limits := Limits{Bytes: 1000, Entries: 10}
		// Any error is acceptable.
		got, _ := Unpack(
			bytes.NewReader(data), filepath.Join(top, "out"), limits,
		)
		entries, err := os.ReadDir(top)
		if err != nil || len(entries) != 1 || got.Bytes > 1000 || got.Files > 10 {
			t.Errorf("%v %v %+v", entries, err, got)
		}
	})
}
