package graph

import "errors"

type edgeAdder struct {
	update *Update
	miss   func(Edge, int) error
}

func (u *Update) newEdges(miss func(Edge, int) error) *edgeAdder { return &edgeAdder{u, miss} }

func (a *edgeAdder) add(edge Edge, _ int) error { return a.update.AddEdge(edge) }
func (a *edgeAdder) flush() error {
	if a.miss == nil {
		return errors.New("x")
	}
	return a.update.flush()
}
func (u *Update) showRDF() error {
	if err := u.flush(); err != nil {
		return err
	}
	_, err := u.call(job{operation: opReadyCypher})
	return err
}
