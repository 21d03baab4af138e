package graph

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"golang.org/x/sync/semaphore"

	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/tiers"
)

// ToolOptions configure what snippets may do with a graph. The zero value allows them to read it.
type ToolOptions struct {
	// Writable lets graph_query change the graph.
	Writable bool
	// RaiseErrors makes a failed query raise an exception in the snippet. By default it
	// returns the error as data: [{"error": "…", "line": 1, "column": 7}].
	RaiseErrors bool
}

// Toolbox provides the functions with which the snippets of a session or run query a graph.
type Toolbox struct {
	graph   *Graph
	options ToolOptions
	notes   string
	// turn limits the number of calls that decode and encode results to the number of queries that
	// the graph runs at the same time. A snippet may start many more calls, and during a call, a
	// result takes several times its size.
	turn *semaphore.Weighted

	mu      sync.Mutex
	scratch map[string]*Graph // by namespace
	closed  bool
}

// NewToolbox creates the functions graph_query, owl_query, kg_bulk_export, magma_view and
// ephemeral_graph_query for a graph. It counts the graph's current contents for the prompt. Close
// it after the session, and the graph after it.
func NewToolbox(ctx context.Context, g *Graph, o ToolOptions) (*Toolbox, error) {
	stats, err := g.Stats(ctx)
	if err != nil {
		return nil, fmt.Errorf("cannot describe the graph: %w", err)
	}
	return &Toolbox{
		graph: g, options: o, notes: describe(stats, o), scratch: map[string]*Graph{},
		turn: semaphore.NewWeighted(g.readers),
	}, nil
}

// Close frees the scratch graphs. It is idempotent.
func (b *Toolbox) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(b.scratch)) {
		errs = append(errs, b.scratch[name].Close())
	}
	b.scratch, b.closed = nil, true
	return errors.Join(errs...)
}

// Tools returns the functions. They check their arguments, which are not trusted, and may be called
// concurrently.
func (b *Toolbox) Tools() []repl.Tool {
	reads := "It only reads."
	if b.options.Writable {
		reads = "It may change the graph."
	}
	return []repl.Tool{
		b.tool("graph_query(cypher, params=None)",
			"runs Cypher on the knowledge graph and returns a list of dicts, one for each row. "+reads,
			b.query),
		b.tool("owl_query(sparql)",
			"runs SPARQL over the graph and what follows from it by OWL 2 RL. SELECT gives a list of "+
				"dicts, ASK a bool, CONSTRUCT and DESCRIBE a str of N-Triples.",
			b.owl),
		b.tool("kg_bulk_export(node_type, limit=500)",
			`the nodes of a type as a list of dicts of id and properties; "*" is all types.`,
			b.export),
		b.tool("magma_view(query, views=None)",
			"looks at the graph as a memory. The dict has the rows of each view under `views`: "+
				"semantic, temporal, causal and entity; if you name them also epistemic and place.",
			b.view),
		b.tool("ephemeral_graph_query(cypher, namespace, params=None)",
			"the same as graph_query on a scratch graph, which is empty at first and may be changed. "+
				"Each namespace has its own.",
			b.queryScratch),
	}
}

// tool creates a function for snippets. Its failures are data or exceptions.
func (b *Toolbox) tool(
	signature, doc string, call func(context.Context, arguments) (tiers.Value, error),
) repl.Tool {
	name, _, _ := strings.Cut(signature, "(")
	return repl.Tool{
		Name: name, Signature: signature, Doc: doc, Notes: b.notes, Timed: true,
		Call: func(ctx context.Context, args map[string]tiers.Value) (tiers.Value, error) {
			value, err := b.inTurn(ctx, func() (tiers.Value, error) { return call(ctx, args) })
			if err != nil {
				return b.tell(ctx, name, err)
			}
			return value, nil
		},
	}
}

func (b *Toolbox) inTurn(
	ctx context.Context, call func() (tiers.Value, error),
) (tiers.Value, error) {
	if err := b.turn.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer b.turn.Release(1)
	value, err := call()
	return bytes.Clone(value), err // without spare capacity
}

// tell converts an error of a call to data for the snippet, unless RaiseErrors is set. The end of
// the session or of the graph is always an error.
func (b *Toolbox) tell(ctx context.Context, function string, err error) (tiers.Value, error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if b.options.RaiseErrors || errors.Is(err, ErrClosed) {
		return nil, fmt.Errorf("%s: %w", function, err)
	}

	told := map[string]any{"error": err.Error()}
	var wrong *QueryError
	if errors.As(err, &wrong) && wrong.Line > 0 {
		told = map[string]any{"error": wrong.Message, "line": wrong.Line, "column": wrong.Column}
	}
	if function == "magma_view" {
		return json.Marshal(told)
	}
	return json.Marshal([]any{told})
}

