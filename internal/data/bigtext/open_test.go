package bigtext

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/iotest"
	"time"

	"github.com/rlmhq/rlm/internal/testing/skip"
)

func TestOpen(t *testing.T) {
	text := open(t, writeFile(t, []byte("héllo")))
	if n, err := text.Len(bg); n != 5 || err != nil || text.Size() != 6 || text.File() == nil {
		t.Errorf("%d %v", n, err)
	}
	empty := open(t, writeFile(t, nil))
	if n, err := empty.Len(bg); n != 0 || err != nil {
		t.Errorf("empty file: %d %v", n, err)
	}
	if data, ascii, err := empty.Slice(bg, 0, 0); len(data) != 0 || !ascii || err != nil {
		t.Errorf("empty slice: %q %v %v", data, ascii, err)
	}
	if _, err := Open(t.TempDir()); err == nil || !strings.Contains(err.Error(), "directory") {
		t.Errorf("directory: %v", err)
	}
	if _, err := Open(filepath.Join(t.TempDir(), "missing")); !errorsIs(err, os.ErrNotExist) {
		t.Errorf("missing: %v", err)
	}
	if _, err := os.Stat("/dev/null"); err == nil {
		if _, err := Open("/dev/null"); err == nil || !strings.Contains(err.Error(), "device") {
			t.Errorf("device: %v", err)
		}
	}
}

