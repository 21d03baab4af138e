package format

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/charmap"

	"github.com/rlmhq/rlm/internal/text/lazyregexp"
)

// encodings contains the supported encodings of XML documents in addition to UTF-8. ASCII is a
// subset of Latin-1.
var encodings = map[string]encoding.Encoding{
	"us-ascii": charmap.ISO8859_1, "ascii": charmap.ISO8859_1, "iso-8859-1": charmap.ISO8859_1,
	"iso-8859-15": charmap.ISO8859_15, "windows-1252": charmap.Windows1252,
}

// newXMLDecoder returns a strict decoder.
func newXMLDecoder(in io.Reader) *xml.Decoder {
	dec := xml.NewDecoder(in)
	dec.CharsetReader = func(label string, in io.Reader) (io.Reader, error) {
		known, ok := encodings[strings.ToLower(label)]
		if !ok {
			return nil, fmt.Errorf("the encoding %q is unknown: convert the file to UTF-8", cutName(label))
		}
		return known.NewDecoder().Reader(in), nil
	}

	return dec
}

// A document may declare entities within these limits: abbreviations of IRIs, which ontology
// editors write. No entity may refer to another, so that none can grow.
const (
	maxEntities = 256
	maxEntity   = 512 // bytes
)

var entity = lazyregexp.New(`^<!ENTITY\s+([A-Za-z_][\w.-]*)\s+(?:"([^"]*)"|'([^']*)')\s*>`)

var errDoctype = errors.New("its DOCTYPE declares more than short entities without references: " +
	"remove the DOCTYPE")

// readDoctype returns the entities that a document type declares. It refuses a document type that
// a parser could expand or fetch.
func readDoctype(directive []byte, mayDeclare bool) (map[string]string, error) {
	if !bytes.HasPrefix(directive, []byte("DOCTYPE")) {
		return nil, errors.New("it has a declaration outside of its document type: remove it")
	}
	open := bytes.IndexByte(directive, '[')
	if open < 0 {
		return nil, nil // names a type, which our parsers do not fetch
	}
	if !mayDeclare {
		return nil, errors.New("it declares entities: remove the DOCTYPE")
	}

	entities := map[string]string{}
	rest := bytes.TrimSpace(directive[open+1:])
	for n := 0; !bytes.HasPrefix(rest, []byte("]")); n++ {
		found := entity.FindSubmatch(rest)
		if found == nil || n == maxEntities {
			return nil, errDoctype
		}
		value := string(found[2]) + string(found[3])
		if len(value) > maxEntity || strings.ContainsAny(value, "&%<") {
			return nil, errDoctype
		}
		entities[string(found[1])] = value
		rest = bytes.TrimSpace(rest[len(found[0]):])
	}

	return entities, nil
}

// maxProlog bounds the comments and the document type before the first element.
const maxProlog = 1 << 20

// checkRDFXML reads an RDF/XML document up to its first element, refuses document types that could
// expand, and returns a reader of the whole document.
func checkRDFXML(in io.Reader) (io.Reader, error) {
	var read bytes.Buffer
	dec := newXMLDecoder(io.TeeReader(io.LimitReader(in, maxProlog), &read))
	for {
		token, err := dec.RawToken()
		line, _ := dec.InputPos()
		var syntax *xml.SyntaxError
		if errors.Is(err, io.EOF) || errors.As(err, &syntax) {
			reason := fmt.Errorf("cannot find the first element in %d bytes: %w", maxProlog, err)
			return nil, &DocumentError{line, reason}
		}
		if err != nil {
			return nil, err
		}
		switch t := token.(type) {
		case xml.StartElement:
			return io.MultiReader(&read, in), nil
		case xml.Directive:
			if dec.Entity, err = readDoctype(t, true); err != nil {
				return nil, &DocumentError{line, err}
			}
		}
	}
}
