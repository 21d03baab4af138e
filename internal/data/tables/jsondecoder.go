package tables

import (
	"bytes"
	"encoding/binary"
	"strconv"
	"unicode/utf16"
)

// jsonDecoder writes JSON values as CPython's json.loads decodes them. It rejects rare cases, for
// which json.loads itself produces the value or the exception.
type jsonDecoder struct {
	Batch

	text []byte // the line
	at   int

	keys  map[string]int // keys of objects -> their index in added
	added []sharedKey
	order []int // the keys of the last line, in order
	next  int   // index in order
}

type sharedKey struct {
	text string
	ref  uint32
}

// A value beyond these bounds is left to CPython.
const (
	maxJSONDepth  = 100
	maxJSONDigits = 18 // the most digits of an integer
	maxSharedKeys = 10_000
)

// decode writes the value of a line, and reports whether it succeeded.
func (d *jsonDecoder) decode(line []byte) bool {
	d.text, d.at, d.next = line, 0, 0
	out, refs, keys := len(d.out), d.refs, len(d.added)
	d.skipSpace()

	if d.value(0) {
		d.skipSpace()
		if d.at == len(d.text) {
			return true
		}
	}

	d.out, d.refs, d.order = d.out[:out], refs, d.order[:0]
	d.era++

	for _, key := range d.added[keys:] {
		delete(d.keys, key.text)
	}
	d.added = d.added[:keys]
	return false
}

// peek returns the next byte, or 0 at the end.
func (d *jsonDecoder) peek() byte {
	if d.at < len(d.text) {
		return d.text[d.at]
	}
	return 0
}

func (d *jsonDecoder) skipSpace() {
	for d.at < len(d.text) {
		switch d.text[d.at] {
		case ' ', '\t', '\r', '\n':
			d.at++
		default:
			return
		}
	}
}

// take skips white space and the byte c, and reports whether c was there.
func (d *jsonDecoder) take(c byte) bool {
	d.skipSpace()
	if d.peek() != c {
		return false
	}
	d.at++
	return true
}

func (d *jsonDecoder) value(depth int) bool {
	if depth > maxJSONDepth {
		return false
	}
	switch c := d.peek(); c {
	case '"':
		return d.string()
	case '{':
		return d.object(depth)
	case '[':
		return d.array(depth)
	case 't':
		return d.word("true", typeTrue)
	case 'f':
		return d.word("false", typeFalse)
	case 'n':
		return d.word("null", typeNone)
	default:
		return (c == '-' || '0' <= c && c <= '9') && d.numeral()
	}
}

func (d *jsonDecoder) word(word string, kind byte) bool {
	if !bytes.HasPrefix(d.text[d.at:], []byte(word)) {
		return false
	}
	d.at += len(word)
	d.mark(kind)
	return true
}

func (d *jsonDecoder) object(depth int) bool {
	d.at++
	d.mark(typeDict)
	if d.take('}') {
		d.mark(typeEnd)
		return true
	}

	for {
		d.skipSpace()
		if d.peek() != '"' || !d.key() || !d.take(':') {
			return false
		}
		d.skipSpace()
		if !d.value(depth + 1) {
			return false
		}

		if d.take('}') {
			d.mark(typeEnd)
			return true
		}
		if !d.take(',') {
			return false
		}
	}
}

func (d *jsonDecoder) array(depth int) bool {
	d.at++
	list, length := d.beginList(), 0
	if d.take(']') {
		return true
	}

	for {
		d.skipSpace()
		if !d.value(depth + 1) {
			return false
		}
		length++

		if d.take(']') {
			d.endList(list, length)
			return true
		}
		if !d.take(',') {
			return false
		}
	}
}

// plain returns the bytes of a string, and whether the string has no escapes. It leaves d.at after
// the string, or at the first escape.
func (d *jsonDecoder) plain() (text []byte, isPlain bool) {
	d.at++
	from := d.at

	for d.at < len(d.text) {
		switch c := d.text[d.at]; {
		case c == '"':
			d.at++
			return d.text[from : d.at-1], true
		case c == '\\' || c < ' ':
			return d.text[from:d.at], false
		}
		d.at++
	}
	return nil, false
}

func (d *jsonDecoder) string() bool {
	text, isPlain := d.plain()
	if isPlain {
		d.Batch.value(text)
		return true
	}
	return d.escaped(text)
}

