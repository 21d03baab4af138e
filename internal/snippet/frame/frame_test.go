package frame

import (
	"bytes"
	"errors"
	"io"
	"os"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
)

func TestFramesAreReadAsWritten(t *testing.T) {
	var stream bytes.Buffer
	w := NewWriter(&stream, 1<<22)
	large := bytes.Repeat([]byte("large"), 300_000)
	for _, payload := range [][]byte{{}, []byte("a"), large, []byte("after")} {
		if err := w.Write(byte(len(payload)), payload); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Write('p', []byte("in "), nil, []byte("pieces")); err != nil {
		t.Fatal(err)
	}
	r := NewReader(iotest.HalfReader(&stream), 1<<22)
	for _, want := range []string{"", "a", string(large), "after"} {
		kind, payload, err := r.Next()
		if err != nil || string(payload) != want || kind != byte(len(want)) {
			t.Fatalf("kind %d, %d bytes, %v; want %d bytes", kind, len(payload), err, len(want))
		}
	}
	if kind, payload, err := r.Next(); err != nil || kind != 'p' || string(payload) != "in pieces" {
		t.Fatalf("kind %d, %q, %v", kind, payload, err)
	}
	if _, _, err := r.Next(); !errors.Is(err, io.EOF) {
		t.Fatalf("after the last frame: %v", err)
	}
}

func TestReaderStopsAtTheFirstError(t *testing.T) {
	for name, c := range map[string]struct {
		stream string
		want   error
	}{
		"nothing":             {"", io.EOF},
		"half a header":       {"\x01\x00", io.ErrUnexpectedEOF},
		"header only":         {"\x01\x00\x00\x00k", io.ErrUnexpectedEOF},
		"half a payload":      {"\x03\x00\x00\x00kab", io.ErrUnexpectedEOF},
		"one over":            {"\x09\x00\x00\x00k123456789", ErrTooLarge},
		"largest there is":    {"\xff\xff\xff\xffk", ErrTooLarge},
		"negative as 32 bits": {"\x00\x00\x00\x80k", ErrTooLarge},
	} {
		t.Run(name, func(t *testing.T) {
			r := NewReader(strings.NewReader(c.stream), 8)
			_, payload, err := r.Next()
			if !errors.Is(err, c.want) || payload != nil {
				t.Errorf("%s: %q, %v", name, payload, err)
			}
			if _, _, again := r.Next(); again == nil || again.Error() != err.Error() {
				t.Errorf("%s: then %v, now %v", name, err, again)
			}
		})
	}
}

func TestHeaderAloneAllocatesLittle(t *testing.T) {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, _, err := NewReader(strings.NewReader("\x00\x00\x00\x40k"), 1<<30).Next()
	runtime.ReadMemStats(&after)
	if !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatal(err)
	}
	if grown := after.TotalAlloc - before.TotalAlloc; grown > 1<<20 {
		t.Errorf("a header of a frame of 1 GiB made the reader allocate %d bytes", grown)
	}
}

func TestWriterRefusesWhatIsTooLarge(t *testing.T) {
	var stream bytes.Buffer
	w := NewWriter(&stream, 4)
	if err := w.Write(1, []byte("12"), []byte("345")); !errors.Is(err, ErrTooLarge) ||
		stream.Len() != 0 {
		t.Errorf("%v, %d bytes written", err, stream.Len())
	}
	if err := w.Write(1, []byte("1234")); err != nil {
		t.Error(err)
	}
}

type counter struct{ calls int }

func (c *counter) Write(p []byte) (int, error) { c.calls++; return len(p), nil }

func TestOneFrameIsOneWrite(t *testing.T) {
	var c counter
	if err := NewWriter(&c, 1<<20).Write(1, make([]byte, 100), make([]byte, 100_000)); err != nil ||
		c.calls != 1 {
		t.Errorf("%d calls, %v", c.calls, err)
	}
}

func TestWriterReportsAClosedPipe(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("Windows calls it otherwise")
	}
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if err := NewWriter(w, 10).Write(1, []byte("x")); !errors.Is(err, syscall.EPIPE) {
		t.Errorf("%v, want a broken pipe", err)
	}
}

func FuzzReader(f *testing.F) {
	f.Add([]byte(""))
	f.Add([]byte("\x00\x00\x00\x00a\x01\x00\x00\x00bX"))
	f.Add([]byte("\xff\xff\xff\xff\xff"))
	f.Add([]byte("\x05\x00\x00\x00kabc"))
	f.Fuzz(func(t *testing.T, stream []byte) {
		const limit = 1 << 10
		r := NewReader(bytes.NewReader(stream), limit)
		var again bytes.Buffer
		w := NewWriter(&again, limit)
		for {
			kind, payload, err := r.Next()
			if err != nil {
				if !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) &&
					!errors.Is(err, ErrTooLarge) {
					t.Fatalf("unexpected error %v", err)
				}
				break
			}
			if len(payload) > limit {
				t.Fatalf("%d bytes, at most %d", len(payload), limit)
			}
			if err := w.Write(kind, payload); err != nil {
				t.Fatal(err)
			}
		}
		// Every frame must be written as it was read.
		if !bytes.HasPrefix(stream, again.Bytes()) {
			t.Fatalf("%q became %q", stream, again.Bytes())
		}
	})
}

type loop struct {
	frame []byte
	at    int
}

func (l *loop) Read(p []byte) (int, error) {
	n := copy(p, l.frame[l.at:])
	l.at = (l.at + n) % len(l.frame)
	return n, nil
}

func BenchmarkReader(b *testing.B) {
	var stream bytes.Buffer
	if err := NewWriter(&stream, 1<<20).Write(1, make([]byte, 1<<10)); err != nil {
		b.Fatal(err)
	}
	r := NewReader(&loop{frame: stream.Bytes()}, 1<<20)
	b.SetBytes(1 << 10)
	b.ReportAllocs()
	for b.Loop() {
		if _, _, err := r.Next(); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkWriter(b *testing.B) {
	w := NewWriter(io.Discard, 1<<20)
	payload := make([]byte, 1<<10)
	b.SetBytes(1 << 10)
	b.ReportAllocs()
	for b.Loop() {
		if err := w.Write(1, payload); err != nil {
			b.Fatal(err)
		}
	}
}
