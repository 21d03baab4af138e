package format

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// maxNesting is the maximum nesting depth of brackets in RDF. Parsers take quadratic time for
// them.
const maxNesting = 1000

// maxAttributes is the maximum number of attributes of all open RDF/XML elements. Each may declare
// a namespace, and a parser searches all of them for each name.
const maxAttributes = 1000

// DocumentError is the reason why an RDF document was refused.
type DocumentError struct {
	Line   int
	Reason error
}

// Error returns the line and the reason.
func (e *DocumentError) Error() string { return fmt.Sprintf("line %d: %v", e.Line, e.Reason) }

// Unwrap returns the reason.
func (e *DocumentError) Unwrap() error { return e.Reason }

var (
	errNesting  = fmt.Errorf("more than %d brackets or elements are open", maxNesting)
	errUnclosed = errors.New("the document ends within an element")
	errCrowded  = fmt.Errorf("the open elements have more than %d attributes together: "+
		"declare fewer namespaces, and write properties as elements", maxAttributes)
)

// GuardRDF returns a reader of RDF that fails where a parser would take quadratic time, expand or
// fetch something, or miss a premature end of the document.
func GuardRDF(f Format, in io.Reader) (io.Reader, error) {
	if f == RDFXML {
		var err error
		if in, err = checkRDFXML(in); err != nil {
			return nil, err
		}
	}
	in = boundNesting(f, in)
	if f == JSONLD {
		in = &contexts{in: in, sizes: map[string]int64{}}
	}
	return in, nil
}

// boundNesting returns a reader of an RDF format that fails where too many brackets or elements are
// open. In RDF/XML, it also fails if the document ends within an element, because the parser does
// not detect this.
func boundNesting(f Format, in io.Reader) io.Reader {
	switch f {
	case Turtle, TriG:
		return &nesting{in: in, scan: scanTurtle}
	case JSONLD:
		return &nesting{in: in, scan: scanJSON}
	case RDFXML:
		return &nesting{in: in, scan: scanXML, isXML: true}
	default:
		return in
	}
}

// nesting counts open brackets or elements. It recognises strings, IRIs and comments. In a
// malformed document, the count may be wrong, but the parser reports the error.
type nesting struct {
	in    io.Reader
	scan  func(n *nesting, c byte)
	isXML bool
	depth int
	line  int

	inside  token
	quote   byte
	quotes  int    // consecutive quotes just read
	escaped bool   // the next byte is part of a string or a name
	subset  bool   // a bracket of a document type is open
	recent  []byte // the last bytes of a token of XML

	attributes int   // attributes of the current tag and all open elements
	around     int   // only those of the open elements
	outside    []int // for each open element, the attributes of the elements around it
}

// token is the kind of token to which a byte belongs.
type token int

const (
	noToken token = iota
	anIRI
	aComment // in XML also a processing instruction, a CDATA section or a document type
	aQuote   // one or two quotes, which may begin a long string
	aText
	aLongText
	aTag
)

func (n *nesting) Read(p []byte) (int, error) {
	count, err := n.in.Read(p)
	for _, c := range p[:count] {
		if c == '\n' {
			n.line++
		}
		if n.scan(n, c); n.depth > maxNesting {
			return 0, &DocumentError{n.line + 1, errNesting}
		}
		if n.attributes > maxAttributes {
			return 0, &DocumentError{n.line + 1, errCrowded}
		}
	}

	if errors.Is(err, io.EOF) && n.isXML && (n.depth > 0 || n.inside != noToken) {
		return 0, &DocumentError{n.line + 1, errUnclosed}
	}

	return count, err
}

func (n *nesting) bracket(c byte) {
	switch c {
	case '(', '[', '{':
		n.depth++
	case ')', ']', '}':
		n.depth = max(0, n.depth-1)
	}
}