// key writes a key. Most objects have the same keys as the previous object, in the same order.
func (d *jsonDecoder) key() bool {
	text, isPlain := d.plain()
	if !isPlain {
		return d.escaped(text)
	}
	if d.next < len(d.order) {
		if key := &d.added[d.order[d.next]]; key.text == string(text) {
			d.next++
			d.ref(key.ref)
			return true
		}
	}

	place, isKnown := d.keys[string(text)]
	switch {
	case isKnown:
		d.ref(d.added[place].ref)
	case len(d.added) == maxSharedKeys:
		d.writer.text(text, 0)
		return true
	default:
		place = len(d.added)
		d.keys[string(text)] = place
		d.added = append(d.added, sharedKey{string(text), d.shared(text)})
	}

	d.order = append(d.order[:d.next], place)
	d.next++
	return true
}

// escaped writes a string that starts with text and continues with an escape.
func (d *jsonDecoder) escaped(text []byte) bool {
	d.mark(typeUnicode)
	d.number(0)
	start := len(d.out)
	d.out = appendDecoded(d.out, text)

	for d.at < len(d.text) {
		from := d.at
		for d.at < len(d.text) && d.text[d.at] != '"' && d.text[d.at] != '\\' && d.text[d.at] >= ' ' {
			d.at++
		}
		d.out = appendDecoded(d.out, d.text[from:d.at])

		switch d.peek() {
		case '"':
			d.at++
			binary.LittleEndian.PutUint32(d.out[start-4:], uint32(len(d.out)-start)) //nolint:gosec // bounded
			return true
		case '\\':
			if !d.escape() {
				return false
			}
		default:
			return false
		}
	}
	return false
}

func (d *jsonDecoder) escape() bool {
	if d.at+1 >= len(d.text) {
		return false
	}
	c := d.text[d.at+1]
	if c == 'u' {
		return d.escapedUnit()
	}

	i := bytes.IndexByte([]byte(`"\/bfnrt`), c)
	if i < 0 {
		return false
	}
	d.out = append(d.out, "\"\\/\b\f\n\r\t"[i])
	d.at += 2
	return true
}

// escapedUnit writes one \uXXXX, or two that form a pair.
func (d *jsonDecoder) escapedUnit() bool {
	unit, isUnit := d.unit(d.at)
	if !isUnit {
		return false
	}
	d.at += 6
	if !utf16.IsSurrogate(unit) {
		d.out = append(d.out, string(unit)...)
		return true
	}

	if low, isUnit := d.unit(d.at); isUnit {
		if r := utf16.DecodeRune(unit, low); r != '\uFFFD' {
			d.out = append(d.out, string(r)...)
			d.at += 6
			return true
		}
	}
	d.out = appendSurrogate(d.out, uint16(unit)) //nolint:gosec // four digits
	return true
}

// unit reads \uXXXX.
func (d *jsonDecoder) unit(at int) (unit rune, isUnit bool) {
	if at+6 > len(d.text) || d.text[at] != '\\' || d.text[at+1] != 'u' {
		return 0, false
	}

	for _, c := range d.text[at+2 : at+6] {
		unit <<= 4
		switch {
		case '0' <= c && c <= '9':
			unit |= rune(c - '0')
		case 'a' <= c|0x20 && c|0x20 <= 'f':
			unit |= rune(c|0x20-'a') + 10
		default:
			return 0, false
		}
	}
	return unit, true
}

// numeral writes a number like json.loads: -?(0|[1-9]\d*)(\.\d+)?([eE][+-]?\d+)?
func (d *jsonDecoder) numeral() bool {
	from := d.at
	if d.text[d.at] == '-' {
		d.at++
	}
	begin := d.at
	digits := d.digits()
	if digits == 0 || digits > 1 && d.text[begin] == '0' {
		return false
	}

	isFloat := false
	if d.peek() == '.' {
		isFloat = true
		d.at++
		if d.digits() == 0 {
			return false
		}
	}
	if d.peek()|0x20 == 'e' {
		isFloat = true
		d.at++
		if c := d.peek(); c == '+' || c == '-' {
			d.at++
		}
		if d.digits() == 0 {
			return false
		}
	}

	text := string(d.text[from:d.at])
	if !isFloat {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || digits > maxJSONDigits {
			return false
		}
		d.int(n)
		return true
	}

	f, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return false
	}
	d.float(f)
	return true
}

// digits skips decimal digits and returns their number.
func (d *jsonDecoder) digits() int {
	from := d.at
	for d.at < len(d.text) && '0' <= d.text[d.at] && d.text[d.at] <= '9' {
		d.at++
	}
	return d.at - from
}