func TestClose(t *testing.T) {
	text := open(t, writeFile(t, bytes.Repeat([]byte("line é\n"), 1<<18)))
	n, err := text.Len(bg)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 8 { // calls during Close succeed or return errClosed
		wg.Go(func() {
			for {
				if _, err := text.Count(bg, []byte("x"), 0, n); errors.Is(err, errClosed) {
					return
				} else if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	time.Sleep(5 * time.Millisecond)
	for range 2 {
		if err := text.Close(); err != nil {
			t.Error(err)
		}
	}
	wg.Wait()
	if err := Guard(text, func() {}); !errorsIs(err, errClosed) {
		t.Error(err)
	}
	if err := text.Changed(); !errorsIs(err, errClosed) {
		t.Error(err)
	}
}

func TestChanged(t *testing.T) {
	path := writeFile(t, []byte("abc"))
	text := open(t, path)
	if err := text.Changed(); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(path, time.Time{}, time.Now().Add(time.Hour)); err != nil {
		t.Fatal(err)
	}
	if err := text.Changed(); !errorsIs(err, ErrChanged) || !strings.Contains(err.Error(), path) {
		t.Error(err)
	}
}

func TestSpool(t *testing.T) {
	want := bytes.Repeat([]byte("spooled é\n"), 300_000)
	text, err := Spool(bg, bytes.NewReader(want), int64(len(want)))
	if err != nil {
		t.Fatal(err)
	}
	defer text.Close()
	n, _ := text.Len(bg)
	if data, _, err := text.Slice(bg, 0, n); err != nil || !bytes.Equal(data, want) {
		t.Errorf("%d bytes, %v", len(data), err)
	}
	if _, err := Spool(bg, bytes.NewReader(want), 1000); !errorsIs(err, ErrTooLarge) ||
		!strings.Contains(err.Error(), "1000 bytes") {
		t.Error(err)
	}
	broken := iotest.ErrReader(io.ErrUnexpectedEOF)
	if _, err := Spool(bg, broken, 1000); !errorsIs(err, io.ErrUnexpectedEOF) {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(bg)
	cancel()
	if _, err := Spool(ctx, bytes.NewReader(want), 1<<30); !errorsIs(err, context.Canceled) {
		t.Error(err)
	}
}

func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(bg)
	cancel()
	text := shrink(FromBytes("", bytes.Repeat([]byte("é "), 5000)))
	if _, err := text.Len(ctx); !errorsIs(err, context.Canceled) {
		t.Error(err)
	}
	n, err := text.Len(bg)
	if err != nil {
		t.Fatal(err)
	}
	errs := map[string]error{}
	_, errs["Find"] = text.Find(ctx, []byte("x"), 0, n)
	_, errs["RFind"] = text.RFind(ctx, []byte("x"), 0, n)
	_, errs["Count"] = text.Count(ctx, []byte("x"), 0, n)
	_, errs["Count overlapping"] = text.Count(ctx, []byte("xx"), 0, n)
	_, errs["Parts"] = text.Parts(ctx, Fields(), 0, n)
	for name, err := range errs {
		if !errorsIs(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestKind(t *testing.T) {
	for _, c := range []struct {
		name, data string
		want       Kind
	}{
		{"a.json", "{}", KindJSON},
		{"a.JSONL", "{}\n", KindJSONL},
		{"a.csv", "x", KindCSV},
		{"a.xml", "", KindXML},
		{"a.htm", "", KindHTML},
		{"a.go", "package a", KindCode},
		{"a.md", "# a", KindText},
		{"a", "", KindText},
		{"a", "plain text, with a comma\nhere.\n", KindText},
		{"a", "{\"a\": 1}\n{\"a\": 2}\n", KindJSONL},
		{"a", "{\n \"a\": 1\n}", KindJSON},
		{"a", "[1, {\"a\":2}]", KindJSON},
		{"a", "\ufeff<?xml version=\"1.0\"?>", KindXML},
		{"a", " <!DOCTYPE html><html>", KindHTML},
		{"a", "#!/bin/sh\n", KindCode},
		{"a", "a,b,c\n1,2,3\n4,5,6\n", KindCSV},
		{"a.txt", "\x7fELF\x00\x00\x00\x01\x02", KindBinary},
		{"a", strings.Repeat("\xff\xfe", 100), KindBinary},
		{"a.txt", strings.Repeat("some text ", 500) + "\xff", KindText},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := FromBytes(c.name, []byte(c.data)).Kind(); got != c.want {
				t.Errorf("%s %.20q: %s; want %s", c.name, c.data, got, c.want)
			}
		})
	}
}

func TestManyChunks(t *testing.T) {
	skip.UnderRace(t)
	const n = 11 << 20 // several chunks of the real size
	b := bytes.Repeat([]byte("xyz é\n"), n/7)
	b = append(b, "needle"...)
	text := open(t, writeFile(t, b))
	size, err := text.Len(bg)
	if err != nil || size != int64(n/7*6+6) {
		t.Fatal(size, err)
	}
	if at, err := text.Find(bg, []byte("needle"), 0, size); at != size-6 || err != nil {
		t.Error(at, err)
	}
	if at, err := text.RFind(bg, []byte("xyz"), 0, size); at != size-12 || err != nil {
		t.Error(at, err)
	}
	for range 2 {
		if p, err := text.Parts(bg, Lines(), 0, size); p != n/7+1 || err != nil {
			t.Error(p, err)
		}
		if a, b, err := partOf(text, Lines(), 0, size, n/7); a != size-6 || b != size ||
			err != nil {
			t.Error(a, b, err)
		}
	}
	re, _ := CompileRegexp(t.Context(), `y\S+`)
	if c, err := countRegexp(text, re, size); c != n/7 || err != nil {
		t.Error(c, err)
	}
}

func TestLongNeedle(t *testing.T) {
	long := bytes.Repeat([]byte("0123456789abcdef"), 5000) // longer than a block of a split index
	long = append(long, "end"...)
	huge := bytes.Repeat(long, 20)
	b := bytes.Join([][]byte{huge, []byte("x"), long, []byte("é"), huge}, nil)
	text := FromBytes("", b)
	n, err := text.Len(bg)
	if err != nil {
		t.Fatal(err)
	}
	if c, err := text.Count(bg, long, 0, n); c != 41 || err != nil {
		t.Error(c, err)
	}
	if c, err := text.Count(bg, huge, 0, n); c != 2 || err != nil {
		t.Error(c, err)
	}
	if at, err := text.RFind(bg, huge, 0, n); at != n-int64(len(huge)) || err != nil {
		t.Error(at, err)
	}
	if at, err := text.Find(bg, append(b, 'x'), 0, n); at != -1 || err != nil {
		t.Error(at, err)
	}
	if p, err := text.Parts(bg, Sep(long), 0, n); p != 42 || err != nil {
		t.Error(p, err)
	}
	if a, z, err := partOf(text, Sep(long), 0, n, 20); a != int64(len(huge)) || z != a+1 ||
		err != nil {
		t.Error(a, z, err)
	}
}
