package schema

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
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

// decoder reads one JSON document that is known to be well formed.
type decoder struct {
	bounds
	data []byte
	at   int
	path []string // where the value that is read stands
	left int
	keys map[string]string // those that were seen: rows repeat them
	slab []node            // room for scalars
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
	d := decoder{bounds: limits, data: raw, left: limits.values}
	if len(raw) > limits.bytes {
		return nil, d.refuse("the %s has %d bytes, more than %d", limits.what, len(raw), limits.bytes)
	}
	if !utf8.Valid(raw) {
		return nil, d.refuse("the %s is not UTF-8", limits.what)
	}
	if !json.Valid(raw) {
		return nil, d.invalid()
	}
	return d.next()
}

// invalid says what is wrong with a document that is no JSON.
func (d *decoder) invalid() error {
	var value json.RawMessage
	err := json.Unmarshal(d.data, &value)
	var syntax *json.SyntaxError
	switch {
	case !errors.As(err, &syntax):
		return d.refuse("the %s is not JSON", d.what)
	case syntax.Offset >= int64(len(d.data)) && strings.HasPrefix(syntax.Error(), "unexpected end"):
		return d.refuse("the %s is not JSON: it ends too early", d.what)
	case strings.Contains(syntax.Error(), "max depth"):
		return d.refuse("the %s is nested deeper than %d", d.what, d.depth)
	}
	return d.refuse("the %s is not JSON: %s at byte %d", d.what, clip(syntax.Error(), 100), syntax.Offset-1)
}

func (d *decoder) refuse(format string, args ...any) error {
	return &malformed{append([]string(nil), d.path...), fmt.Sprintf(format, args...)}
}

// peek returns the next byte that is no white space.
func (d *decoder) peek() byte {
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

// next reads the value that comes next.
func (d *decoder) next() (*node, error) {
	if d.left--; d.left < 0 {
		return nil, d.refuse("the %s has more than %d parts", d.what, d.values)
	}
	switch d.peek() {
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
		return d.keep(textNode(string(d.text()))), nil
	case '[', '{':
		if len(d.path) >= d.depth {
			return nil, d.refuse("the %s is nested deeper than %d", d.what, d.depth)
		}
		if d.data[d.at] == '[' {
			return d.array()
		}
		return d.object()
	}
	return d.number()
}

func (d *decoder) number() (*node, error) {
	start := d.at
	for d.at < len(d.data) && strings.IndexByte("+-.0123456789eE", d.data[d.at]) >= 0 {
		d.at++
	}
	literal := string(d.data[start:d.at])
	if reason := badNumber(literal); reason != "" {
		return nil, d.refuse("%s", reason)
	}
	return d.keep(numberNode(literal)), nil
}

// keep puts a node among others: they live and die together.
func (d *decoder) keep(n node) *node {
	if len(d.slab) == cap(d.slab) {
		d.slab = make([]node, 0, min(64, 1+len(d.data)/16))
	}
	d.slab = append(d.slab, n)
	return &d.slab[len(d.slab)-1]
}

// text reads a string. What it returns may be a part of the document.
func (d *decoder) text() []byte {
	start := d.at + 1
	escaped := false
	for d.at++; d.data[d.at] != '"'; d.at++ {
		if d.data[d.at] == '\\' {
			escaped = true
			d.at++
		}
	}
	d.at++
	if !escaped {
		return d.data[start : d.at-1]
	}
	var text string
	if err := json.Unmarshal(d.data[start-1:d.at], &text); err != nil { // it is well formed
		return nil
	}
	return []byte(text)
}

// key reads the name of a member.
func (d *decoder) key() string {
	text := d.text()
	if known, ok := d.keys[string(text)]; ok {
		return known
	}
	key := string(text)
	if d.keys == nil {
		d.keys = map[string]string{}
	}
	if len(d.keys) < 100 {
		d.keys[key] = key
	}
	return key
}

// more steps to the next item; it reports whether there is one before the end.
func (d *decoder) more(end byte, first bool) bool {
	c := d.peek()
	if c == end {
		d.at++
		return false
	}
	if !first {
		d.at++ // the comma
	}
	return true
}

func (d *decoder) array() (*node, error) {
	d.at++
	var kids []*node
	for d.more(']', len(kids) == 0) {
		d.path = append(d.path, "")
		kid, err := d.next()
		if err != nil {
			var m *malformed
			if errors.As(err, &m) { // the number is written only when it is wanted
				m.path[len(d.path)-1] = strconv.Itoa(len(kids))
			}
			return nil, err
		}
		d.path = d.path[:len(d.path)-1]
		kids = append(kids, kid)
	}
	return newArray(kids), nil
}

func (d *decoder) object() (*node, error) {
	d.at++
	n := &node{kind: objectKind, keys: make([]string, 0, 8), kids: make([]*node, 0, 8)}
	plain := map[string]any{}
	for d.more('}', len(n.keys) == 0) {
		d.peek()
		key := d.key()
		d.path = append(d.path, key)
		if _, twice := plain[key]; twice {
			return nil, d.refuse("this key is there twice")
		}
		d.peek()
		d.at++ // the colon
		kid, err := d.next()
		if err != nil {
			return nil, err
		}
		d.path = d.path[:len(d.path)-1]
		n.keys, n.kids = append(n.keys, key), append(n.kids, kid)
		plain[key] = kid.plain
	}
	n.plain = plain
	n.measure()
	return n, nil
}

// maxDigits bounds the literal of a number; the greatest float64 has 309 digits.
const maxDigits = 400

// badNumber returns why a number is refused. The bound on the exponent matters:
// 1e-999999999 as an exact fraction would fill the memory.
func badNumber(literal string) string {
	if len(literal) < 300 && !strings.ContainsAny(literal, "eE") && literal != "" && literal[0] != '.' && literal[len(literal)-1] != '.' {
		return "" // the scanner has seen that it is a number
	}
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
	if !strings.ContainsAny(literal, "eE") {
		digits, fraction, _ := strings.Cut(literal, ".")
		if digits == "-0" {
			digits = "0"
		}
		return digits, strings.Trim(fraction, "0") == ""
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
	n := numberNode(literal)
	return &n
}

func numberNode(literal string) node {
	return node{kind: numberKind, text: literal, plain: json.Number(literal), own: 1, size: 1}
}

func newText(text string) *node {
	n := textNode(text)
	return &n
}

func textNode(text string) node {
	size := 1 + len(text)/64
	return node{kind: textKind, text: text, plain: text, own: size, size: size}
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
