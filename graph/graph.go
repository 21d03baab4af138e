// Package graph holds knowledge graphs that snippets and programs query: property graphs with
// Cypher, and the same facts as RDF with SPARQL, including inferences by OWL 2 RL.
//
// The engine is a WebAssembly module in this package: nothing needs to be installed, and a query
// runs in a sandbox without files, sockets or a way out. A runaway query is stopped, and the graph
// remains unchanged.
//
// All writes go through Update, which keeps all changes or none. Readers run in parallel, and read
// the state after the last update. They cannot change it: each reads a copy-on-write view of the
// engine's memory, which is discarded afterwards.
//
// # Two views of the same facts
//
// The property graph is the source of truth. In RDF, a node of type run_trace is an instance of
// au:RunTrace, its property score is au:score, and its edge HAS_EDIT_FOR is au:hasEditFor. The
// prefix au: is [Namespace]. Cypher also covers loaded RDF: rdf:type provides the labels, a literal
// is a property, any other fact is a relationship, and the last part of each IRI is its name. A
// node's id is its IRI, without the namespace of au:.
package graph

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"
	"golang.org/x/sync/singleflight"
)

// Namespace is the namespace of the prefix au:, which contains the names of the property graph.
const Namespace = "http://agent-utilities.dev/ontology#"

// Config configures a graph. The zero value works: a limit of zero means the default that its field
// documents. A negative limit is an error.
type Config struct {
	// NoInference limits SPARQL to facts that are not inferred.
	NoInference bool

	// MaxRows is the maximum number of rows in a result: 10,000. A longer result is truncated and
	// marked as such.
	MaxRows int
	// MaxBytes bounds the memory of a result: 16 MiB. A larger result is truncated and marked as
	// such.
	MaxBytes int
	// Timeout bounds one query: 30 seconds.
	Timeout time.Duration
	// LoadTimeout bounds one update, and the inference after it: 10 minutes.
	LoadTimeout time.Duration
	// Fuel bounds the loop iterations of one query in the engine's machine code: 50 billion.
	Fuel uint64
	// MaxMemory bounds the engine's memory in bytes, including the graph: 2 GiB. The maximum is 4
	// GiB.
	MaxMemory int64
	// MaxPathDepth is the maximum length that a variable-length pattern in Cypher may request, such
	// as the 5 of [*1..5]: 100. The engine follows an unbounded pattern to about the same length.
	MaxPathDepth int
	// MaxInferred is the maximum number of facts inferred from the graph: 10 million.
	MaxInferred int

	// CacheDir keeps the engine's compiled code between processes. The code is executed, so the
	// directory must belong to the user alone. Empty means no cache, so each process compiles for
	// some seconds. The value of a process's first graph applies to all.
	CacheDir string
	// Progress, if set, is called when a slow step begins.
	Progress func(what string)
	// Logger receives diagnostics for developers of the package.
	Logger *slog.Logger
}

// withDefaults fills in zero fields.
func (c Config) withDefaults() Config {
	c.MaxRows = cmp.Or(c.MaxRows, 10_000)
	c.MaxBytes = cmp.Or(c.MaxBytes, 16<<20)
	c.Timeout = cmp.Or(c.Timeout, 30*time.Second)
	c.LoadTimeout = cmp.Or(c.LoadTimeout, 10*time.Minute)
	c.Fuel = cmp.Or(c.Fuel, 50e9)
	c.MaxMemory = cmp.Or(c.MaxMemory, 2<<30)
	c.MaxPathDepth = cmp.Or(c.MaxPathDepth, 100)
	c.MaxInferred = cmp.Or(c.MaxInferred, 10_000_000)
	c.Logger = cmp.Or(c.Logger, slog.New(slog.DiscardHandler))
	return c
}

func (c Config) check() error {
	for _, bound := range []struct {
		name  string
		value int64
	}{
		{"MaxRows", int64(c.MaxRows)},
		{"MaxBytes", int64(c.MaxBytes)},
		{"MaxMemory", c.MaxMemory},
		{"Timeout", int64(c.Timeout)},
		{"LoadTimeout", int64(c.LoadTimeout)},
		{"MaxPathDepth", int64(c.MaxPathDepth)},
		{"MaxInferred", int64(c.MaxInferred)},
	} {
		if bound.value < 0 {
			return fmt.Errorf("graph.Config: %s is negative", bound.name)
		}
	}

	if c.MaxMemory > 4<<30 {
		return fmt.Errorf("graph.Config: MaxMemory is %d MiB, but the engine has 4096 MiB at most",
			c.MaxMemory>>20)
	}
	return nil
}

