package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// bounds holds the limits for decoding.
type bounds struct {
	what   string // "value" or "schema", for messages
	bytes  int
	depth  int
	values int
}

var (
	valueBounds  = bounds{"value", 4 << 20, 64, 200_000}
	schemaBounds = bounds{"schema", 256 << 10, 100, 20_000}
)

// decoder reads one JSON document that is known to be valid.
type decoder struct {
	bounds
	data []byte
	at   int
	path []string          // path of the value being read
	left int               // number of values that may still be read
	keys map[string]string // shared keys, because rows repeat them
	slab []node            // free memory for scalars
}

// malformedError reports where and why a document is rejected.
type malformedError struct {
	path   []string
	reason string
}

// Error returns the path and the reason.
func (m *malformedError) Error() string { return formatPath(m.path) + ": " + m.reason }

// decode reads a whole JSON document. It rejects duplicate keys, bytes that are not UTF-8, and
// numbers beyond the range of float64.
func decode(raw []byte, limits bounds) (*node, error) {
	d := decoder{bounds: limits, data: raw, left: limits.values}
	if len(raw) > limits.bytes {
		return nil, d.reject("the %s has %d bytes, more than %d",
			limits.what, len(raw), limits.bytes)
	}
	if !utf8.Valid(raw) {
		return nil, d.reject("the %s is not UTF-8", limits.what)
	}
	if !json.Valid(raw) {
		return nil, d.explainSyntax()
	}
	return d.readValue()
}

// explainSyntax describes the mistake in a document that is not JSON.
func (d *decoder) explainSyntax() error {
	var value json.RawMessage
	err := json.Unmarshal(d.data, &value)
	var syntax *json.SyntaxError
	switch {
	case !errors.As(err, &syntax):
		return d.reject("the %s is not JSON", d.what)
	case syntax.Offset >= int64(len(d.data)) && strings.HasPrefix(syntax.Error(), "unexpected end"):
		return d.reject("the %s is not JSON: it ends too early", d.what)
	case strings.Contains(syntax.Error(), "max depth"):
		return d.reject("the %s is nested deeper than %d", d.what, d.depth)
	}

	return d.reject("the %s is not JSON: %s at byte %d",
		d.what, clip(syntax.Error(), 100), syntax.Offset-1)
}

// reject returns an error at the current path.
func (d *decoder) reject(format string, args ...any) error {
	return &malformedError{slices.Clone(d.path), fmt.Sprintf(format, args...)}
}

// readValue reads the next value.
func (d *decoder) readValue() (*node, error) {
	if d.left--; d.left < 0 {
		return nil, d.reject("the %s has more than %d parts", d.what, d.values)
	}

	switch d.skipSpace() {
	case 'n':
		d.at += len("null")
		return null, nil
	case 't':
		d.at += len("true")
		return isTrue, nil
	case 'f':
		d.at += len("false")
		return isFalse, nil
	case '"':
		return d.store(textNode(string(d.readText()))), nil
	case '[', '{':
		return d.readNested()
	}
	return d.readNumber()
}

// skipSpace skips white space and returns the byte after it, without reading that byte.
func (d *decoder) skipSpace() byte {
	for d.at < len(d.data) {
		switch c := d.data[d.at]; c {
		case ' ', '\t', '\n', '\r':
			d.at++
		default:
			return c
		}
	}
	return 0
}

// readNested reads an array or an object, unless it is nested too deeply.
func (d *decoder) readNested() (*node, error) {
	if len(d.path) >= d.depth {
		return nil, d.reject("the %s is nested deeper than %d", d.what, d.depth)
	}
	if d.data[d.at] == '[' {
		return d.readArray()
	}
	return d.readObject()
}

// readNumber reads a number.
func (d *decoder) readNumber() (*node, error) {
	start := d.at
	for d.at < len(d.data) && strings.IndexByte("+-.0123456789eE", d.data[d.at]) >= 0 {
		d.at++
	}
	literal := string(d.data[start:d.at])
	if reason := checkNumber(literal); reason != "" {
		return nil, d.reject("%s", reason)
	}
	return d.store(numberNode(literal)), nil
}

// store puts a scalar into memory shared by many scalars.
func (d *decoder) store(n node) *node {
	if len(d.slab) == cap(d.slab) {
		d.slab = make([]node, 0, min(64, 1+len(d.data)/16))
	}
	d.slab = append(d.slab, n)
	return &d.slab[len(d.slab)-1]
}

// readText reads a string. The result may alias the document.
func (d *decoder) readText() []byte {
	start := d.at + 1
	isEscaped := false
	for d.at++; d.data[d.at] != '"'; d.at++ {
		if d.data[d.at] == '\\' {
			isEscaped = true
			d.at++
		}
	}

	d.at++
	if !isEscaped {
		return d.data[start : d.at-1]
	}

	var text string
	if err := json.Unmarshal(d.data[start-1:d.at], &text); err != nil { // always valid
		return nil
	}
	return []byte(text)
}

// maxSharedKeys bounds the keys that are stored once for all objects.
const maxSharedKeys = 100

// readKey reads the name of a member.
func (d *decoder) readKey() string {
	text := d.readText()
	if known, ok := d.keys[string(text)]; ok {
		return known
	}

	key := string(text)
	if d.keys == nil {
		d.keys = map[string]string{}
	}
	if len(d.keys) < maxSharedKeys {
		d.keys[key] = key
	}
	return key
}

// hasNext advances to the next item. At the closing bracket, it advances past the bracket and
// returns false.
func (d *decoder) hasNext(end byte, isFirst bool) bool {
	if d.skipSpace() == end {
		d.at++
		return false
	}

	if !isFirst {
		d.at++ // the comma
	}
	return true
}

// readArray reads an array.
func (d *decoder) readArray() (*node, error) {
	d.at++
	var kids []*node
	for d.hasNext(']', len(kids) == 0) {
		d.path = append(d.path, "")
		kid, err := d.readValue()
		if err != nil {
			var m *malformedError
			if errors.As(err, &m) { // the index is formatted only if needed
				m.path[len(d.path)-1] = strconv.Itoa(len(kids))
			}
			return nil, err
		}

		d.path = d.path[:len(d.path)-1]
		kids = append(kids, kid)
	}
	return newArray(kids), nil
}

// readObject reads an object.
func (d *decoder) readObject() (*node, error) {
	d.at++
	n := &node{kind: objectKind, keys: make([]string, 0, 8), kids: make([]*node, 0, 8)}
	for d.hasNext('}', len(n.keys) == 0) {
		d.skipSpace()
		key := d.readKey()
		d.path = append(d.path, key)
		if n.member(key) != nil {
			return nil, d.reject("this key appears twice")
		}

		d.skipSpace()
		d.at++ // the colon
		kid, err := d.readValue()
		if err != nil {
			return nil, err
		}

		d.path = d.path[:len(d.path)-1]
		n.add(key, kid)
	}

	n.measure()
	return n, nil
}
