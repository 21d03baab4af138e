package rustmodule

import (
	"encoding/binary"
	"unicode/utf8"
)

// Answer reads the answer of a module, which is not trusted. Once it has failed, it returns zeros.
type Answer struct {
	data   []byte
	failed bool
}

// NewAnswer returns a reader of an answer.
func NewAnswer(data []byte) *Answer { return &Answer{data: data} }

// Byte reads a byte.
func (a *Answer) Byte() byte {
	if len(a.data) == 0 {
		a.fail()
		return 0
	}
	first := a.data[0]
	a.data = a.data[1:]
	return first
}

// Number reads a number in LEB128.
func (a *Answer) Number() uint64 {
	n, length := binary.Uvarint(a.data)
	if length <= 0 {
		a.fail()
		return 0
	}
	a.data = a.data[length:]
	return n
}

// Count reads a number of items, of which each takes a byte at least.
func (a *Answer) Count(most uint64) uint64 {
	n := a.Number()
	if n > most || n > uint64(len(a.data)) {
		a.fail()
		return 0
	}
	return n
}

// Text reads a text in UTF-8 of at most so many bytes, which its length precedes.
func (a *Answer) Text(most uint64) string {
	length := a.Count(most)
	text := string(a.data[:length])
	a.data = a.data[length:]
	if !utf8.ValidString(text) {
		a.fail()
	}
	return text
}

// HasFailed reports whether the answer was not what was read from it.
func (a *Answer) HasFailed() bool { return a.failed }

// End returns [ErrMalformed] if the answer was not what was read from it, or goes on.
func (a *Answer) End() error {
	if a.failed || len(a.data) > 0 {
		return ErrMalformed
	}
	return nil
}

func (a *Answer) fail() { a.failed, a.data = true, nil }
