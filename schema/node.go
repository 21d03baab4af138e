package schema

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"
)

// kind is the kind of a JSON value.
type kind uint8

const (
	nullKind kind = iota
	boolKind
	numberKind
	textKind
	arrayKind
	objectKind
)

// String returns the name of the type in JSON Schema.
func (k kind) String() string {
	return []string{"null", "boolean", "number", "string", "array", "object"}[k]
}

// node is a JSON value that keeps the order of its members. It is immutable, so the values
// before and after a coercion can share parts.
type node struct {
	kind   kind
	text   string // a string, or the literal of a number, true, false or null
	keys   []string
	kids   []*node
	places map[string]int // the index of each key; nil if the keys are few
	// own is 1, plus 1 for each 64 bytes of the text or the keys, or for each 64 digits of a
	// number when written out. size is the sum of own over this value and all values in it.
	own, size int
	height    int // depth to which arrays and objects are nested in it
}

var (
	null    = &node{kind: nullKind, text: "null", own: 1, size: 1}
	isTrue  = &node{kind: boolKind, text: "true", own: 1, size: 1}
	isFalse = &node{kind: boolKind, text: "false", own: 1, size: 1}
)

// newBool returns true or false.
func newBool(b bool) *node {
	if b {
		return isTrue
	}
	return isFalse
}

// newNumber returns a number with the given literal.
func newNumber(literal string) *node {
	n := numberNode(literal)
	return &n
}

// numberNode returns a number by value.
func numberNode(literal string) node {
	size := sizeOfNumber(literal)
	return node{kind: numberKind, text: literal, own: size, size: size}
}

// newText returns a string.
func newText(text string) *node {
	n := textNode(text)
	return &n
}

// textNode returns a string by value.
func textNode(text string) node {
	size := 1 + len(text)/64
	return node{kind: textKind, text: text, own: size, size: size}
}

// newArray returns an array.
func newArray(kids []*node) *node {
	n := &node{kind: arrayKind, kids: kids}
	n.measure()

	return n
}

// newObject returns an object whose member keys[i] is kids[i].
func newObject(keys []string, kids []*node) *node {
	n := &node{kind: objectKind, keys: keys, kids: kids}
	n.index()
	n.measure()

	return n
}

// fewKeys is the maximum number of keys that are compared one by one to find a member.
const fewKeys = 8

// add appends a member to an object that is being read.
func (n *node) add(key string, kid *node) {
	n.keys, n.kids = append(n.keys, key), append(n.kids, kid)
	if n.places != nil {
		n.places[key] = len(n.keys) - 1
		return
	}
	n.index()
}

// index sets places if there are many keys.
func (n *node) index() {
	if len(n.keys) <= fewKeys {
		return
	}
	n.places = make(map[string]int, len(n.keys))
	for i, key := range n.keys {
		n.places[key] = i
	}
}

// measure sets own and size from the keys and kids.
func (n *node) measure() {
	n.own = 1
	for _, key := range n.keys {
		n.own += len(key) / 64
	}
	n.size, n.height = n.own, 1
	for _, kid := range n.kids {
		n.size += kid.size
		n.height = max(n.height, 1+kid.height)
	}
}

// member returns the value of a key, or nil.
func (n *node) member(key string) *node {
	if n.places != nil {
		if i, ok := n.places[key]; ok {
			return n.kids[i]
		}
		return nil
	}
	for i, name := range n.keys {
		if name == key {
			return n.kids[i]
		}
	}
	return nil
}

// appendJSON appends the value as JSON, with members in order.
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

// appendString appends a JSON string, without HTML escapes.
func appendString(b []byte, s string) []byte {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(s); err != nil { // a string can always be encoded
		return append(b, `""`...)
	}
	return append(b, bytes.TrimSuffix(out.Bytes(), []byte("\n"))...)
}

// clip shortens a string for a message to the given number of bytes.
func clip(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	for limit > 0 && !utf8.RuneStart(text[limit]) {
		limit--
	}
	return text[:limit] + "…"
}
