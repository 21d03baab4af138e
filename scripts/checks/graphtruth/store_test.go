package graphtruth

import (
	"bytes"
	"errors"
	"testing"

	"github.com/rlmhq/rlm/graph"
	"github.com/rlmhq/rlm/internal/testing/testcache"
)

// store is a graph in the terms of the suites.
type store struct {
	*graph.Graph
	reason bool // set before loading; SPARQL then includes facts inferred from the data
	t      *testing.T
}

// newStore returns an empty graph that is closed at the end of the test.
func newStore(t *testing.T) *store {
	t.Helper()
	s := &store{t: t}
	t.Cleanup(func() {
		if s.Graph != nil {
			_ = s.Close()
		}
	})
	return s
}

// open creates the graph on its first call.
func (s *store) open() (*graph.Graph, error) {
	if s.Graph != nil {
		return s.Graph, nil
	}
	var err error
	s.Graph, err = graph.Open(s.t.Context(), graph.Config{
		NoInference: !s.reason, CacheDir: testcache.Dir(), Fuel: 2e9,
	})
	return s.Graph, err
}

func (s *store) load(data []byte, format, base string) error {
	g, err := s.open()
	if err != nil {
		return err
	}
	return g.LoadRDF(s.t.Context(), bytes.NewReader(data), format, base)
}

// sparql returns an answer in a format of the W3C, or N-Triples.
func (s *store) sparql(query, base, format string) ([]byte, error) {
	g, err := s.open()
	if err != nil {
		return nil, err
	}
	var text bytes.Buffer
	err = g.WriteSPARQL(s.t.Context(), &text, query, format, base)
	return text.Bytes(), err
}

// contradictions returns the contradictions in the loaded facts.
func (s *store) contradictions() ([]string, error) {
	g, err := s.open()
	if err != nil {
		return nil, err
	}
	return g.Contradictions(s.t.Context())
}

func (s *store) cypher(query string, parameters map[string]any, write bool) (table, error) {
	g, err := s.open()
	if err != nil {
		return table{}, err
	}
	var rows *graph.Rows
	if write {
		err = g.Update(s.t.Context(), func(u *graph.Update) error {
			rows, err = u.Cypher(query, parameters)
			return err
		})
	} else {
		rows, err = g.Cypher(s.t.Context(), query, parameters)
	}
	if err != nil {
		return table{}, err
	}
	return table{rows.Columns, rows.Rows}, nil
}

// fill adds a property graph.
func (s *store) fill(t *testing.T, w world) {
	t.Helper()
	g, err := s.open()
	if err != nil {
		t.Fatal(err)
	}
	err = g.Update(t.Context(), func(u *graph.Update) error {
		for _, n := range w.Nodes {
			added := graph.Node{ID: n.ID, Labels: []string{n.Label}, Properties: n.Properties}
			if err := u.AddNode(added); err != nil {
				return err
			}
		}
		for _, e := range w.Edges {
			added := graph.Edge{From: e.From, To: e.To, Type: e.Type, Properties: e.Properties}
			if err := u.AddEdge(added); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func isSyntaxError(err error) bool {
	var failed *graph.QueryError
	return errors.As(err, &failed) && failed.IsSyntax
}

// isQueryError reports whether the engine refused a query, as opposed to reaching a limit or a
// defect.
func isQueryError(err error) bool {
	var failed *graph.QueryError
	return errors.As(err, &failed) || errors.Is(err, graph.ErrReadOnly)
}

// parseFacts parses RDF into the default graph.
func parseFacts(t *testing.T, data []byte, format, base string) ([]triple, error) {
	t.Helper()
	store := newStore(t)
	if err := store.load(data, format, base); err != nil {
		return nil, err
	}
	defer func() { _ = store.Close() }()
	text, err := store.sparql("CONSTRUCT { ?s ?p ?o } WHERE { ?s ?p ?o }", "", "json")
	if err != nil {
		return nil, err
	}
	return parseNTriples(string(text))
}
