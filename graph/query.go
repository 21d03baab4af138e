package graph

import (
	"context"
	"io"

	"github.com/rlmhq/rlm/internal/text/lazyregexp"
)

// Rows is the result of a Cypher query.
type Rows struct {
	// Columns are the names of the columns, as given by the query.
	Columns []string
	// Rows contain a value for each column: nil, bool, int64, float64, string, []any or
	// map[string]any. A node is a map of id, labels and its properties. A relationship is a map of
	// id, type, from, to and its properties. A path is a map of nodes and relationships. Dates and
	// times are ISO 8601 strings.
	Rows []map[string]any
	// Truncated reports that Config.MaxRows or Config.MaxBytes truncated the rows.
	Truncated bool
}

// Cypher runs a read-only query. For a query that would write, the error is ErrReadOnly. Other
// errors are *QueryError and *LimitError.
func (g *Graph) Cypher(ctx context.Context, query string, params map[string]any) (*Rows, error) {
	request, err := cypherRequest(g.config, query, params)
	if err != nil {
		return nil, err
	}

	answer, err := g.read(ctx, readyCypher, job{operation: opCypher, request: request})
	if err != nil {
		return nil, hint(err, query, sparqlWords, "this is SPARQL: give it to owl_query, or to rlm graph sparql")
	}
	return decodeRows(answer, g.config)
}

var constraint = lazyregexp.New(`(?i)^\s*(CREATE|DROP)\s+(OR\s+REPLACE\s+)?CONSTRAINT\b`)

// errConstraint is the error for a constraint, which the engine would not enforce.
var errConstraint = &QueryError{Message: "constraints are not supported: loads keep the id of nodes unique, " +
	"and no other property"}

func cypherRequest(config Config, query string, params map[string]any) ([]byte, error) {
	if constraint.MatchString(query) {
		return nil, errConstraint
	}

	var e encoder
	e.bounds(config, config.MaxRows)
	e.length(config.MaxPathDepth)
	e.text(query)
	e.mapping(params, 0)
	return e.data, e.err
}

func (e *encoder) bounds(config Config, rows int) {
	e.length(rows)
	e.length(config.MaxBytes)
}

func newDecoder(answer []byte, config Config) *decoder {
	return &decoder{data: answer, left: config.MaxBytes}
}

func decodeRows(answer []byte, config Config) (*Rows, error) {
	d := newDecoder(answer, config)
	rows := &Rows{Columns: d.texts()}
	rows.Rows, rows.Truncated = d.rows(func() map[string]any {
		row := make(map[string]any, len(rows.Columns))
		for _, column := range rows.Columns {
			row[column] = d.value(0)
		}
		return row
	})
	return rows, d.err
}

// rows reads rows up to the byte that ends them.
func (d *decoder) rows(read func() map[string]any) (rows []map[string]any, truncated bool) {
	rows = []map[string]any{}
	for d.err == nil {
		switch d.byte() {
		case 0:
			return rows, false
		case 2:
			return rows, true
		case 1:
			d.left -= valueCost
			if d.left < 0 {
				d.fail()
			}
			rows = append(rows, read())
		default:
			d.fail()
		}
	}

	return nil, false
}

// Answer is the answer to a SPARQL query. Its Kind determines which fields are set.
type Answer struct {
	// Kind is "rows" for SELECT, "boolean" for ASK, and "triples" for CONSTRUCT and DESCRIBE.
	Kind string
	// Columns are the names of the variables.
	Columns []string
	// Rows contain a value for each variable, or nil if it is unbound. An IRI is a string, a blank
	// node is "_:" followed by its label, and a literal is a bool, int64, float64 or string.
	Rows []map[string]any
	// Boolean is the answer to ASK.
	Boolean bool
	// Triples are lines of N-Triples. The line of an inferred fact ends in the comment "#
	// inferred".
	Triples string
	// Truncated reports that Config.MaxRows or Config.MaxBytes truncated the answer.
	Truncated bool
}

// SPARQL runs a query over the loaded facts, the property graph and the facts inferred from them.
// The prefixes au, owl, rdf, rdfs and xsd, and those of the loaded files, need not be declared. The
// graph au:inferred contains only the inferred facts. For updates and LOAD, the error is
// ErrReadOnly; SERVICE is an error. Other errors are *QueryError and *LimitError.
func (g *Graph) SPARQL(ctx context.Context, query string) (*Answer, error) {
	var e encoder
	e.bounds(g.config, g.config.MaxRows)
	e.text(query)
	e.text("") // no base
	if e.err != nil {
		return nil, e.err
	}

	answer, err := g.read(ctx, readySPARQL, job{operation: opSPARQL, request: e.data})
	if err != nil {
		return nil, hint(err, query, cypherWords, "this is Cypher: give it to graph_query, or to rlm graph query")
	}
	return decodeAnswer(answer, g.config)
}

