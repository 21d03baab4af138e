package graph

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/rlmhq/rlm/graph/internal/format"
)

// Node is a node of the property graph.
type Node struct {
	// ID identifies the node. It is the property id of Cypher.
	ID string
	// Labels are the node's types.
	Labels []string
	// Properties are nil, bool, numbers, strings, times, and lists and maps of them.
	Properties map[string]any
}

// Edge is a relationship of the property graph.
type Edge struct {
	// ID may be empty.
	ID string
	// From and To are the ids of nodes that exist.
	From, To string
	// Type is the relationship's type, such as CAUSED_BY.
	Type string
	// Properties are as those of a Node.
	Properties map[string]any
}

// Update is an open update of a graph. It is valid until the function returns that was given
// to Graph.Update.
type Update struct {
	ctx      context.Context
	instance *instance
	// batch holds nodes or edges that the engine does not have yet, for operation.
	batch     encoder
	operation uint32
	failed    error // the first error of the engine: half of a call may have been done
}

// batchSize is how many bytes of nodes or edges the engine gets at once.
const batchSize = 256 << 10

// Update runs change, the one way to write to a graph, and keeps what it did if it returns nil.
// Otherwise, or if the engine fails, the graph is as it was. Readers wait until then, so change
// must not call methods of the graph.
func (g *Graph) Update(ctx context.Context, change func(*Update) error) error {
	return g.write(ctx, func(in *instance) (readiness, error) {
		ctx, cancel := context.WithTimeoutCause(ctx, g.config.LoadTimeout,
			&LimitError{"LoadTimeout", g.config.LoadTimeout.String()})
		defer cancel()

		u := &Update{ctx: ctx, instance: in}
		defer func() { u.instance = nil }()
		if err := change(u); err != nil {
			return 0, err
		}
		if u.failed != nil {
			return 0, u.failed
		}
		return 0, u.flush()
	})
}

// AddNode adds a node. If its ID exists, the labels and properties are added to that node.
func (u *Update) AddNode(n Node) error {
	if n.ID == "" {
		return errors.New("a node needs an ID")
	}

	return u.add(opAddNodes, func(e *encoder) {
		e.text(n.ID)
		e.texts(n.Labels)
		e.mapping(n.Properties, 0)
	})
}

// AddEdge adds a relationship between nodes that exist.
func (u *Update) AddEdge(edge Edge) error {
	if edge.Type == "" {
		return fmt.Errorf("the edge from %q to %q needs a Type", edge.From, edge.To)
	}

	return u.add(opAddEdges, func(e *encoder) { e.edge(edge) })
}

func (e *encoder) edge(edge Edge) {
	e.text(edge.ID)
	e.text(edge.From)
	e.text(edge.To)
	e.text(edge.Type)
	e.mapping(edge.Properties, 0)
}

func (u *Update) add(operation uint32, write func(*encoder)) error {
	if u.operation != operation || len(u.batch.data) >= batchSize {
		if err := u.flush(); err != nil {
			return err
		}
		u.operation = operation
	}

	start := len(u.batch.data)
	write(&u.batch)
	if err := u.batch.err; err != nil {
		u.batch = encoder{data: u.batch.data[:start]}
		return err
	}
	return nil
}

// flush passes what waits to the engine.
func (u *Update) flush() error {
	if len(u.batch.data) == 0 {
		return nil
	}
	_, err := u.call(job{operation: u.operation, request: u.batch.data})
	u.batch = encoder{data: u.batch.data[:0]}
	return err
}

func (u *Update) call(job job) ([]byte, error) {
	if u.instance == nil {
		return nil, errors.New("the update has ended")
	}
	if u.failed != nil {
		return nil, u.failed
	}

	job.isLoad = true
	answer, err := u.instance.call(u.ctx, job)
	u.failed = err
	return answer, err
}

// RDF adds the facts of a text in a format: turtle, ntriples, trig, nquads, rdfxml or jsonld.
// The base resolves relative IRIs and may be empty. A text may not have more than 1000 brackets
// or elements within one another. JSON-LD with a remote context is an error: nothing is fetched.
func (u *Update) RDF(r io.Reader, formatName, base string) error {
	if err := u.flush(); err != nil {
		return err
	}
	content, f, err := guardRDF(r, formatName)
	if err != nil {
		u.failed = explainRDF(err)
		return u.failed
	}

	var e encoder
	e.text(f)
	e.text(base)
	if e.err != nil {
		return e.err
	}
	_, err = u.call(job{operation: opReadRDF, request: e.data, input: content})
	return explainRDF(err)
}

// explainRDF says what to change in a document that was refused.
func explainRDF(err error) error {
	var refused *format.DocumentError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &refused):
		return &QueryError{Message: refused.Reason.Error(), Line: refused.Line}
	case strings.Contains(err.Error(), "buffer maximal size"):
		return &QueryError{Message: "a text, a name or a line has more than 16 MiB: split it"}
	case strings.Contains(err.Error(), "LoadDocumentCallback"):
		const message = "it names a remote context, which is never fetched: write the context into the file"
		return &QueryError{Message: message}
	}
	return err
}

// guardRDF returns the content without what a parser could not bear, and the format's own name.
func guardRDF(r io.Reader, formatName string) (io.Reader, string, error) {
	f, err := format.Parse(formatName)
	if err != nil {
		return nil, "", err
	}
	if !f.IsRDF() {
		return nil, "", fmt.Errorf("%s is not a format of RDF: use Graph.Load", f)
	}
	content, err := format.GuardRDF(f, r)
	return content, string(f), err
}

// Cypher runs a query that may write, and returns its rows.
func (u *Update) Cypher(query string, params map[string]any) (*Rows, error) {
	if err := u.flush(); err != nil {
		return nil, err
	}
	config := u.instance.graph.config
	request, err := cypherRequest(config, query, params)
	if err != nil {
		return nil, err
	}
	if _, err := u.call(job{operation: opReadyCypher}); err != nil { // at once if there is nothing new
		return nil, err
	}

	answer, err := u.call(job{operation: opCypherWrite, request: request})
	if err != nil {
		return nil, err
	}
	return decodeRows(answer, config)
}

// LoadRDF is an Update by one RDF call.
func (g *Graph) LoadRDF(ctx context.Context, r io.Reader, format, base string) error {
	return g.Update(ctx, func(u *Update) error { return u.RDF(r, format, base) })
}