func (b *Toolbox) query(ctx context.Context, args arguments) (tiers.Value, error) {
	return queryWith(args, func(cypher string, params map[string]any) (*Rows, error) {
		return runCypher(ctx, b.graph, cypher, params, b.options.Writable)
	})
}

// queryWith reads the arguments of a Cypher query, runs it and encodes the rows.
func queryWith(
	args arguments, run func(string, map[string]any) (*Rows, error),
) (tiers.Value, error) {
	cypher, err := args.text("cypher", maxQuery)
	if err != nil {
		return nil, err
	}
	params, err := args.params("params")
	if err != nil {
		return nil, err
	}
	rows, err := run(cypher, params)
	if err != nil {
		return nil, err
	}
	return encodeRows(rows.Columns, rows.Rows, rows.Truncated)
}

// runCypher runs a query. Read-only queries do not wait for other readers, so only a query that
// must write runs as an update.
func runCypher(
	ctx context.Context, g *Graph, cypher string, params map[string]any, isWritable bool,
) (rows *Rows, err error) {
	rows, err = g.Cypher(ctx, cypher, params)
	if !isWritable || !errors.Is(err, ErrReadOnly) {
		return rows, err
	}
	err = g.Update(ctx, func(u *Update) (err error) {
		rows, err = u.Cypher(cypher, params)
		return err
	})
	return rows, err
}

func (b *Toolbox) queryScratch(ctx context.Context, args arguments) (tiers.Value, error) {
	name, err := args.text("namespace", maxName)
	if err != nil {
		return nil, err
	}
	return queryWith(args, func(cypher string, params map[string]any) (*Rows, error) {
		g, err := b.openScratch(ctx, name)
		if err != nil {
			return nil, err
		}
		return runCypher(ctx, g, cypher, params, true)
	})
}

// These limits apply to a session's scratch graphs.
const (
	maxScratch       = 8
	maxScratchMemory = 128 << 20 // bytes of each
)

// openScratch returns the scratch graph of a namespace.
func (b *Toolbox) openScratch(ctx context.Context, name string) (*Graph, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, ErrClosed
	}
	if g := b.scratch[name]; g != nil {
		return g, nil
	}
	if len(b.scratch) == maxScratch {
		return nil, fmt.Errorf("there are %d scratch graphs already: use one of %q", maxScratch,
			slices.Sorted(maps.Keys(b.scratch)))
	}

	config := b.graph.config
	config.MaxMemory = min(config.MaxMemory, maxScratchMemory)
	g, err := Open(ctx, config)
	if err != nil {
		return nil, err
	}
	b.scratch[name] = g
	return g, nil
}

func (b *Toolbox) owl(ctx context.Context, args arguments) (tiers.Value, error) {
	sparql, err := args.text("sparql", maxQuery)
	if err != nil {
		return nil, err
	}
	a, err := b.graph.SPARQL(ctx, sparql)
	if err != nil {
		return nil, err
	}

	switch a.Kind {
	case "boolean":
		return json.Marshal(a.Boolean)
	case "triples":
		if a.Truncated {
			a.Triples += "# cut here: the answer is too long for one call\n"
		}
		return json.Marshal(a.Triples)
	}
	return encodeRows(a.Columns, a.Rows, a.Truncated)
}

// defaultExport is the default number of nodes that kg_bulk_export returns.
const defaultExport = 500

func (b *Toolbox) export(ctx context.Context, args arguments) (tiers.Value, error) {
	nodeType, err := args.text("node_type", maxName)
	if err != nil {
		return nil, err
	}
	limit, err := args.count("limit", defaultExport)
	if err != nil {
		return nil, err
	}

	nodes, more, err := b.graph.Export(ctx, nodeType, limit)
	if err != nil {
		return nil, err
	}
	return encodeRows(nil, nodes, more && len(nodes) < limit) // otherwise the snippet requested no more
}

func (b *Toolbox) view(ctx context.Context, args arguments) (tiers.Value, error) {
	query, err := args.text("query", maxQuery)
	if err != nil {
		return nil, err
	}
	names, err := args.names("views")
	if err != nil {
		return nil, err
	}
	views, err := b.graph.View(ctx, query, names)
	if err != nil {
		return nil, err
	}
	return encodeValue(map[string]any{"query": query, "views": views})
}
