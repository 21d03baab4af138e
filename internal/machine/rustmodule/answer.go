package rustmodule

import (
	"encoding/binary"
	"unicode/utf8"
)

// Answer decodes the untrusted answer of a module. After a failure it returns only zero values.
type Answer struct {
	data   []byte
	failed bool
}

// NewAnswer returns a decoder for an answer.
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

// Number reads a LEB128 number.
func (a *Answer) Number() uint64 {
	n, length := binary.Uvarint(a.data)
	if length <= 0 {
		a.fail()
		return 0
	}
	a.data = a.data[length:]
	return n
}

// Count reads a number of items, each of which takes at least one byte.
func (a *Answer) Count(most uint64) uint64 {
	n := a.Number()
	if n > most || n > uint64(len(a.data)) {
		a.fail()
		return 0
	}
	return n
}

// Text reads a length and a UTF-8 string, whose length in bytes must not exceed most.
func (a *Answer) Text(most uint64) string {
	length := a.Count(most)
	text := string(a.data[:length])
	a.data = a.data[length:]
	if !utf8.ValidString(text) {
		a.fail()
	}
	return text
}

// HasFailed reports whether anything could not be decoded.
func (a *Answer) HasFailed() bool { return a.failed }

// End returns [ErrMalformed] if anything could not be decoded, or if data remains.
func (a *Answer) End() error {
	if a.failed || len(a.data) > 0 {
		return ErrMalformed
	}
	return nil
}

func (a *Answer) fail() { a.failed, a.data = true, nil }