// Graph is a knowledge graph in memory. Its methods may be called from several goroutines.
type Graph struct {
	config Config
	engine *engine
	life   context.Context // ends with Close
	end    context.CancelCauseFunc
	// writing admits one writer at a time, which works on a copy of the state.
	writing *semaphore.Weighted
	// turn gives each reader one unit, and the writer all units to commit its copy, in order of
	// arrival.
	turn    *semaphore.Weighted
	readers int64
	// preparing combines calls that need the same views of the graph.
	preparing singleflight.Group
	// hasRecords reports that the property graph may contain more than loaded RDF.
	hasRecords atomic.Bool

	mu     sync.Mutex // guards the following fields
	state  *state     // changed only by writers
	idle   []*instance
	ready  readiness
	closed bool
	// inferenceFailed is the reason why SPARQL cannot answer until the next update.
	inferenceFailed error
}

// Open returns an empty graph.
func Open(ctx context.Context, config Config) (*Graph, error) {
	if err := config.check(); err != nil {
		return nil, err
	}
	config = config.withDefaults()
	e, err := sharedEngine(ctx, config)
	if err != nil {
		return nil, err
	}

	readers := int64(max(2, runtime.GOMAXPROCS(0)))
	g := &Graph{
		config: config, engine: e, writing: semaphore.NewWeighted(1),
		turn: semaphore.NewWeighted(readers), readers: readers,
	}
	g.life, g.end = context.WithCancelCause(context.WithoutCancel(ctx))
	if g.state, err = newState(e.Size(), uint64(config.MaxMemory)&^0xffff); err != nil {
		return nil, err
	}
	if err := g.start(ctx); err != nil {
		g.state.close()
		return nil, err
	}
	return g, nil
}

// start makes the engine create an empty graph, the first state.
func (g *Graph) start(ctx context.Context) error {
	in, err := g.instantiate(ctx)
	if err != nil {
		return err
	}

	defer in.Close()
	if err := in.start(ctx); err != nil {
		return err
	}
	return g.state.commit(in.memory)
}

// Close frees the graph. It cancels an inference, and waits for other active calls.
func (g *Graph) Close() error {
	g.end(ErrClosed)

	ctx := context.Background()
	if err := g.writing.Acquire(ctx, 1); err != nil {
		return err
	}
	defer g.writing.Release(1)
	if err := g.turn.Acquire(ctx, g.readers); err != nil {
		return err
	}
	defer g.turn.Release(g.readers)

	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil
	}

	g.closed = true
	g.dropIdle()
	g.state.close()
	return nil
}

// dropIdle closes the idle instances. Their views of the state are out of date.
func (g *Graph) dropIdle() {
	for _, in := range g.idle {
		in.Close()
	}
	g.idle = nil
}

// take returns an instance over the current state.
func (g *Graph) take(ctx context.Context) (*instance, error) {
	g.mu.Lock()
	if g.closed {
		g.mu.Unlock()
		return nil, ErrClosed
	}
	if n := len(g.idle); n > 0 {
		in := g.idle[n-1]
		g.idle = g.idle[:n-1]
		g.mu.Unlock()
		return in, nil
	}
	g.mu.Unlock()

	return g.instantiate(ctx)
}

