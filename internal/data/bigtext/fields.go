package bigtext

import (
	"bytes"
	"context"
)

func indexByte(b []byte, c byte) int64 { return int64(bytes.IndexByte(b, c)) }

// asciiSpace contains the ASCII characters that str.isspace considers whitespace.
var asciiSpace = [256]bool{
	'\t': true, '\n': true, '\v': true, '\f': true, '\r': true,
	0x1c: true, 0x1d: true, 0x1e: true, 0x1f: true, ' ': true,
}

// wideSpace returns the length in bytes of the whitespace above ASCII at the start of b, or 0. The
// set is _PyUnicode_IsWhitespace of CPython 3.13: U+0085, U+00A0, U+1680, U+2000 to U+200A, U+2028,
// U+2029, U+202F, U+205F, U+3000.
func wideSpace(b []byte) int64 {
	if len(b) >= 2 && b[0] == 0xc2 && (b[1] == 0x85 || b[1] == 0xa0) {
		return 2
	}
	if len(b) < 3 {
		return 0
	}

	switch c := b[2]; {
	case b[0] == 0xe1 && b[1] == 0x9a && c == 0x80,
		b[0] == 0xe2 && b[1] == 0x80 && c >= 0x80 && c <= 0x8a,
		b[0] == 0xe2 && b[1] == 0x80 && (c == 0xa8 || c == 0xa9 || c == 0xaf),
		b[0] == 0xe2 && b[1] == 0x81 && c == 0x9f,
		b[0] == 0xe3 && b[1] == 0x80 && c == 0x80:
		return 3
	}
	return 0
}

// spaceWidth returns the length of the whitespace character at p, or 0.
func spaceWidth(b []byte, p int64) int64 {
	if c := b[p]; c < 0xc2 || c > 0xe3 {
		return b2i(asciiSpace[c])
	}
	return wideSpace(b[p:])
}

// fieldScanner's events are the first bytes of the fields: of characters that
// are not whitespace and follow whitespace or the text's beginning.
type fieldScanner []byte

func (d fieldScanner) next(p, hi int64) (at, after int64) {
	p = nextBoundary(d, p)
	if !d.spaceBefore(p) {
		p = d.space(p, hi)
	}

	for p < hi {
		w := spaceWidth(d, p)
		if w == 0 {
			return p, p + 1
		}
		p += w
	}
	return -1, hi
}

// count returns the number of events in [lo,hi), as next would find them.
func (d fieldScanner) count(lo, hi int64) (n int64) {
	p := nextBoundary(d, lo)
	space := uint8(b2i(d.spaceBefore(p)))
	for p < hi {
		c := d[p]
		now, w := spaceByte[c], int64(1)
		if now > 1 {
			w = wideSpace(d[p:])
			now = uint8(min(w, 1))
			w = max(w, 1)
		}

		n += int64(space &^ now) // no branch: the length of a word cannot be predicted
		space = now
		p += w
	}
	return n
}

// spaceByte is 1 for ASCII whitespace, 2 for bytes that may start other whitespace.
var spaceByte = func() (t [256]uint8) {
	for c, space := range asciiSpace {
		t[c] = uint8(b2i(space))
	}
	for _, c := range []byte{0xc2, 0xe1, 0xe2, 0xe3} {
		t[c] = 2
	}

	return t
}()

func (d fieldScanner) separator(at int64) span { return span{at, at} }

// space returns the first whitespace at or after p, or hi. p may be in the middle of a character
// that is not whitespace: its continuation bytes start no whitespace.
func (d fieldScanner) space(p, hi int64) int64 {
	for p < hi && spaceWidth(d, p) == 0 {
		p++
	}
	return p
}

// spaceBefore reports whether p is the beginning or follows whitespace.
func (d fieldScanner) spaceBefore(p int64) bool {
	if p == 0 || asciiSpace[d[p-1]] {
		return true
	}
	return p >= 2 && wideSpace(d[p-2:p]) == 2 || p >= 3 && wideSpace(d[p-3:p]) == 3
}

// fieldEnd returns the end of the field that starts at p, at most hi. A hole belongs to the field
// before it.
func (t *Text) fieldEnd(ctx context.Context, p, hi int64) (int64, error) {
	for p < hi {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		p = min(hi, t.skipHole(p))
		end := min(hi, p+searchStep, max(p+1, t.nextHole(p)))
		if at := fieldScanner(t.data).space(p, end); at < end {
			return at, nil
		}

		p = end
	}
	return hi, nil
}
