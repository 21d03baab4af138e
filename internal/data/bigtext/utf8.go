package bigtext

import (
	"encoding/binary"
	"math/bits"
	"unicode/utf8"
)

const (
	highBits = 0x8080808080808080
	lowBits  = 0x0101010101010101
)

// isASCII reports whether b contains no byte above 0x7F, checking eight words at a time.
func isASCII(b []byte) bool {
	for len(b) >= 64 {
		w := (*[64]byte)(b)
		x := binary.LittleEndian.Uint64(w[0:]) | binary.LittleEndian.Uint64(w[8:]) |
			binary.LittleEndian.Uint64(w[16:]) | binary.LittleEndian.Uint64(w[24:]) |
			binary.LittleEndian.Uint64(w[32:]) | binary.LittleEndian.Uint64(w[40:]) |
			binary.LittleEndian.Uint64(w[48:]) | binary.LittleEndian.Uint64(w[56:])
		if x&highBits != 0 {
			return false
		}

		b = b[64:]
	}

	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false
		}
	}

	return true
}

// leads counts the bytes of b that are not continuation bytes (10xxxxxx): in valid UTF-8, that is
// the number of characters.
func leads(b []byte) int64 {
	n := len(b)
	tails := 0
	for ; len(b) >= 8; b = b[8:] {
		x := binary.LittleEndian.Uint64(b)
		tails += bits.OnesCount64(x & (^x << 1) & highBits)
	}

	for _, c := range b {
		if c&0xC0 == 0x80 {
			tails++
		}
	}
	return int64(n - tails)
}

// boundary reports whether a character starts at p, 0 <= p <= len(b). A byte that is not a
// continuation byte always starts one; a continuation byte does unless one of the three bytes
// before it starts a valid sequence that contains it, because the first byte of a valid sequence is
// never inside another.
func boundary(b []byte, p int64) bool {
	if p >= int64(len(b)) || b[p]&0xC0 != 0x80 {
		return true
	}

	for k := int64(1); k <= 3 && k <= p; k++ {
		c := b[p-k]
		if c&0xC0 == 0x80 {
			continue
		}
		_, w := utf8.DecodeRune(b[p-k:])
		return int64(w) <= k
	}
	return true
}

// nextBoundary returns the first boundary at or after p, which is at most 3 bytes away.
func nextBoundary(b []byte, p int64) int64 {
	for !boundary(b, p) {
		p++
	}
	return p
}

// countChars counts the characters that start in b[lo:hi] and the invalid bytes among them, and
// returns the position of the first invalid byte, or -1.
func countChars(b []byte, lo, hi int64) (chars, invalid, first int64) {
	from, to := nextBoundary(b, lo), nextBoundary(b, hi)
	if from >= to {
		return 0, 0, -1
	}

	part := b[from:to]
	if chars, ok := countValid(part); ok {
		return chars, 0, -1
	}

	chars, invalid, first = countDecoded(part)
	return chars, invalid, first + from
}

// countValid counts the characters of b; it returns false if b is not valid UTF-8. It is equivalent
// to utf8.RuneCount, but several times as fast on text that mixes ASCII with other characters.
func countValid(b []byte) (chars int64, ok bool) {
	p, n := 0, len(b)
	tails := 0
	for p+8 <= n {
		high := binary.LittleEndian.Uint64(b[p:]) & highBits
		if high == 0 {
			p += 8
			continue
		}

		p += bits.TrailingZeros64(high) / 8
		// This loop reads a run of characters above ASCII, mostly of two or three bytes.
		for p+4 <= n && b[p] >= utf8.RuneSelf {
			w := wideLen(binary.LittleEndian.Uint32(b[p:]))
			if w == 0 {
				return 0, false
			}
			p += w
			tails += w - 1
		}
	}

	for p < n {
		r, w := utf8.DecodeRune(b[p:])
		if r == utf8.RuneError && w == 1 {
			return 0, false
		}
		p += w
		tails += w - 1
	}

	return int64(n - tails), true
}

// wideLen returns the length of the valid sequence above ASCII at the start of the bytes of x, the
// first one lowest, or 0 if it is invalid. The cases are those of The Unicode Standard 15.0, table
// 3-7.
func wideLen(x uint32) int {
	switch {
	case x&0xC0E0 == 0x80C0:
		return int(b2i(x&0x1E != 0)) * 2
	case x&0xC0C0F0 == 0x8080E0:
		lead, second := x&0xF, x>>8&0x3F
		valid := lead != 0 && lead != 0xD || lead == 0 && second >= 0x20 ||
			lead == 0xD && second < 0x20
		return int(b2i(valid)) * 3
	case x&0xC0C0C0F8 == 0x808080F0:
		lead, second := x&7, x>>8&0x3F
		valid := lead > 0 && lead < 4 || lead == 0 && second >= 0x10 || lead == 4 && second < 0x10
		return int(b2i(valid)) * 4
	}
	return 0
}

// countDecoded is like countChars, for all of b, character by character.
func countDecoded(b []byte) (chars, invalid, first int64) {
	first = -1
	for p := 0; p < len(b); chars++ {
		if b[p] < utf8.RuneSelf {
			p++
			continue
		}

		r, w := utf8.DecodeRune(b[p:])
		if r == utf8.RuneError && w == 1 {
			if invalid++; first < 0 {
				first = int64(p)
			}
		}

		p += w
	}
	return chars, invalid, first
}

// skipChars returns the position n characters after the boundary p; all bytes up to there must be
// in b. valid reports that b is valid UTF-8.
func skipChars(b []byte, p, n int64, valid bool) int64 {
	for valid && n >= 8 && p+8 <= int64(len(b)) {
		x := binary.LittleEndian.Uint64(b[p:])
		n -= 8 - int64(bits.OnesCount64(x&(^x<<1)&highBits))
		p += 8
	}

	// The eight bytes may end inside a character that has already been counted.
	for valid && p < int64(len(b)) && b[p]&0xC0 == 0x80 {
		p++
	}

	for ; n > 0 && p < int64(len(b)); n-- {
		if b[p] < utf8.RuneSelf {
			p++
			continue
		}
		_, w := utf8.DecodeRune(b[p:])
		p += int64(w)
	}

	return p
}