const readySPARQL = readyFacts | readyInferred

func decodeAnswer(answer []byte, config Config) (*Answer, error) {
	d := newDecoder(answer, config)
	a := &Answer{}
	switch d.byte() {
	case 'a':
		a.Kind, a.Boolean = "boolean", d.byte() == 1
	case 's':
		a.Kind, a.Columns = "rows", d.texts()
		a.Rows, a.Truncated = d.rows(func() map[string]any {
			row := make(map[string]any, len(a.Columns))
			for _, column := range a.Columns {
				row[column] = d.value(0)
			}
			return row
		})
	case 'g':
		a.Kind, a.Truncated, a.Triples = "triples", d.byte() == 1, d.text()
	default:
		d.fail()
	}

	return a, d.err
}

// WriteSPARQL runs a query like SPARQL and writes the whole answer in a W3C format: json, xml, csv
// or tsv for rows and truth values, and N-Triples for triples. The base resolves the query's
// relative IRIs and may be empty. Config.Timeout applies, but MaxRows does not.
func (g *Graph) WriteSPARQL(ctx context.Context, w io.Writer, query, format, base string) error {
	var e encoder
	e.text(format)
	e.text(query)
	e.text(base)
	if e.err != nil {
		return e.err
	}

	_, err := g.read(ctx, readySPARQL, job{operation: opSPARQLText, request: e.data, output: w})
	return err
}

// Export returns up to limit nodes of a type: the properties of each, including its id. The type
// memory also includes nodes labelled Memory, and "*" means every type. A limit of 0 means
// Config.MaxRows. The second result reports whether there are more nodes.
func (g *Graph) Export(
	ctx context.Context, nodeType string, limit int,
) ([]map[string]any, bool, error) {
	if limit <= 0 || limit > g.config.MaxRows {
		limit = g.config.MaxRows
	}
	var e encoder
	e.bounds(g.config, limit)
	e.text(nodeType)
	if e.err != nil {
		return nil, false, e.err
	}
	answer, err := g.read(ctx, readyCypher, job{operation: opExport, request: e.data})
	if err != nil {
		return nil, false, err
	}
	d := newDecoder(answer, g.config)
	rows, truncated := d.rows(func() map[string]any {
		node, _ := d.value(0).(map[string]any)
		return node
	})
	return rows, truncated, d.err
}

// Contradictions returns sentences about facts that cannot all be true according to OWL 2 RL, such
// as an individual in two disjoint classes. SPARQL queries still return answers. Without inference,
// the result is empty.
func (g *Graph) Contradictions(ctx context.Context) ([]string, error) {
	answer, err := g.read(ctx, readySPARQL, job{operation: opContradictions})
	if err != nil {
		return nil, err
	}
	d := newDecoder(answer, g.config)
	found := d.texts()
	return found, d.err
}

// Count is a name with its number of occurrences.
type Count struct {
	Name  string `json:"name"`
	Count int    `json:"count"`
}

// Stats describes a graph.
type Stats struct {
	Nodes int `json:"nodes"`
	Edges int `json:"edges"`
	// Labels and Types count the nodes of each label and the relationships of each type, most
	// frequent first.
	Labels []Count `json:"labels"`
	Types  []Count `json:"types"`
	// Triples is the number of RDF facts, without inferred ones.
	Triples int `json:"triples"`
	// Inferred is the number of inferred facts. IsInferred reports whether it is known: the first
	// SPARQL query computes it.
	Inferred   int  `json:"inferred"`
	IsInferred bool `json:"is_inferred"`
	// Prefixes maps the prefixes that a SPARQL query need not declare to their namespaces.
	Prefixes map[string]string `json:"prefixes"`
}

// Stats counts the contents of the graph.
func (g *Graph) Stats(ctx context.Context) (Stats, error) {
	answer, err := g.read(ctx, readyCypher|readyFacts, job{operation: opCount})
	if err != nil {
		return Stats{}, err
	}
	isInferred, _ := g.isReady(readyInferred)

	d := newDecoder(answer, g.config)
	s := Stats{IsInferred: isInferred, Prefixes: map[string]string{}}
	s.Nodes, s.Edges = int(d.number()), int(d.number())
	s.Labels, s.Types = d.counts(), d.counts()
	s.Triples, s.Inferred = int(d.number()), int(d.number())
	for n := d.length(); n > 0 && d.err == nil; n-- {
		name := d.text()
		s.Prefixes[name] = d.text()
	}
	return s, d.err
}

func (d *decoder) counts() []Count {
	all := []Count{}
	for n := d.length(); n > 0 && d.err == nil; n-- {
		count := int(d.number())
		all = append(all, Count{d.text(), count})
	}
	return all
}
