// Package format reads and writes property graphs as files: JSON Lines, JSON documents, CSV in the
// format of Neo4j's import, and GraphML.
//
// Files are not trusted. A reader bounds the bytes of a record before it decodes them, holds one
// record at a time, and stops at the first malformed record. The error gives the position of the
// record and suggests a change. Where a format has a feature that property graphs lack, such as the
// ports of GraphML, the reader calls [Sink.Note].
package format

// Node is a node of a property graph. A property is a bool, an int64, a finite float64, a
// string, a []any or a map[string]any of these. Lists may contain nil.
type Node struct {
	ID         string
	Labels     []string
	Properties map[string]any
	Line       int // in the file, from 1; in a JSON document, the number of its list's element
}

// Edge is a relationship of a property graph. From and To are identifiers of nodes.
type Edge struct {
	ID         string // empty if the file gives none
	Type       string
	From, To   string
	Properties map[string]any
	Line       int
}

// Sink receives the records that a reader finds, in file order. An edge may precede its nodes. Node
// or Edge may be nil: a reader does not decode records for a nil function.
type Sink struct {
	Node func(Node) error
	Edge func(Edge) error
	Note func(what string) // once for each occurrence
}

// Options configure how a file is read.
type Options struct {
	// Comma separates the fields of CSV. If it is 0, the separator is the comma, tab, semicolon or
	// bar that occurs in the header.
	Comma rune
	// ListComma separates the labels and the elements of lists in CSV. If it is 0, the separator is
	// a semicolon, or a bar if fields are separated by semicolons.
	ListComma rune
	// Header is the first row for a CSV file without one.
	Header string
	// Labels are given to nodes without a label.
	Labels []string
	// Type is given to edges without a type, by default [UntypedEdge].
	Type string
}

// UntypedEdge is the type of edges without a type in their file. Neo4j's GraphML import uses the
// same type.
const UntypedEdge = "RELATED"

// Source provides a graph to writers: each function passes on all nodes or edges, and stops at the
// first error. Some writers iterate twice.
type Source struct {
	Nodes func(func(Node) error) error
	Edges func(func(Edge) error) error
}
