package tables

import (
	"encoding/binary"
	"math"
	"unicode/utf8"
)

// These are the type codes of CPython's module marshal that all versions since 3.4 read.
const (
	typeNone       = 'N'
	typeTrue       = 'T'
	typeFalse      = 'F'
	typeInt        = 'i' // 32 bits
	typeLong       = 'l' // digits of 15 bits
	typeFloat      = 'g'
	typeShortASCII = 'z' // at most 255 bytes
	typeASCII      = 'a'
	typeUnicode    = 'u'
	typeList       = '['
	typeDict       = '{'
	typeEnd        = '0' // ends a dict
	typeRef        = 'r'

	flagRef = 0x80 // may be referred to later
)

// writer writes values in the format of CPython's module marshal.
type writer struct {
	out  []byte
	refs uint32 // number of objects written with flagRef
}

func (w *writer) mark(kind byte) { w.out = append(w.out, kind) }

func (w *writer) number(n uint32) { w.out = binary.LittleEndian.AppendUint32(w.out, n) }

// beginList starts a list; its length is passed to endList.
func (w *writer) beginList() (at int) {
	w.mark(typeList)
	w.number(0)
	return len(w.out)
}

func (w *writer) endList(at, length int) {
	binary.LittleEndian.PutUint32(w.out[at-4:], uint32(length)) //nolint:gosec // bounded by a batch
}

func (w *writer) int(n int64) {
	if n >= math.MinInt32 && n <= math.MaxInt32 {
		w.mark(typeInt)
		w.number(uint32(int32(n)))
		return
	}

	rest, sign := uint64(n), int32(1) //nolint:gosec // the magnitude follows
	if n < 0 {
		rest, sign = -rest, -1
	}

	digits := int32(0)
	w.mark(typeLong)
	w.number(0)
	at := len(w.out)
	for ; rest > 0; rest >>= 15 {
		w.out = binary.LittleEndian.AppendUint16(w.out, uint16(rest&0x7fff)) //nolint:gosec // 15 bits
		digits++
	}
	binary.LittleEndian.PutUint32(w.out[at-4:], uint32(sign*digits)) //nolint:gosec // two's complement
}

func (w *writer) float(f float64) {
	w.mark(typeFloat)
	w.out = binary.LittleEndian.AppendUint64(w.out, math.Float64bits(f))
}

func (w *writer) bool(is bool) {
	if is {
		w.mark(typeTrue)
	} else {
		w.mark(typeFalse)
	}
}

func (w *writer) ref(n uint32) {
	w.mark(typeRef)
	w.number(n)
}

// text writes the characters to which CPython decodes b: UTF-8, and a lone surrogate for each byte
// that is not UTF-8.
func (w *writer) text(b []byte, flag byte) {
	switch {
	case !isASCII(b):
		w.mark(typeUnicode | flag)
		w.number(0)
		at := len(w.out)
		w.out = appendDecoded(w.out, b)
		binary.LittleEndian.PutUint32(w.out[at-4:], uint32(len(w.out)-at)) //nolint:gosec // as above
	case len(b) < 256:
		w.out = append(w.out, typeShortASCII|flag, byte(len(b)))
		w.out = append(w.out, b...)
	default:
		w.mark(typeASCII | flag)
		w.number(uint32(len(b))) //nolint:gosec // as above
		w.out = append(w.out, b...)
	}
}

// shared writes a string that may be referred to later, and returns its number.
func (w *writer) shared(b []byte) uint32 {
	w.text(b, flagRef)
	w.refs++
	return w.refs - 1
}

func isASCII(b []byte) bool {
	for len(b) >= 8 {
		if binary.LittleEndian.Uint64(b)&0x8080808080808080 != 0 {
			return false
		}
		b = b[8:]
	}

	for _, c := range b {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// appendDecoded appends b, replacing bytes that are not UTF-8 with U+DC80 to U+DCFF.
func appendDecoded(out, b []byte) []byte {
	if utf8.Valid(b) {
		return append(out, b...)
	}

	for len(b) > 0 {
		r, size := utf8.DecodeRune(b)
		if r == utf8.RuneError && size == 1 {
			out = appendSurrogate(out, 0xDC00|uint16(b[0]))
		} else {
			out = append(out, b[:size]...)
		}
		b = b[size:]
	}
	return out
}

// appendSurrogate appends half of a surrogate pair, encoded as UTF-8 would encode it.
func appendSurrogate(out []byte, half uint16) []byte {
	return append(out, 0xE0|byte(half>>12), 0x80|byte(half>>6&0x3F), 0x80|byte(half&0x3F))
}
