package bigtext

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestCharacters compares the stored characters with the result of a plain decoder, across
// boundaries of pieces and chunks.
func TestCharacters(t *testing.T) {
	for name, c := range map[string]struct {
		text  string
		width int64
		ascii bool
	}{
		"ASCII":   {"plain text\n", 1, true},
		"Latin-1": {"naïve café ÿ\n", 1, false},
		"Greek":   {"αβγ and ASCII\n", 2, false},
		"emoji":   {"ß Ω 漢 😀 plain\n", 4, false},
		"invalid": {"bad \xff\xc3 \xe2\x82 \xf0\x9f\x98 bytes\n", 2, false},
		"NUL":     {"a\x00b\x00\n", 1, true},
		"bounds":  {"\u007f\u0080\u00ff\u0100\uffff\n", 2, false},
		"highest": {"\U00010000\U0010ffff\n", 4, false},
	} {
		t.Run(name, func(t *testing.T) {
			for _, times := range []int{1, 7, 50_000} {
				whole := strings.Repeat(c.text, times)
				path := filepath.Join(t.TempDir(), "text")
				if err := os.WriteFile(path, []byte(whole), 0o600); err != nil {
					t.Fatal(err)
				}
				text, err := Open(path)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = text.Close() })
				text.chunk = 1 << 18

				got, err := text.Characters(t.Context(), 1<<30)
				if err != nil {
					t.Fatal(err)
				}
				data, err := io.ReadAll(io.NewSectionReader(got.File, 0, 1<<30))
				if err != nil {
					t.Fatal(err)
				}
				want := decodeSlowly(whole, c.width)
				if got.Width != c.width || got.ASCII != c.ascii || got.Size() != int64(len(want)) ||
					string(data) != want+strings.Repeat("\x00", int(c.width)) {
					t.Errorf("%s, %d times: width %d, ASCII %v, %d bytes, want %d",
						name, times, got.Width, got.ASCII, len(data), len(want))
				}

				if again, err := text.Characters(t.Context(), 1<<30); again != got || err != nil {
					t.Errorf("the second call returns %v, %v", again, err)
				}
				if _, err := text.Characters(t.Context(), got.Size()-1); !errors.Is(err, ErrTooLarge) {
					t.Errorf("%s: %v, want %v", name, err, ErrTooLarge)
				}
			}
		})
	}
}

func decodeSlowly(text string, width int64) string {
	var out strings.Builder
	for rest := []byte(text); len(rest) > 0; {
		r, n := decodeEscaped(rest)
		rest = rest[n:]
		for i := range width {
			out.WriteByte(byte(r >> (8 * i)))
		}
	}
	return out.String()
}

func TestCharactersOfAFileThatChanges(t *testing.T) {
	path := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(path, []byte(strings.Repeat("text ", 20_000)), 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer text.Close()

	if err := os.Truncate(path, 10); err != nil {
		t.Fatal(err)
	}
	if _, err := text.Characters(t.Context(), 1<<30); !errors.Is(err, ErrChanged) {
		t.Errorf("a truncated file: %v, want %v", err, ErrChanged)
	}
}

// TestLinkCharacters checks that successive and concurrent sessions find the same characters and
// cannot write to them.
func TestLinkCharacters(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("only Linux has links to files without a name")
	}
	t.Setenv("TMPDIR", t.TempDir())
	whole := strings.Repeat("αβγ ", 50_000)
	path := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(path, []byte(whole), 0o600); err != nil {
		t.Fatal(err)
	}
	text, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer text.Close()

	link := func(name string) *Characters {
		t.Helper()
		name = filepath.Join(os.TempDir(), name)
		c, err := text.LinkCharacters(t.Context(), 1<<30, name)
		if err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(name)
		if err != nil || string(data) != decodeSlowly(whole, 2)+"\x00\x00" {
			t.Fatalf("%s has %d bytes (%v)", name, len(data), err)
		}
		if info, err := os.Stat(name); err != nil || info.Mode() != 0o444 {
			t.Errorf("%s has the mode %v (%v)", name, info.Mode(), err)
		}
		return c
	}
	unlink := func(name string) {
		t.Helper()
		if err := os.Remove(filepath.Join(os.TempDir(), name)); err != nil {
			t.Fatal(err)
		}
	}

	first := link("one")
	if link("two") != first {
		t.Error("a second session at the same time gets another copy")
	}
	unlink("one")
	if link("three") != first {
		t.Error("a session after the first one gets another copy")
	}
	unlink("two")
	unlink("three")
	if again := link("four"); again.Length != first.Length {
		t.Errorf("after all sessions %+v, want %+v", again, first)
	}

	if _, err := text.LinkCharacters(t.Context(), 1<<30, "/no/such/folder/name"); err == nil {
		t.Error("a folder that does not exist is no error")
	}
}

// TestCopiesShareHalfOfTheSpace checks that the bound applies to the total size of a process's
// copies.
func TestCopiesShareHalfOfTheSpace(t *testing.T) {
	if runtime.GOOS != "linux" && runtime.GOOS != "darwin" {
		t.Skip("the free space is not known")
	}
	f, err := os.CreateTemp(t.TempDir(), "")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := CheckSpace(f, 1, 0); err != nil {
		t.Error(err)
	}
	if err := CheckSpace(f, 1, 1<<60); !errors.Is(err, ErrTooLarge) {
		t.Errorf("beside many others: %v", err)
	}

	const size = 16 << 20 // more than the copies of other tests, which may end at any time
	func() {
		text := FromBytes("text", []byte(strings.Repeat("x", size)))
		c, err := text.Characters(t.Context(), size)
		if err != nil {
			t.Fatal(err)
		}
		if n := kept.Load(); n < size {
			t.Errorf("%d bytes count", n)
		}
		runtime.KeepAlive(c)
	}()
	for end := time.Now().Add(time.Minute); kept.Load() >= size; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d bytes still count", kept.Load())
		}
		runtime.GC()
	}
}