func scanJSON(n *nesting, c byte) {
	switch {
	case n.escaped:
		n.escaped = false
	case n.inside == aText && c == '\\':
		n.escaped = true
	case c == '"' && n.inside == aText:
		n.inside = noToken
	case c == '"':
		n.inside = aText
	case n.inside == noToken:
		n.bracket(c)
	}
}

func scanTurtle(n *nesting, c byte) {
	if n.escaped {
		n.escaped = false
		return
	}
	if n.inside == aQuote {
		if c == n.quote {
			if n.quotes++; n.quotes == 3 {
				n.inside, n.quotes = aLongText, 0
			}
			return
		}
		n.inside = aText
		if n.quotes == 2 { // an empty string has ended
			n.inside = noToken
		}
	}

	switch n.inside {
	case anIRI:
		if c == '>' || c == '\n' {
			n.inside = noToken
		}
	case aComment:
		if c == '\n' {
			n.inside = noToken
		}
	case aText:
		n.escaped = c == '\\'
		if c == n.quote || c == '\n' {
			n.inside = noToken
		}
	case aLongText:
		n.escaped = c == '\\'
		if c != n.quote {
			n.quotes = 0
		} else if n.quotes++; n.quotes == 3 {
			n.inside = noToken
		}
	default:
		n.scanBetween(c)
	}
}

// scanBetween processes a byte outside tokens.
func (n *nesting) scanBetween(c byte) {
	switch c {
	case '<':
		n.inside = anIRI
	case '#':
		n.inside = aComment
	case '"', '\'':
		n.inside, n.quote, n.quotes = aQuote, c, 1
	case '\\':
		n.escaped = true
	default:
		n.bracket(c)
	}
}

// scanXML counts open elements.
func scanXML(n *nesting, c byte) {
	switch n.inside {
	case noToken:
		if c == '<' {
			n.inside, n.recent = aTag, n.recent[:0]
		}
	case aText: // the value of an attribute
		if c == n.quote {
			n.inside = aTag
		}
	case aComment:
		n.remember(c)
		if c == '[' || c == ']' {
			n.subset = c == '['
		}
		if c == '>' && n.endsComment() {
			n.inside = noToken
		}
	default:
		n.scanTag(c)
	}
}

// scanTag processes a byte between < and >.
func (n *nesting) scanTag(c byte) {
	first := len(n.recent) == 0
	n.remember(c)
	switch {
	case first && (c == '!' || c == '?'):
		n.inside, n.subset = aComment, false
	case c == '"', c == '\'':
		n.inside, n.quote = aText, c
		n.attributes++
	case c != '>':
	case n.recent[0] == '/':
		n.inside = noToken
		n.close()
	default:
		n.inside = noToken
		if bytes.HasSuffix(n.recent, []byte("/>")) {
			n.attributes = n.around
		} else {
			n.depth++
			n.outside = append(n.outside, n.around)
			n.around = n.attributes
		}
	}
}

// close ends the innermost element, and removes its attributes.
func (n *nesting) close() {
	if n.depth == 0 {
		return
	}
	n.depth--
	n.around, n.outside = n.outside[n.depth], n.outside[:n.depth]
	n.attributes = n.around
}

// remember keeps the first eight and the last three bytes of a token.
func (n *nesting) remember(c byte) {
	const most = 11
	if len(n.recent) == most {
		copy(n.recent[most-3:], n.recent[most-2:])
		n.recent = n.recent[:most-1]
	}
	n.recent = append(n.recent, c)
}

// endsComment reports whether > ends a token that began with <! or <?.
func (n *nesting) endsComment() bool {
	t := n.recent
	switch {
	case t[0] == '?':
		return bytes.HasSuffix(t, []byte("?>"))
	case bytes.HasPrefix(t, []byte("!--")):
		return len(t) >= len("!---->") && bytes.HasSuffix(t, []byte("-->"))
	case bytes.HasPrefix(t, []byte("![CDATA[")):
		return bytes.HasSuffix(t, []byte("]]>"))
	}

	return !n.subset // a document type without brackets, or with closed ones
}