// put returns an instance to the pool, or closes it if it cannot be reset to the current state.
func (g *Graph) put(in *instance, isBroken bool) {
	if isBroken || !in.memory.reset() {
		in.Close()
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.idle = append(g.idle, in)
}

// readiness records which views of the graph are up to date in the state.
type readiness uint8

const (
	readyCypher   readiness = 1 << iota // loaded RDF is in the property graph
	readyFacts                          // the property graph is in the dataset
	readyInferred                       // the inferred facts are in the dataset, which is indexed
	readyLibrary                        // the engine's library has all edges, and can find nodes by id
)

func (g *Graph) isReady(need readiness) (bool, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if need&readyInferred != 0 && g.inferenceFailed != nil {
		return false, g.inferenceFailed
	}
	return g.ready&need == need, nil
}

// read runs a query in a view of the current state.
func (g *Graph) read(ctx context.Context, need readiness, job job) (answer []byte, err error) {
	ask := func(in *instance) error {
		answer, err = in.call(ctx, job)
		return err
	}
	err = g.readAll(ctx, need, ask)
	if errors.Is(err, errIncomplete) {
		err = g.readAll(ctx, need|readyLibrary, ask)
	}
	return answer, err
}

// readAll runs several queries in one view of the current state. It first prepares the views that
// they need.
func (g *Graph) readAll(ctx context.Context, need readiness, use func(*instance) error) error {
	for {
		if err := g.turn.Acquire(ctx, 1); err != nil {
			return err
		}
		isReady, err := g.isReady(need)
		if isReady {
			err = g.run(ctx, use)
		}
		g.turn.Release(1)

		if isReady || err != nil {
			return err
		}
		if err := g.prepare(ctx, need); err != nil {
			return err
		}
	}
}

func (g *Graph) run(ctx context.Context, use func(*instance) error) error {
	in, err := g.take(ctx)
	if err != nil {
		return err
	}
	err = use(in)
	g.put(in, in.isBroken)
	return err
}

// write calls use with an instance, makes the instance's memory the new state, and marks the views
// that use returns as ready. Meanwhile, readers read the old state. After an error, the state is
// unchanged.
func (g *Graph) write(ctx context.Context, use func(*instance) (readiness, error)) error {
	if err := g.writing.Acquire(ctx, 1); err != nil {
		return err
	}
	defer g.writing.Release(1)
	in, err := g.take(ctx)
	if err != nil {
		return err
	}

	ready, err := use(in)
	if err == nil {
		err = g.turn.Acquire(ctx, g.readers)
	}
	if err != nil {
		g.put(in, in.isBroken)
		return err
	}

	defer g.turn.Release(g.readers)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.dropIdle()
	if err := g.state.commit(in.memory); err != nil {
		in.Close()
		return err
	}
	g.idle = append(g.idle, in)
	g.ready, g.inferenceFailed = ready, nil
	return nil
}

// prepare brings views of the graph up to date. The work continues after the caller's context ends,
// because an inference may take longer than a call may: a later call uses its result.
func (g *Graph) prepare(ctx context.Context, need readiness) error {
	ended := g.preparing.DoChan(strconv.Itoa(int(need)), func() (any, error) {
		err := g.makeReady(g.life, need)
		if g.life.Err() != nil {
			err = ErrClosed
		}
		return nil, err
	})

	select {
	case result := <-ended:
		return result.Err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func (g *Graph) makeReady(ctx context.Context, need readiness) error {
	steps := []struct {
		makes     readiness
		operation uint32
	}{
		{readyCypher, opReadyCypher},
		{readyLibrary, opReadyLibrary},
		{readyFacts, opReadyFacts},
		{readyInferred, opReadySPARQL},
	}

	return g.write(ctx, func(in *instance) (readiness, error) {
		ready := g.ready // only writers change it
		for _, step := range steps {
			if need&step.makes == 0 || ready&step.makes != 0 {
				continue
			}
			var e encoder
			if step.makes == readyInferred {
				e.length(g.mostInferred())
			}
			_, err := in.call(ctx, job{operation: step.operation, request: e.data, isLoad: true})
			if err != nil {
				return 0, g.noteFailure(step.makes, err)
			}
			ready |= step.makes
		}
		return ready, nil
	})
}

// noteFailure records that the inference exceeds its limits, so that the next query need not repeat
// it.
func (g *Graph) noteFailure(made readiness, err error) error {
	var limit *LimitError
	if made == readyInferred && errors.As(err, &limit) {
		err = fmt.Errorf("cannot infer what follows from the graph: %w", err)
		g.mu.Lock()
		defer g.mu.Unlock()
		g.inferenceFailed = err
	}

	return err
}

func (g *Graph) mostInferred() int {
	if g.config.NoInference {
		return 0
	}
	return g.config.MaxInferred
}
