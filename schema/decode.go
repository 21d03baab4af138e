package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"math/big"
	"strconv"
	"strings"
	"unicode/utf8"
)

// kind is what a JSON value is.
type kind uint8

const (
	nullKind kind = iota
	boolKind
	numberKind
	textKind
	arrayKind
	objectKind
)

// node is a JSON value that keeps the order of its members. It does not change
// once it is made, so that parts can be shared by the value before and after a
// coercion.
type node struct {
	kind kind
	text string // a string, or the literal of a number or of true and false
	keys []string
	kids []*node
	// plain is the same value as the JSON Schema library takes it.
	plain any
	// own is one, and one more for each 64 bytes of its text or keys; size is the
	// sum of that over all values in it.
	own, size int
}

// bounds limit what is decoded.
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

// decoder reads one JSON document strictly.
type decoder struct {
	bounds
	json *json.Decoder
	path []string // where the value that is read stands
	left int
}

// malformed says where and why a document is refused.
type malformed struct {
	path   []string
	reason string
}

func (m *malformed) Error() string { return pathText(m.path) + ": " + m.reason }

// decode reads a whole JSON document: no duplicate keys, no text that is not
// UTF-8, no number that a float64 cannot come near to.
func decode(raw []byte, limits bounds) (*node, error) {
	if len(raw) > limits.bytes {
		return nil, &malformed{nil, fmt.Sprintf("the %s has %d bytes, more than %d", limits.what, len(raw), limits.bytes)}
	}
	if !utf8.Valid(raw) {
		return nil, &malformed{nil, fmt.Sprintf("the %s is not UTF-8", limits.what)}
	}
	d := decoder{bounds: limits, json: json.NewDecoder(bytes.NewReader(raw)), left: limits.values}
	d.json.UseNumber()
	n, err := d.next()
	if err != nil {
		return nil, err
	}
	if _, err := d.json.Token(); !errors.Is(err, io.EOF) {
		return nil, d.refuse("something follows the JSON value at byte %d", d.json.InputOffset())
	}
	return n, nil
}

func (d *decoder) refuse(format string, args ...any) error {
	return &malformed{append([]string(nil), d.path...), fmt.Sprintf(format, args...)}
}

// next reads the value that comes next.
func (d *decoder) next() (*node, error) {
	token, err := d.token()
	if err != nil {
		return nil, err
	}
	return d.value(token)
}

func (d *decoder) token() (json.Token, error) {
	token, err := d.json.Token()
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil, d.refuse("the %s is not JSON: it ends too early", d.what)
	}
	if err != nil {
		return nil, d.refuse("the %s is not JSON: %s at byte %d", d.what, clip(err.Error(), 100), d.json.InputOffset())
	}
	return token, nil
}

func (d *decoder) value(token json.Token) (*node, error) {
	if d.left--; d.left < 0 {
		return nil, d.refuse("the %s has more than %d parts", d.what, d.values)
	}
	switch t := token.(type) {
	case nil:
		return null, nil
	case bool:
		return newBool(t), nil
	case json.Number:
		if reason := badNumber(t.String()); reason != "" {
			return nil, d.refuse("%s", reason)
		}
		return newNumber(t.String()), nil
	case string:
		return newText(t), nil
	}
	if len(d.path) >= d.depth {
		return nil, d.refuse("the %s is nested deeper than %d", d.what, d.depth)
	}
	if token == json.Delim('[') {
		return d.array()
	}
	return d.object()
}

func (d *decoder) array() (*node, error) {
	var kids []*node
	for d.json.More() {
		d.path = append(d.path, strconv.Itoa(len(kids)))
		kid, err := d.next()
		if err != nil {
			return nil, err
		}
		d.path = d.path[:len(d.path)-1]
		kids = append(kids, kid)
	}
	if _, err := d.token(); err != nil {
		return nil, err
	}
	return newArray(kids), nil
}

