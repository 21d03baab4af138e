package graph

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"slices"

	"github.com/rlmhq/rlm/graph/internal/format"
)

// Dump writes the graph without inferred facts. In an RDF format (see [Update.RDF]), it streams all
// facts, including those of the property graph. In jsonl, json and graphml, it writes the property
// graph. Load reads each of these formats. The notes report what the format could not represent.
func (g *Graph) Dump(ctx context.Context, w io.Writer, formatName string) (notes []string, err error) {
	f, err := format.Parse(formatName)
	switch {
	case err != nil:
		return nil, err
	case f.IsRDF():
		return g.dumpRDF(ctx, w, string(f))
	case f == format.CSV:
		return nil, errors.New("csv needs two files: use DumpCSV")
	}
	err = g.readAll(ctx, readyCypher, func(in *instance) error {
		notes, err = format.Write(f, w, sourceOf(ctx, in))
		return err
	})

	return notes, err
}

// DumpCSV writes the property graph in the format of Neo4j's import. The notes report what the
// format could not represent.
func (g *Graph) DumpCSV(ctx context.Context, nodes, edges io.Writer) (notes []string, err error) {
	err = g.readAll(ctx, readyCypher, func(in *instance) error {
		notes, err = format.WriteCSV(nodes, edges, sourceOf(ctx, in))
		return err
	})
	return notes, err
}

// dumpRDF writes all facts except inferred ones.
func (g *Graph) dumpRDF(ctx context.Context, w io.Writer, formatName string) (notes []string, err error) {
	var e encoder
	e.text(formatName)
	if e.err != nil {
		return nil, e.err
	}
	_, err = g.read(ctx, readyFacts, job{operation: opWriteRDF, request: e.data, output: w, isLoad: true})
	if err != nil || !g.hasRecords.Load() {
		return nil, err
	}

	err = g.readAll(ctx, readyCypher, func(in *instance) error {
		notes, err = format.NotInRDF(sourceOf(ctx, in))
		return err
	})
	return notes, err
}

// sourceOf returns a source that passes on the nodes and edges of a view of the graph.
func sourceOf(ctx context.Context, in *instance) format.Source {
	return format.Source{
		Nodes: func(yield func(format.Node) error) error {
			return each(ctx, in, opWriteNodes, func(d *decoder) error {
				n := format.Node{ID: d.text(), Labels: d.texts()}
				slices.Sort(n.Labels) // the engine does not order them
				n.Properties = d.mapping(d.length(), 0)
				return yield(n)
			})
		},
		Edges: func(yield func(format.Edge) error) error {
			return each(ctx, in, opWriteEdges, func(d *decoder) error {
				e := format.Edge{ID: d.text(), From: d.text(), To: d.text(), Type: d.text()}
				e.Properties = d.mapping(d.length(), 0)
				return yield(e)
			})
		},
	}
}

// each calls use for each record that an operation writes.
func each(ctx context.Context, in *instance, operation uint32, use func(*decoder) error) error {
	r := &records{use: use}
	if _, err := in.call(ctx, job{operation: operation, output: r, isLoad: true}); err != nil {
		if r.failed != nil {
			return r.failed
		}
		return err
	}
	if len(r.rest) > 0 {
		return errMalformed
	}

	return nil
}

// maxRecord is the maximum size of a node or an edge that the engine writes, in bytes.
const maxRecord = 64 << 20

// records receives encoded records, each preceded by its length in four bytes.
type records struct {
	use    func(*decoder) error
	rest   []byte // the beginning of an incomplete record
	failed error
}

func (r *records) Write(p []byte) (int, error) {
	data := p
	if len(r.rest) > 0 {
		r.rest = append(r.rest, p...)
		data = r.rest
	}
	for len(data) >= 4 {
		n := int(binary.LittleEndian.Uint32(data))
		if n > maxRecord {
			return 0, r.fail(errMalformed)
		}
		if len(data) < 4+n {
			break
		}

		d := &decoder{data: data[4 : 4+n], left: maxRecord}
		err := r.use(d)
		if d.err != nil || err == nil && len(d.data) > 0 {
			err = errMalformed
		}
		if err != nil {
			return 0, r.fail(err)
		}
		data = data[4+n:]
	}

	r.rest = append(r.rest[:0], data...)
	return len(p), nil
}

func (r *records) fail(err error) error {
	r.failed = err
	return err
}
