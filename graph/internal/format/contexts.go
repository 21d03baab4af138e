package format

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
)

// The work for JSON-LD contexts is measured in bytes of contexts read. A document may cause work of
// freeContexts bytes, plus contextRatio times its own size.
const (
	freeContexts = 8 << 20
	contextRatio = 64
	copyCost     = 8    // bytes of a context that can be copied while one is read
	maxTerm      = 4096 // bytes of a string that is compared as a whole
	maxScoped    = 10_000
)

var (
	errContexts = errors.New("its contexts take too long, because each use of one reads or copies it: " +
		"define all terms in one @context at the beginning, without a @context within it")
	errLateContext = errors.New("a @context that has a @context within it must be the first member of its object")
)

// contexts bounds the work that a JSON-LD document causes with its contexts. A parser reads the
// context of a term again for each value of the term, and an object's own context copies the
// contexts around it. In a malformed document, the count may be wrong, but the parser reports the
// error.
type contexts struct {
	in   io.Reader
	line int
	read int64
	work int64

	text      []byte // the string being read, with escapes
	isText    bool
	isEscaped bool

	last  string // the last complete string
	key   string // the key of the value that begins
	open  []container
	sizes map[string]int64 // the sizes of scoped contexts, by term

	isLate bool // a context with another one follows members that it affects
}

// container is an open object or list.
type container struct {
	key       string // the key of the member that contains it
	isList    bool
	isContext bool  // it is a @context, or inside one
	scopes    bool  // it is a @context within another
	isFirst   bool  // no member precedes it
	members   int64 // so far
	start     int64 // where it begins
	known     int64 // the bytes of the contexts that apply in it
	contexts  int64 // in the objects within it
}

func (c *contexts) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	for _, b := range p[:n] {
		c.read++
		if b == '\n' {
			c.line++
		}
		c.scan(b)
		if c.isLate {
			return 0, &DocumentError{c.line + 1, errLateContext}
		}
		if c.work > freeContexts+contextRatio*c.read || len(c.sizes) > maxScoped {
			return 0, &DocumentError{c.line + 1, errContexts}
		}
	}
	return n, err
}

func (c *contexts) scan(b byte) {
	switch {
	case c.isEscaped:
		c.isEscaped = false
		c.keep(b)
	case c.isText && b == '"':
		c.isText = false
		c.endText()
	case c.isText:
		c.isEscaped = b == '\\'
		c.keep(b)
	case b == '"':
		c.isText, c.text = true, c.text[:0]
	case b == ':':
		c.key = c.last
	case b == ',':
		c.next()
	case b == '{', b == '[':
		c.begin(b == '[')
	case b == '}', b == ']':
		c.end()
	}
}

func (c *contexts) keep(b byte) {
	if len(c.text) <= maxTerm {
		c.text = append(c.text, b)
	}
}

// endText counts the uses of a term: as a key, or as a type. All long strings are treated as the
// same term.
func (c *contexts) endText() {
	var text string
	switch {
	case len(c.text) > maxTerm:
	case bytes.IndexByte(c.text, '\\') < 0:
		text = string(c.text)
	default:
		if err := json.Unmarshal([]byte(`"`+string(c.text)+`"`), &text); err != nil {
			text = ""
		}
	}
	c.last = text
	c.work += c.sizes[text]
}

// next begins the next member of an object, or the next value of a list.
func (c *contexts) next() {
	c.key = ""
	if n := len(c.open); n > 0 {
		c.open[n-1].members++
		if c.open[n-1].isList {
			c.key = c.open[n-1].key
			c.work += c.sizes[c.key]
		}
	}
}

func (c *contexts) begin(isList bool) {
	o := container{key: c.key, isList: isList, start: c.read}
	var outer container
	if n := len(c.open); n > 0 {
		outer = c.open[n-1]
	}
	o.isContext, o.known, o.isFirst = outer.isContext, outer.known, outer.members == 0
	if c.key == "@context" {
		o.scopes = outer.isContext && !outer.isList
		o.isContext = true
		c.work += o.known / copyCost
	}
	c.open = append(c.open, o)
	if !isList {
		c.key = ""
	}
}

// end closes a container. A scoped context is part of the definition of its term.
func (c *contexts) end() {
	n := len(c.open)
	if n == 0 {
		return
	}
	o := c.open[n-1]
	c.open = c.open[:n-1]
	c.key = ""
	if n == 1 {
		return
	}

	outer := &c.open[n-2]
	size := c.read - o.start
	switch {
	case o.scopes:
		c.sizes[outer.key] += size
		o.contexts = 1
	case o.isContext && !outer.isContext:
		c.isLate = !o.isFirst && o.contexts > 0
		outer.known += size
		c.work += outer.contexts * (size / copyCost)
		o.contexts = 1
	}
	outer.contexts += o.contexts
}
