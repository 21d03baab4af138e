package graph

// edgeAdder adds edges to an update. It reports those whose nodes are missing, which are not
// added, with the lines that they come from.
type edgeAdder struct {
	update *Update
	miss   func(Edge, int) error
	batch  encoder
	edges  []Edge // of the batch
	lines  []int
}

func (u *Update) newEdges(miss func(Edge, int) error) *edgeAdder {
	return &edgeAdder{update: u, miss: miss}
}

func (a *edgeAdder) add(edge Edge, line int) error {
	start := len(a.batch.data)
	a.batch.edge(edge)
	if err := a.batch.err; err != nil {
		a.batch = encoder{data: a.batch.data[:start]}
		return err
	}

	a.edges, a.lines = append(a.edges, edge), append(a.lines, line)
	if len(a.batch.data) < batchSize {
		return nil
	}

	return a.flush()
}

// flush passes the batch to the engine.
func (a *edgeAdder) flush() error {
	if len(a.edges) == 0 {
		return nil
	}
	if err := a.update.flush(); err != nil {
		return err
	}
	answer, err := a.update.call(job{operation: opAddKnownEdges, request: a.batch.data})
	if err != nil {
		return err
	}

	d := decoder{data: answer}
	for n := d.length(); n > 0 && d.err == nil; n-- {
		i := int(d.number())
		if i < 0 || i >= len(a.edges) {
			return errMalformed
		}
		if err := a.miss(a.edges[i], a.lines[i]); err != nil {
			return err
		}
	}
	a.batch = encoder{data: a.batch.data[:0]}
	a.edges, a.lines = a.edges[:0], a.lines[:0]
	return d.err
}

// showRDF brings the loaded facts into the property graph.
func (u *Update) showRDF() error {
	if err := u.flush(); err != nil {
		return err
	}
	_, err := u.call(job{operation: opReadyCypher})
	return err
}
