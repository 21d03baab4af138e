//go:build linux && (amd64 || arm64)

package jail

import (
	"io"
	"slices"
	"sync"
)

// tailHalf is the size of the beginning, and of the end, that a tail keeps, in bytes.
const tailHalf = 32 << 10

// tail keeps the beginning and the end of the bytes written to it.
type tail struct {
	mu      sync.Mutex // guards the fields below
	first   []byte
	last    []byte // at most twice tailHalf
	skipped bool
}

func newTail() *tail { return &tail{} }

// readFrom reads until the end.
func (t *tail) readFrom(r io.Reader) {
	buf := make([]byte, 16<<10)
	for {
		n, err := r.Read(buf)
		t.add(buf[:n])
		if err != nil {
			return
		}
	}
}

// add keeps the part of text that fits.
func (t *tail) add(text []byte) {
	t.mu.Lock()
	defer t.mu.Unlock()

	n := min(len(text), tailHalf-len(t.first))
	t.first = append(t.first, text[:n]...)
	t.last = append(t.last, text[n:]...)
	if over := len(t.last) - tailHalf; over > tailHalf {
		t.last = append(t.last[:0], t.last[over:]...)
		t.skipped = true
	}
}

// bytes returns a copy of the kept bytes.
func (t *tail) bytes() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()

	last, skipped := t.last, t.skipped
	if over := len(last) - tailHalf; over > 0 {
		last, skipped = last[over:], true
	}
	if skipped {
		return slices.Concat(t.first, []byte("\n[…]\n"), last)
	}
	return slices.Concat(t.first, last)
}
