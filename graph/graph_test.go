package graph_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rlmhq/rlm/graph"
	"github.com/rlmhq/rlm/internal/testing/testcache"
)

func TestMain(m *testing.M) {
	if err := testcache.Use(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// open opens a graph that is closed when the test ends.
func open(tb testing.TB, config graph.Config) *graph.Graph {
	tb.Helper()
	config.CacheDir = testcache.Dir()
	g, err := graph.Open(tb.Context(), config)
	if err != nil {
		tb.Fatal(err)
	}

	tb.Cleanup(func() {
		if err := g.Close(); err != nil {
			tb.Error(err)
		}
	})
	return g
}

// load adds Turtle to a graph.
func load(tb testing.TB, g *graph.Graph, turtle string) {
	tb.Helper()
	if err := g.LoadRDF(tb.Context(), strings.NewReader(turtle), "turtle", ""); err != nil {
		tb.Fatal(err)
	}
}

// rows runs a Cypher query and returns its rows as text.
func rows(tb testing.TB, g *graph.Graph, query string, params map[string]any) string {
	tb.Helper()
	result, err := g.Cypher(tb.Context(), query, params)
	if err != nil {
		tb.Fatalf("%s: %v", query, err)
	}
	return fmt.Sprint(result.Columns, result.Rows)
}

// ask runs a SPARQL query and returns its answer as text.
func ask(tb testing.TB, g *graph.Graph, query string) string {
	tb.Helper()
	a, err := g.SPARQL(tb.Context(), query)
	if err != nil {
		tb.Fatalf("%s: %v", query, err)
	}

	switch a.Kind {
	case "boolean":
		return fmt.Sprint(a.Boolean)
	case "triples":
		return a.Triples
	}
	return fmt.Sprint(a.Columns, a.Rows)
}

func expect(tb testing.TB, got, want string) {
	tb.Helper()
	if got != want {
		tb.Errorf("got  %s\nwant %s", got, want)
	}
}

// traces is a small property graph.
func traces(u *graph.Update) error {
	return errors.Join(
		u.AddNode(graph.Node{
			ID: "run 1", Labels: []string{"run_trace"},
			Properties: map[string]any{"score": 0.5, "name": "first", "tags": []string{"a", "b"}},
		}),
		u.AddNode(graph.Node{ID: "run-2", Labels: []string{"run_trace"}, Properties: map[string]any{"score": 3}}),
		u.AddNode(graph.Node{ID: "edit", Labels: []string{"Edit"}}),
		u.AddEdge(graph.Edge{From: "run 1", To: "run-2", Type: "CAUSED_BY", Properties: map[string]any{"w": 2}}),
		u.AddEdge(graph.Edge{ID: "e", From: "run 1", To: "edit", Type: "HAS_EDIT_FOR"}),
	)
}

func TestThePropertyGraphInCypherAndSPARQL(t *testing.T) {
	g := open(t, graph.Config{})
	if err := g.Update(t.Context(), traces); err != nil {
		t.Fatal(err)
	}

	expect(t, rows(t, g, "MATCH (a:run_trace)-[r]->(b) RETURN a.name, type(r), b.id ORDER BY b.id", nil),
		"[a.name type(r) b.id] [map[a.name:first b.id:edit type(r):HAS_EDIT_FOR] "+
			"map[a.name:first b.id:run-2 type(r):CAUSED_BY]]")
	expect(t, rows(t, g, "MATCH (a {id: $id})-[r:HAS_EDIT_FOR]->() RETURN a, r", map[string]any{"id": "run 1"}),
		"[a r] [map[a:map[id:run 1 labels:[run_trace] name:first score:0.5 tags:[a b]] "+
			"r:map[from:run 1 id:e to:edit type:HAS_EDIT_FOR]]]")
	expect(t, ask(t, g, "SELECT ?s ?x WHERE { ?s a au:RunTrace ; au:score ?x } ORDER BY ?x"),
		"[s x] [map[s:http://agent-utilities.dev/ontology#run%201 x:0.5] "+
			"map[s:http://agent-utilities.dev/ontology#run-2 x:3]]")
	expect(t, ask(t, g, "ASK { ?s au:hasEditFor au:edit ; au:causedBy au:run-2 ; au:tags 'a', 'b' }"), "true")
}

const family = `@prefix : <http://family/> .
@prefix owl: <http://www.w3.org/2002/07/owl#> . @prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
:Mother rdfs:subClassOf :Parent . :ancestorOf a owl:TransitiveProperty . :ancestorOf owl:inverseOf :descendantOf .
:eve a :Mother ; :name "Eve"@en, "Eva"@de ; :age 930 ; :ancestorOf :seth . :seth :ancestorOf :enos . `

func TestLoadedRDFInCypherAndSPARQL(t *testing.T) {
	g := open(t, graph.Config{})
	load(t, g, family)

	expect(t, ask(t, g, "PREFIX : <http://family/> SELECT ?x WHERE { ?x a :Parent }"), "[x] [map[x:http://family/eve]]")
	expect(t, ask(t, g, "PREFIX : <http://family/> ASK { :enos :descendantOf :eve }"), "true")
	const isA = "<http://family/eve> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> "
	expect(t,
		ask(t, g, "PREFIX : <http://family/> CONSTRUCT WHERE { :eve a ?c }"),
		isA+"<http://family/Mother> .\n"+isA+"<http://family/Parent> . # inferred\n"+
			isA+"<http://www.w3.org/2002/07/owl#Thing> . # inferred\n")
	expect(t, rows(t, g, "MATCH (m:Mother)-[r:ancestorOf]->(s) RETURN m.age, m.name, s.id", nil),
		"[m.age m.name s.id] [map[m.age:930 m.name:[Eve Eva] s.id:http://family/seth]]")

	stats, err := g.Stats(t.Context())
	if err != nil || stats.Nodes == 0 || stats.Triples != 9 || !stats.IsInferred || stats.Inferred == 0 {
		t.Errorf("%+v (%v)", stats, err)
	}
}

func TestWithoutInference(t *testing.T) {
	g := open(t, graph.Config{NoInference: true})
	load(t, g, family)
	expect(t, ask(t, g, "PREFIX : <http://family/> ASK { :eve a :Parent }"), "false")
}

// TestInverseFunctionalProperties checks that subjects with the same value are the same, and
// subjects with different values are not.
func TestInverseFunctionalProperties(t *testing.T) {
	g := open(t, graph.Config{})
	load(t, g, `@prefix : <http://x/> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
		:mail a owl:InverseFunctionalProperty .
		:ada :mail "ada@x" . :lovelace :mail "ada@x" ; :born 1815 . :bob :mail "bob@x" .
		:cyd :mail "cyd@x" . :cyd owl:differentFrom :bob .`)
	expect(t, ask(t, g, "PREFIX : <http://x/> ASK { :ada owl:sameAs :lovelace ; :born 1815 }"), "true")
	expect(t, ask(t, g, "PREFIX : <http://x/> ASK { { :ada owl:sameAs :bob } UNION { :bob owl:sameAs ?x } }"), "false")
	expect(t, ask(t, g, "ASK { ?s a owl:InverseFunctionalProperty }"), "true")
	if found, err := g.Contradictions(t.Context()); err != nil || len(found) > 0 {
		t.Errorf("%q (%v)", found, err)
	}
}

func TestFactsFollowFromKindsOfProperties(t *testing.T) {
	g := open(t, graph.Config{})
	load(t, g, `@prefix : <http://x/> . @prefix owl: <http://www.w3.org/2002/07/owl#> .
		@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . @prefix xsd: <http://www.w3.org/2001/XMLSchema#> .
		:father owl:propertyDisjointWith :mother . :stewie :father :peter ; :mother :lois .
		:born a owl:FunctionalProperty . :a :born :y1 . :b :born :y2 . :y1 owl:differentFrom :y2 .
		:near owl:propertyChainAxiom (:near :near) . :p :near :q . :q :near :r .
		:knows a owl:ReflexiveProperty . :a a owl:NamedIndividual .
		:size rdfs:range xsd:short, xsd:unsignedInt .`)
	for _, fact := range []string{
		":peter owl:differentFrom :lois", ":a owl:differentFrom :b", ":near a owl:TransitiveProperty",
		":p :near :r", ":a :knows :a", ":size rdfs:range xsd:unsignedShort",
	} {
		t.Run(fact, func(t *testing.T) {
			if got := ask(t, g, "PREFIX : <http://x/> ASK { "+fact+" }"); got != "true" {
				t.Errorf("%s does not follow", fact)
			}
		})
	}
	for _, fact := range []string{":y1 owl:differentFrom :a", ":b :knows :b", ":size rdfs:range xsd:byte"} {
		t.Run(fact, func(t *testing.T) {
			if got := ask(t, g, "PREFIX : <http://x/> ASK { "+fact+" }"); got != "false" {
				t.Errorf("%s follows", fact)
			}
		})
	}
}

func TestAnUpdateIsAllOrNothing(t *testing.T) {
	g := open(t, graph.Config{})
	broken := errors.New("changed my mind")
	for name, change := range map[string]func(*graph.Update) error{
		"an error of its own": func(u *graph.Update) error { return errors.Join(traces(u), broken) },
		"a missing node": func(u *graph.Update) error {
			return errors.Join(traces(u), u.AddEdge(graph.Edge{From: "edit", To: "nobody", Type: "T"}))
		},
		"bad RDF": func(u *graph.Update) error {
			err := u.RDF(strings.NewReader("<a:a> <a:b> <a:c> .\nrubbish"), "turtle", "")
			var query *graph.QueryError
			if !errors.As(err, &query) || query.Line != 2 || !query.IsSyntax {
				t.Errorf("%#v", err)
			}
			return nil // the update keeps the error
		},
		"bad Cypher": func(u *graph.Update) error {
			_ = traces(u)
			_, _ = u.Cypher("CREATE (:A) RETURN nonsense(", nil)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			if err := g.Update(t.Context(), change); err == nil {
				t.Errorf("%s: no error", name)
			}
			expect(t, rows(t, g, "MATCH (n) RETURN count(*) AS n", nil), "[n] [map[n:0]]")
		})
	}

	if err := g.Update(t.Context(), traces); err != nil {
		t.Fatal(err)
	}
	expect(t, rows(t, g, "MATCH (n) RETURN count(*) AS n", nil), "[n] [map[n:3]]")
}

func TestReadersCannotWrite(t *testing.T) {
	g := open(t, graph.Config{})
	if err := g.Update(t.Context(), traces); err != nil {
		t.Fatal(err)
	}
	for _, query := range []string{
		"CREATE (:A)", "MATCH (n) SET n.x = 1", "MATCH (n) DETACH DELETE n", "MERGE (:B {id: 'b'})",
		"MATCH (n) REMOVE n.score", "CREATE INDEX i FOR (n:A) ON (n.x)", "MATCH (n) WITH n CREATE (:A)",
	} {
		t.Run(query, func(t *testing.T) {
			if _, err := g.Cypher(t.Context(), query, nil); !errors.Is(err, graph.ErrReadOnly) {
				t.Errorf("%s: %v", query, err)
			}
		})
	}

	for _, query := range []string{
		"INSERT DATA { <a:a> <a:b> <a:c> }", "DELETE WHERE { ?s ?p ?o }", "LOAD <http://example.com/>", "CLEAR ALL",
	} {
		t.Run(query, func(t *testing.T) {
			if _, err := g.SPARQL(t.Context(), query); !errors.Is(err, graph.ErrReadOnly) {
				t.Errorf("%s: %v", query, err)
			}
		})
	}
	if _, err := g.SPARQL(t.Context(), "SELECT * { SERVICE <http://example.com/> { ?s ?p ?o } }"); err == nil {
		t.Error("SERVICE was answered")
	}
	expect(t, rows(t, g, "MATCH (n) RETURN count(*) AS n, count(n.score) AS s", nil), "[n s] [map[n:3 s:2]]")
}

func TestSyntaxErrorsHaveAPosition(t *testing.T) {
	g := open(t, graph.Config{})
	_, err := g.Cypher(t.Context(), "MATCH (n\nRETURN n", nil)
	var query *graph.QueryError
	if !errors.As(err, &query) || !query.IsSyntax || query.Line != 2 {
		t.Errorf("%#v", err)
	}

	_, err = g.SPARQL(t.Context(), "SELECT *\nWHERE { ?s ?p }")
	if !errors.As(err, &query) || !query.IsSyntax || query.Line != 2 {
		t.Errorf("%#v", err)
	}
}

// TestConstraintsAreRefused checks that queries with constraints are errors, because the engine
// would not enforce them.
func TestConstraintsAreRefused(t *testing.T) {
	g := open(t, graph.Config{})
	for _, query := range []string{
		"CREATE CONSTRAINT c FOR (n:A) REQUIRE n.name IS UNIQUE", "\n drop constraint c",
	} {
		t.Run(query, func(t *testing.T) {
			err := g.Update(t.Context(), func(u *graph.Update) error {
				_, err := u.Cypher(query, nil)
				return err
			})
			if err == nil || !strings.Contains(err.Error(), "constraints are not supported") {
				t.Errorf("%s: %v", query, err)
			}
		})
	}
}

// TestTheOtherLanguageIsNamed checks the errors if SPARQL is passed to Cypher, and Cypher to
// SPARQL.
func TestTheOtherLanguageIsNamed(t *testing.T) {
	g := open(t, graph.Config{})
	for _, query := range []string{"SELECT ?x { ?x ?y ?z }", " prefix e: <http://e/> ASK { ?x e:b ?z }"} {
		if _, err := g.Cypher(t.Context(), query, nil); err == nil || !strings.Contains(err.Error(), "this is SPARQL") {
			t.Errorf("%s: %v", query, err)
		}
	}
	for _, query := range []string{"MATCH (n) RETURN n", "optional match (n) RETURN n", "CREATE (n)"} {
		t.Run(query, func(t *testing.T) {
			if _, err := g.SPARQL(t.Context(), query); err == nil || !strings.Contains(err.Error(), "this is Cypher") {
				t.Errorf("%s: %v", query, err)
			}
		})
	}

	_, err := g.Cypher(t.Context(), "MATCH (n RETURN n", nil)
	if err == nil || strings.Contains(err.Error(), "SPARQL") {
		t.Errorf("wrong Cypher: %v", err)
	}
}

// TestVariablesHaveOneKind checks that a query must not use a variable as two kinds of things, and
// that queries that only seem to do so are allowed.
func TestVariablesHaveOneKind(t *testing.T) {
	g := open(t, graph.Config{})
	if err := g.Update(t.Context(), traces); err != nil {
		t.Fatal(err)
	}
	for _, wrong := range []string{
		"MATCH (r) MATCH ()-[r]->() RETURN r",
		"MATCH ()-[n:T]->(n) RETURN n",
		"WITH 1 AS n MATCH (n) RETURN n",
		"MATCH p = ()-[p]->() RETURN p",
		"MATCH (p) MATCH p = ()-->() RETURN p",
		"WITH {a: 1} AS r MATCH ()<-[r]-() RETURN r",
		"MATCH (a) WITH a AS b, 2 AS c MATCH ()-[b]->() RETURN b",
		"MATCH (a) WITH DISTINCT a OPTIONAL MATCH ()-[a]-() RETURN a",
	} {
		t.Run(wrong, func(t *testing.T) {
			var query *graph.QueryError
			_, err := g.Cypher(t.Context(), wrong, nil)
			if !errors.As(err, &query) || !query.IsSyntax || !strings.Contains(query.Message, "cannot be") {
				t.Errorf("%s: %v", wrong, err)
			}
		})
	}
	_, err := g.Cypher(t.Context(), "MATCH (a)\nWITH *\nMATCH ()-[é:T]->(), ()-[a]->() RETURN a", nil)
	wantError(t, err, "line 3, column 25: the variable a is a node and cannot be a relationship, too")

	for _, fine := range []string{
		"MATCH (a)-[r]->(b) MATCH (a)-[q]->(c) RETURN count(*) AS n",
		"MATCH ()-[r]->() WITH r MATCH (a)-[r]->(b) RETURN r",
		"MATCH (n) WITH count(n) AS n MATCH (m) RETURN n",
		"MATCH (a) WITH a.id AS x MATCH (b {id: x}) RETURN x",
		"UNWIND [1] AS n WITH n MATCH (m) RETURN n",
		"MATCH (a) RETURN [a IN [1] | a] AS n",
		"MATCH p = (a)-->(b) RETURN (p)",
		"MATCH (x) RETURN x.id AS i UNION MATCH ()-[x]->() RETURN x.id AS i",
		"MATCH (a) WITH 1 AS b MATCH ()-[a]-() RETURN b",
		"MATCH (a) WHERE (a)-->() RETURN a", "WITH null AS n OPTIONAL MATCH (n) RETURN n",
	} {
		t.Run(fmt.Sprintf("%.60s", fine), func(t *testing.T) {
			_, err := g.Cypher(t.Context(), fine, nil)
			if err != nil && strings.Contains(err.Error(), "cannot be") {
				t.Errorf("%s: %v", fine, err)
			}
		})
	}
}

// TestPathsBeginAtIDs requests the same paths from both ends: the engine may reverse a pattern that
// ends with an id, but not one that ends with a name.
func TestPathsBeginAtIDs(t *testing.T) {
	g := open(t, graph.Config{})
	err := g.Update(t.Context(), func(u *graph.Update) error {
		var errs []error
		for i := range 40 {
			node := graph.Node{ID: fmt.Sprint("n", i), Labels: []string{"N", fmt.Sprint("M", i%3)}}
			node.Properties = map[string]any{"i": i, "é": "ü"}
			errs = append(errs, u.AddNode(node))
		}
		for i := range 200 {
			edge := graph.Edge{From: fmt.Sprint("n", i*7%40), To: fmt.Sprint("n", i*i%40), Type: fmt.Sprint("T", i%2)}
			edge.Properties = map[string]any{"w": i}
			errs = append(errs, u.AddEdge(edge))
		}
		return errors.Join(errs...)
	})
	if err != nil {
		t.Fatal(err)
	}

	for _, path := range []string{
		"(a)-[r:T0]->(b {id: 'n1'})", "(a:N)<-[r]-(b:N {id: $id, i: 9})", `(a)-[r]-(b {id: "n4"})`,
		"(a)-->()<-[r:T1]-(b {id: 'n9'})", "(a:M1)-[:T0*1..2]->(c)--(b {id: 'n1'})", "(a {é: 'ü'}) --> (b {id: 'n4'})",
		"(a)-[r:T0|T1 {w: 8}]->(b) WHERE b.id = 'n16'", "(a)-->(b) WHERE a.i > 3 AND b.id = $id",
		"(a)-->(b) WHERE b.id = 'n1' OR a.i = 3", "(a)-->(b) WHERE NOT b.id = 'n1'",
		"(a)-->(a {id: 'n1'})", "(a)-->(b {id: 'n1'}), (b)-->(c)", "(a) // (\n-->(b {id: 'n1'}) ",
		"(a)-->(b {id: 'n1'}) OPTIONAL MATCH (b)-->(c)", "(a)-[r*1..2]->(b {id: 'n1'})",
	} {
		t.Run(path, func(t *testing.T) {
			const end = " RETURN a.id AS a, count(*) AS n ORDER BY a"
			params := map[string]any{"id": "n9"}
			want := rows(t, g, "MATCH p = "+path+end, params)
			if got := rows(t, g, "MATCH "+path+end, params); got != want {
				t.Errorf("%s\ngot  %s\nwant %s", path, got, want)
			}
		})
	}
}

// TestAnIDAtTheEndIsFoundByItsIndex runs a query with less fuel than a scan of all nodes takes. The
// control has a condition without an index.
func TestAnIDAtTheEndIsFoundByItsIndex(t *testing.T) {
	g := open(t, graph.Config{Fuel: 15_000})
	err := g.Update(t.Context(), func(u *graph.Update) error {
		var errs []error
		for i := range 20_000 {
			errs = append(errs, u.AddNode(graph.Node{ID: fmt.Sprint("n", i), Labels: []string{"N"}}))
		}
		return errors.Join(append(errs, u.AddEdge(graph.Edge{From: "n7", To: "n8", Type: "T"}))...)
	})
	if err != nil {
		t.Fatal(err)
	}

	for _, query := range []string{
		"MATCH (a:N)-[:T]->(b:N {id: 'n8'}) RETURN a.id AS a",
		"MATCH (a:N)-->(b) WHERE b.id = 'n8' RETURN a.id AS a",
	} {
		t.Run(query, func(t *testing.T) {
			expect(t, rows(t, g, query, nil), "[a] [map[a:n7]]")
		})
	}
	var limit *graph.LimitError
	_, err = g.Cypher(t.Context(), "MATCH (a:N)-[:T]->(b:N) WHERE b.id ENDS WITH 'n8' RETURN a.id AS a", nil)
	if !errors.As(err, &limit) || limit.Limit != "Fuel" {
		t.Errorf("the control: %v", err)
	}
}

func TestARunawayQueryIsStopped(t *testing.T) {
	const endless = "UNWIND range(1, 100000) AS a UNWIND range(1, 100000) AS b WITH a, b WHERE a = b RETURN count(*)"
	for limit, config := range map[string]graph.Config{
		"Timeout":   {Timeout: 50 * time.Millisecond},
		"Fuel":      {Fuel: 1_000_000},
		"MaxMemory": {MaxMemory: 64 << 20, Timeout: time.Minute},
	} {
		t.Run(limit, func(t *testing.T) {
			g := open(t, config)
			if err := g.Update(t.Context(), traces); err != nil {
				t.Fatal(err)
			}
			query := endless
			if limit == "MaxMemory" {
				query = "UNWIND range(1, 100000000) AS a RETURN collect(a)"
			}
			_, err := g.Cypher(t.Context(), query, nil)
			var passed *graph.LimitError
			if !errors.As(err, &passed) || passed.Limit != limit {
				t.Errorf("%s: %v", limit, err)
			}
			if limit != "Fuel" {
				expect(t, rows(t, g, "MATCH (n) RETURN count(*) AS n", nil), "[n] [map[n:3]]")
			}
		})
	}

	g := open(t, graph.Config{})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := g.Cypher(ctx, endless, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("%v", err)
	}
}

func TestResultsAreCut(t *testing.T) {
	g := open(t, graph.Config{MaxRows: 3, MaxBytes: 4096})
	result, err := g.Cypher(t.Context(), "UNWIND range(1, 10) AS x RETURN x", nil)
	if err != nil || !result.Truncated || len(result.Rows) != 3 {
		t.Errorf("%+v (%v)", result, err)
	}
	result, err = g.Cypher(t.Context(), "UNWIND [1, 2] AS x RETURN range(1, 100) AS list", nil)
	if err != nil || !result.Truncated || len(result.Rows) != 1 {
		t.Errorf("%+v (%v)", result, err)
	}

	result, err = g.Cypher(t.Context(), "UNWIND range(1, 3) AS x RETURN x", nil)
	if err != nil || result.Truncated {
		t.Errorf("%+v (%v)", result, err)
	}
	a, err := g.SPARQL(t.Context(), "SELECT ?x { VALUES ?x { 1 2 3 4 } }")
	if err != nil || !a.Truncated || len(a.Rows) != 3 {
		t.Errorf("%+v (%v)", a, err)
	}
}

func TestAClosedGraph(t *testing.T) {
	g := open(t, graph.Config{})
	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Cypher(t.Context(), "RETURN 1", nil); !errors.Is(err, graph.ErrClosed) {
		t.Errorf("%v", err)
	}

	if err := g.Update(t.Context(), traces); !errors.Is(err, graph.ErrClosed) {
		t.Errorf("%v", err)
	}
}

func TestReadersRunSideBySide(t *testing.T) {
	g := open(t, graph.Config{})
	if err := g.Update(t.Context(), traces); err != nil {
		t.Fatal(err)
	}
	errs := make(chan error, 32)
	for i := range cap(errs) {
		go func() {
			if i%8 == 0 {
				errs <- g.Update(t.Context(), func(u *graph.Update) error {
					return u.AddNode(graph.Node{ID: fmt.Sprint("n", i), Labels: []string{"N"}})
				})
				return
			}
			_, err := g.Cypher(t.Context(), "MATCH (n:run_trace) RETURN n", nil)
			errs <- err
		}()
	}

	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	expect(t, rows(t, g, "MATCH (n:N) RETURN count(*) AS n", nil), "[n] [map[n:4]]")
}
