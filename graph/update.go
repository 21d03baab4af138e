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
	// ID identifies the node. In Cypher, it is the property id.
	ID string
	// Labels are the node's types.
	Labels []string
	// Properties are nil, bools, numbers, strings, times, and lists and maps of these.
	Properties map[string]any
}

// Edge is a relationship of the property graph.
type Edge struct {
	// ID may be empty.
	ID string
	// From and To are the ids of existing nodes.
	From, To string
	// Type is the relationship's type, such as CAUSED_BY.
	Type string
	// Properties are like those of a Node.
	Properties map[string]any
}

// Update is an open update of a graph. It is valid until the function that was given to
// Graph.Update returns.
type Update struct {
	ctx      context.Context
	instance *instance
	// batch holds nodes or edges that have not yet been sent to the engine, for operation.
	batch     encoder
	operation uint32
	running   chan reply // receives the answer to the engine's current call, nil without one
	finish    func(answer []byte) error
	sent      int   // the bytes of all calls
	failed    error // the first error of the engine: a call may have been half done
}

// reply is the outcome of a call.
type reply struct {
	answer []byte
	err    error
}

// batchSize is the size of a batch of nodes or edges for the engine, in bytes.
const batchSize = 256 << 10

// muchSent is the number of bytes from which an update is treated as a load. After a load, the
// columns that Cypher reads are built immediately: while the engine's memory is still in use, this
// takes half the time.
const muchSent = 1 << 20

// Update runs change and keeps its changes if it returns nil. Otherwise, or if the engine fails,
// the graph remains unchanged. Until Update returns, readers read the old graph. Update is the only
// way to write to a graph. Updates wait for one another, and for an inference, so change must not
// call methods of the graph.
func (g *Graph) Update(ctx context.Context, change func(*Update) error) error {
	return g.write(ctx, func(in *instance) (readiness, error) {
		ctx, cancel := context.WithTimeoutCause(ctx, g.config.LoadTimeout,
			&LimitError{"LoadTimeout", g.config.LoadTimeout.String()})
		u := &Update{ctx: ctx, instance: in}

		defer func() {
			cancel()
			_ = u.wait() // the update has already failed
			u.instance = nil
		}()

		if err := change(u); err != nil {
			return 0, err
		}
		if err := u.flush(); err != nil || u.sent < muchSent {
			return 0, err
		}
		_, err := u.call(job{operation: opReadyCypher})
		return readyCypher, err
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

// AddEdge adds a relationship between existing nodes.
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
	if u.operation != operation || len(u.batch.data) >= batchSize || u.instance == nil {
		if err := u.send(); err != nil {
			return err
		}
		u.operation = operation
	}

	return u.batch.try(write)
}

// newBatch returns an encoder with room for a batch, so that it need not grow.
func newBatch() encoder { return encoder{data: make([]byte, 0, batchSize+batchSize/8)} }

// try writes a record, or nothing if the record cannot be written.
func (e *encoder) try(write func(*encoder)) error {
	start := len(e.data)
	write(e)
	if err := e.err; err != nil {
		*e = encoder{data: e.data[:start]}
		return err
	}
	return nil
}

// send passes the pending batch to the engine.
func (u *Update) send() error {
	if u.instance == nil {
		return errors.New("the update has ended")
	}
	if len(u.batch.data) == 0 {
		return u.failed
	}

	request := u.batch.data
	u.batch = newBatch()
	return u.start(job{operation: u.operation, request: request}, nil)
}

// flush passes the pending batch to the engine and waits for it.
func (u *Update) flush() error {
	if err := u.send(); err != nil {
		return err
	}
	return u.wait()
}

// start makes the engine work on a call while the caller prepares the next one. When the call has
// ended, wait passes its answer to finish, unless finish is nil.
func (u *Update) start(job job, finish func(answer []byte) error) error {
	if err := u.wait(); err != nil {
		return err
	}

	job.isLoad = true
	if job.operation != opReadRDF && job.operation != opReadyCypher {
		u.instance.graph.hasRecords.Store(true)
	}
	u.sent += len(job.request)

	ended := make(chan reply, 1)
	u.running, u.finish = ended, finish
	go func(ctx context.Context, in *instance) {
		answer, err := in.call(ctx, job)
		ended <- reply{answer, err}
	}(u.ctx, u.instance)
	return nil
}

// wait waits for the engine's current call.
func (u *Update) wait() error {
	if u.running == nil {
		return u.failed
	}
	last := <-u.running
	u.running, u.failed = nil, last.err

	if u.failed == nil && u.finish != nil {
		u.failed = u.finish(last.answer)
	}
	return u.failed
}

func (u *Update) call(job job) (answer []byte, err error) {
	err = u.start(job, func(whole []byte) error {
		answer = whole
		return nil
	})
	if err != nil {
		return nil, err
	}
	return answer, u.wait()
}

// RDF adds the facts of a document in one of the formats turtle, ntriples, trig, nquads, rdfxml and
// jsonld. The base resolves relative IRIs and may be empty. A document may contain at most 1000
// nested brackets or elements. JSON-LD with a remote context is an error: nothing is fetched.
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

// explainRDF adds advice to the error of a refused document.
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

// guardRDF returns the content in a form that is safe for a parser, and the canonical name of the
// format.
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
	if _, err := u.call(job{operation: opReadyCypher}); err != nil { // returns immediately if there is nothing new
		return nil, err
	}

	answer, err := u.call(job{operation: opCypherWrite, request: request})
	if err != nil {
		return nil, err
	}
	return decodeRows(answer, config)
}

// LoadRDF runs an Update with a single RDF call.
func (g *Graph) LoadRDF(ctx context.Context, r io.Reader, format, base string) error {
	return g.Update(ctx, func(u *Update) error { return u.RDF(r, format, base) })
}
