package tables

import (
	"bytes"
	"encoding/binary"
)

// repeats finds ASCII strings that a batch already contains. The values of a column often repeat,
// and a guest decodes a reference faster than another str.
type repeats [1 << 12]repeat

// repeat is a string that was written, given by its position in the batch.
type repeat struct {
	at, size uint32
	ref      uint32
	era      uint32
}

// Only strings of these lengths, in bytes, are looked up. CPython already shares shorter ones.
const (
	minRepeat = 2
	maxRepeat = 32
)

// value writes a row's value, or a reference to an equal one.
func (b *Batch) value(text []byte) {
	if len(text) < minRepeat || len(text) > maxRepeat {
		b.text(text, 0)
		return
	}

	if b.seen == nil {
		b.seen = &repeats{}
	}
	place := &b.seen[hash(text)%uint64(len(b.seen))]
	if at, size := place.at, place.size; size > 0 && place.era == b.era && bytes.Equal(b.out[at:at+size], text) {
		b.ref(place.ref)
		return
	}

	ref := b.shared(text)
	if at := len(b.out) - len(text); isASCII(text) { // decoding may have changed other strings
		*place = repeat{uint32(at), uint32(len(text)), ref, b.era} //nolint:gosec // bounded by a batch
	}
}

// hash returns a number that differs for most short strings.
func hash(text []byte) uint64 {
	const prime = 0x9E3779B97F4A7C15
	h := uint64(len(text))
	for ; len(text) >= 8; text = text[8:] {
		h = (h ^ binary.LittleEndian.Uint64(text)) * prime
		h ^= h >> 29
	}

	for _, c := range text {
		h = (h ^ uint64(c)) * prime
	}
	return h ^ h>>32
}