func (d *decoder) object() (*node, error) {
	var keys []string
	var kids []*node
	seen := map[string]any{}
	for d.json.More() {
		token, err := d.token()
		if err != nil {
			return nil, err
		}
		key, ok := token.(string)
		if !ok {
			return nil, d.refuse("the %s is not JSON: a key is no string", d.what)
		}
		d.path = append(d.path, key)
		if _, twice := seen[key]; twice {
			return nil, d.refuse("this key is there twice")
		}
		kid, err := d.next()
		if err != nil {
			return nil, err
		}
		d.path = d.path[:len(d.path)-1]
		keys, kids = append(keys, key), append(kids, kid)
		seen[key] = kid.plain
	}
	if _, err := d.token(); err != nil {
		return nil, err
	}
	n := &node{kind: objectKind, keys: keys, kids: kids, plain: seen}
	n.measure()
	return n, nil
}

// maxDigits bounds the literal of a number; the greatest float64 has 309 digits.
const maxDigits = 400

// badNumber returns why a number is refused. The bound on the exponent matters:
// 1e-999999999 as an exact fraction would fill the memory.
func badNumber(literal string) string {
	if len(literal) > maxDigits {
		return fmt.Sprintf("a number of %d digits is too long", len(literal))
	}
	if at := strings.IndexAny(literal, "eE"); at >= 0 {
		if exponent, err := strconv.Atoi(literal[at+1:]); err != nil || exponent > maxDigits || exponent < -maxDigits {
			return fmt.Sprintf("the number %s is out of range", clip(literal, 40))
		}
	}
	if f, err := strconv.ParseFloat(literal, 64); err != nil || math.IsInf(f, 0) {
		return fmt.Sprintf("the number %s is out of range", clip(literal, 40))
	}
	return ""
}

// whole returns the literal of a number without a fraction or exponent, if its
// value is an integer.
func whole(literal string) (string, bool) {
	if !strings.ContainsAny(literal, ".eE") {
		return literal, true
	}
	r, ok := new(big.Rat).SetString(literal)
	if !ok || !r.IsInt() {
		return "", false
	}
	return r.Num().String(), true
}

var (
	null    = &node{kind: nullKind, text: "null", own: 1, size: 1}
	isTrue  = &node{kind: boolKind, text: "true", plain: true, own: 1, size: 1}
	isFalse = &node{kind: boolKind, text: "false", plain: false, own: 1, size: 1}
)

func newBool(b bool) *node {
	if b {
		return isTrue
	}
	return isFalse
}

func newNumber(literal string) *node {
	return &node{kind: numberKind, text: literal, plain: json.Number(literal), own: 1, size: 1}
}

func newText(text string) *node {
	size := 1 + len(text)/64
	return &node{kind: textKind, text: text, plain: text, own: size, size: size}
}

func newArray(kids []*node) *node {
	n := &node{kind: arrayKind, kids: kids}
	plain := make([]any, len(kids))
	for i, kid := range kids {
		plain[i] = kid.plain
	}
	n.plain = plain
	n.measure()
	return n
}

func newObject(keys []string, kids []*node) *node {
	plain := make(map[string]any, len(keys))
	for i, key := range keys {
		plain[key] = kids[i].plain
	}
	n := &node{kind: objectKind, keys: keys, kids: kids, plain: plain}
	n.measure()
	return n
}

func (n *node) measure() {
	n.own = 1
	for _, key := range n.keys {
		n.own += len(key) / 64
	}
	n.size = n.own
	for _, kid := range n.kids {
		n.size += kid.size
	}
}

// member returns the value of a key, nil if there is none.
func (n *node) member(key string) *node {
	for i, name := range n.keys {
		if name == key {
			return n.kids[i]
		}
	}
	return nil
}

// appendJSON writes the value, members in their order.
func (n *node) appendJSON(b []byte) []byte {
	switch n.kind {
	case textKind:
		return appendString(b, n.text)
	case arrayKind:
		b = append(b, '[')
		for i, kid := range n.kids {
			if i > 0 {
				b = append(b, ',')
			}
			b = kid.appendJSON(b)
		}
		return append(b, ']')
	case objectKind:
		b = append(b, '{')
		for i, kid := range n.kids {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendString(b, n.keys[i]), ':')
			b = kid.appendJSON(b)
		}
		return append(b, '}')
	default:
		return append(b, n.text...)
	}
}

// appendString writes a JSON string without the escapes that HTML wants.
func appendString(b []byte, s string) []byte {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil { // a string always encodes
		return append(b, `""`...)
	}
	return append(b, bytes.TrimSuffix(out.Bytes(), []byte("\n"))...)
}

// clip shortens text for a message.
func clip(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	return text[:most] + "…"
}
