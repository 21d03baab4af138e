package format

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/rlmhq/rlm/internal/text/lazyregexp"
)

// Format is a format of files.
type Format string

// These are the formats. The first six are RDF.
const (
	Turtle    Format = "turtle"
	NTriples  Format = "ntriples"
	TriG      Format = "trig"
	NQuads    Format = "nquads"
	RDFXML    Format = "rdfxml"
	JSONLD    Format = "jsonld"
	JSONLines Format = "jsonl"
	JSON      Format = "json" // a list of records, or nodes and edges as in networkx
	CSV       Format = "csv"
	GraphML   Format = "graphml"
)

// extensions maps the extensions of file names to formats. If the extension is ambiguous, the
// content determines the format.
var extensions = map[string]Format{
	".ttl": Turtle, ".turtle": Turtle, ".n3": Turtle,
	".nt": NTriples, ".ntriples": NTriples,
	".trig": TriG, ".nq": NQuads, ".nquads": NQuads,
	".rdf": RDFXML, ".rdfs": RDFXML, ".jsonld": JSONLD,
	".jsonl": JSONLines, ".ndjson": JSONLines,
	".csv": CSV, ".tsv": CSV,
	".graphml": GraphML, ".owl": inDoubt, ".xml": inDoubt, ".json": inDoubt,
}

const inDoubt Format = ""

// Known lists the formats for error messages.
const Known = "Turtle (.ttl), N-Triples (.nt), TriG (.trig), N-Quads (.nq), RDF/XML (.rdf, .owl), JSON-LD (.jsonld), " +
	"JSON Lines (.jsonl), JSON (.json), CSV of Neo4j's import (.csv, .tsv), GraphML (.graphml), each also as .gz"

// Parse returns the format with the given name or file extension.
func Parse(name string) (Format, error) {
	name = strings.ToLower(name)
	if f, ok := extensions["."+name]; ok && f != inDoubt {
		return f, nil
	}
	for _, f := range []Format{
		Turtle, NTriples, TriG, NQuads, RDFXML, JSONLD, JSONLines, JSON, CSV, GraphML,
	} {
		if name == string(f) {
			return f, nil
		}
	}
	return "", fmt.Errorf("unknown format %q: use one of turtle, ntriples, trig, nquads, rdfxml, jsonld, "+
		"jsonl, json, csv, graphml", cutName(name))
}

// IsRDF reports whether a file of the format contains triples.
func (f Format) IsRDF() bool {
	switch f {
	case Turtle, NTriples, TriG, NQuads, RDFXML, JSONLD:
		return true
	default:
		return false
	}
}

// IsKnownName reports whether a file with that name is expected to be a graph.
func IsKnownName(name string) bool {
	_, ok := extensions[extension(name)]
	return ok
}

// extension returns the extension of a name in lower case, ignoring .gz.
func extension(name string) string {
	return filepath.Ext(strings.TrimSuffix(strings.ToLower(name), ".gz"))
}

// Detect returns the format of a file from its name and its first bytes.
func Detect(name string, head []byte) (Format, error) {
	if f, ok := extensions[extension(name)]; ok && f != inDoubt {
		return f, nil
	}
	head = bytes.TrimSpace(head)
	switch {
	case len(head) == 0:
		return "", errors.New("the file is empty")
	case head[0] == '<' && !startsWithIRI(head):
		return detectXML(head)
	case head[0] == '{', head[0] == '[':
		return detectJSON(head), nil
	case functional.Match(head):
		return "", errors.New("the file is OWL in functional or Manchester syntax: convert it to Turtle")
	case turtle.Match(head), startsWithIRI(head), strings.HasSuffix(extension(name), ".owl"):
		return Turtle, nil
	}

	line, _, _ := bytes.Cut(head, []byte("\n"))
	if _, _, err := splitHeader(string(line), 0); err == nil {
		return CSV, nil
	}

	return "", errors.New("cannot tell the format of the file: name it by its format, one of " + Known)
}

var (
	functional = lazyregexp.New(`^(Prefix\(|Ontology\(|Prefix:|Ontology:)`)
	turtle     = lazyregexp.New(`(?im)^(@prefix|@base|prefix|base|_:\S+)\s`)
	iri        = lazyregexp.New(`^<[a-zA-Z][a-zA-Z0-9+.-]*:[^\s<>"]*>\s`)
	jsonLD     = lazyregexp.New(`"@(context|graph|id|type)"\s*:`)
	nodeList   = lazyregexp.New(`"(nodes|links|edges|rels)"\s*:\s*\[`)
)

// startsWithIRI reports whether text begins like N-Triples.
func startsWithIRI(head []byte) bool { return iri.Match(head) }

// detectXML distinguishes documents by their first element.
func detectXML(head []byte) (Format, error) {
	root := regexp.MustCompile(`<([A-Za-z_][\w.-]*:)?(\w+)[\s>/]`).FindSubmatch(head)
	switch {
	case root == nil:
	case string(root[2]) == "graphml":
		return GraphML, nil
	case string(root[2]) == "RDF":
		return RDFXML, nil
	case string(root[2]) == "Ontology":
		return "", errors.New("the file is OWL/XML: convert it to RDF/XML or Turtle")
	}

	return "", errors.New("the XML document is neither GraphML nor RDF/XML: convert it to one of " + Known)
}

// detectJSON distinguishes JSON-LD, JSON Lines and a JSON document.
func detectJSON(head []byte) Format {
	line, _, more := bytes.Cut(head, []byte("\n"))
	switch {
	case jsonLD.Match(head) && !nodeList.Match(head):
		return JSONLD
	case line[0] == '{' && json.Valid(line) && more && !nodeList.Match(line):
		return JSONLines
	case line[0] == '{' && json.Valid(line) && !nodeList.Match(line): // one record
		return JSONLines
	}

	return JSON
}

// Read reads a property graph from a file that Open has opened. The error names the line or the
// element, and suggests a change.
func Read(f Format, in io.Reader, o Options, sink Sink) error {
	r := &reading{Options: o, sink: sink}
	switch f {
	case JSONLines:
		return r.readJSONLines(in)
	case JSON:
		return r.readJSON(in)
	case CSV:
		return r.readCSV(in)
	case GraphML:
		return r.readGraphML(in)
	default:
		return fmt.Errorf("%s is not a format of property graphs", f)
	}
}
