package graph

import (
	"fmt"
	"slices"
	"strings"
)

// edgeAdder adds edges to an update. Instead of adding edges with missing nodes, it reports them
// with their lines.
type edgeAdder struct {
	update *Update
	miss   func(Edge, int) error
	batch  encoder
	edges  []Edge // the batch's edges
	lines  []int
}

func (u *Update) newEdges(miss func(Edge, int) error) *edgeAdder {
	return &edgeAdder{update: u, miss: miss}
}

func (a *edgeAdder) add(edge Edge, line int) error {
	if err := a.batch.try(func(e *encoder) { e.edge(edge) }); err != nil {
		return err
	}

	a.edges, a.lines = append(a.edges, edge), append(a.lines, line)
	if len(a.batch.data) < batchSize {
		return nil
	}
	return a.send()
}

// send passes the batch to the engine.
func (a *edgeAdder) send() error {
	if err := a.update.send(); err != nil { // the nodes
		return err
	}
	request, edges, lines := a.batch.data, a.edges, a.lines
	a.batch, a.edges, a.lines = newBatch(), nil, nil

	return a.update.start(job{operation: opAddKnownEdges, request: request}, func(answer []byte) error {
		d := decoder{data: answer}
		for n := d.length(); n > 0 && d.err == nil; n-- {
			i := int(d.number())
			if i < 0 || i >= len(edges) {
				return errMalformed
			}
			if err := a.miss(edges[i], lines[i]); err != nil {
				return err
			}
		}
		return d.err
	})
}

// flush passes the last batch to the engine, and waits for it.
func (a *edgeAdder) flush() error {
	if len(a.edges) > 0 {
		if err := a.send(); err != nil {
			return err
		}
	}
	return a.update.wait()
}

// showRDF copies the loaded facts into the property graph.
func (u *Update) showRDF() error {
	if err := u.flush(); err != nil {
		return err
	}
	_, err := u.call(job{operation: opReadyCypher})
	return err
}

// explainMissing names the missing nodes of an edge.
func (u *Update) explainMissing(e Edge) error {
	found, err := u.Cypher("MATCH (n) WHERE n.id IN $ids RETURN DISTINCT n.id AS id",
		map[string]any{"ids": []any{e.From, e.To}})
	if err != nil {
		return err
	}

	var missing []string
	for _, id := range slices.Compact([]string{e.From, e.To}) {
		if !slices.ContainsFunc(found.Rows, func(row map[string]any) bool { return row["id"] == id }) {
			missing = append(missing, fmt.Sprintf("%.80q", id))
		}
	}
	return fmt.Errorf("the graph has no node %s: add it, or leave such edges out "+
		"(LoadOptions.MaxMissing, --missing)", strings.Join(missing, " and no node "))
}
