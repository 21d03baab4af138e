package graph_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm/graph"
)

// TestDeepNestingEndsOneCall overflows the engine's stack in its query parsers, and loads deeply
// nested RDF.
func TestDeepNestingEndsOneCall(t *testing.T) {
	g := open(t, graph.Config{Timeout: 5 * time.Second, LoadTimeout: 20 * time.Second})
	if err := g.Update(t.Context(), traces); err != nil {
		t.Fatal(err)
	}
	const deep = 50_000
	open, shut := strings.Repeat("[", deep), strings.Repeat("]", deep)

	if _, err := g.Cypher(t.Context(), "RETURN "+open+shut, nil); err == nil {
		t.Error("Cypher: no error")
	}
	braces := strings.Repeat("{", deep) + strings.Repeat("}", deep)
	if _, err := g.SPARQL(t.Context(), "SELECT * "+braces); err == nil {
		t.Error("SPARQL: no error")
	}
	for format, text := range map[string]string{
		"jsonld": strings.Repeat(`{"http://a/b":`, deep) + "1" + strings.Repeat("}", deep),
		"turtle": "<http://a/b> <http://a/c> " + strings.Repeat("(", deep),
		"rdfxml": strings.Repeat("<a>", deep),
	} {
		t.Run(format, func(t *testing.T) {
			err := g.LoadRDF(t.Context(), strings.NewReader(text), format, "")
			wantError(t, err, "line 1: more than 1000 brackets or elements are open")
		})
	}
	expect(t, rows(t, g, "MATCH (n:run_trace) RETURN count(*) AS n", nil), "[n] [map[n:2]]")
}

// TestHalfADocumentIsRefused loads RDF/XML whose premature end the engine's parser does not detect.
func TestHalfADocumentIsRefused(t *testing.T) {
	g := open(t, graph.Config{})
	const half = `<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:x="http://x/">` +
		`<rdf:Description rdf:about="http://x/s"><x:p>a</x:p></rdf:Description>`
	err := g.LoadRDF(t.Context(), strings.NewReader(half), "rdfxml", "")
	wantError(t, err, "line 1: the document ends within an element")
	if err := g.LoadRDF(t.Context(), strings.NewReader(half+"</rdf:RDF>"), "rdfxml", ""); err != nil {
		t.Error(err)
	}
	expect(t, rows(t, g, "MATCH (n) RETURN count(*) AS n", nil), "[n] [map[n:1]]")

	wantError(t, g.LoadRDF(t.Context(), strings.NewReader(half), "jsonl", ""), "not a format of RDF")
}

func TestNothingIsFetched(t *testing.T) {
	g := open(t, graph.Config{})
	remote := `{"@context": "http://127.0.0.1:1/context.jsonld", "name": "x"}`
	if err := g.LoadRDF(t.Context(), strings.NewReader(remote), "jsonld", ""); err == nil {
		t.Error("a remote context was accepted")
	}
}

// TestEntitiesDoNotExplode loads XML whose entities would expand to a gigabyte.
func TestEntitiesDoNotExplode(t *testing.T) {
	g := open(t, graph.Config{MaxMemory: 256 << 20, LoadTimeout: 20 * time.Second})
	bomb := `<?xml version="1.0"?><!DOCTYPE rdf [<!ENTITY a "` + strings.Repeat("a", 1000) + `">`
	for name := 'b'; name < 'i'; name++ {
		bomb += "<!ENTITY " + string(name) + ` "` + strings.Repeat("&"+string(name-1)+";", 10) + `">`
	}

	bomb += `]><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:x="http://x/">` +
		`<rdf:Description rdf:about="http://x/s"><x:p>&h;</x:p></rdf:Description></rdf:RDF>`
	err := g.LoadRDF(t.Context(), strings.NewReader(bomb), "rdfxml", "")
	var query *graph.QueryError
	var limit *graph.LimitError
	if !errors.As(err, &query) && !errors.As(err, &limit) {
		t.Errorf("%v", err)
	}
	expect(t, rows(t, g, "MATCH (n) RETURN count(*) AS n", nil), "[n] [map[n:0]]")
}

func TestPathsHaveABound(t *testing.T) {
	g := open(t, graph.Config{MaxPathDepth: 3})
	if err := g.Update(t.Context(), traces); err != nil {
		t.Fatal(err)
	}
	if _, err := g.Cypher(t.Context(), "MATCH (a)-[:CAUSED_BY*1..4]->(b) RETURN b.id", nil); err == nil {
		t.Error("a pattern beyond the bound was accepted")
	}

	expect(t, rows(t, g, "MATCH p = (a)-[:CAUSED_BY*1..3]->(b) RETURN length(p), b.id", nil),
		"[length(p) b.id] [map[b.id:run-2 length(p):1]]")
}

func TestViews(t *testing.T) {
	g := open(t, graph.Config{})
	err := g.Update(t.Context(), func(u *graph.Update) error {
		return errors.Join(
			u.AddNode(graph.Node{ID: "t1", Labels: []string{"reasoning_trace"}, Properties: map[string]any{
				"text": "the cache was cold", "sequence": 1,
			}}),
			u.AddNode(graph.Node{
				ID: "t2", Labels: []string{"ReasoningTrace"}, Properties: map[string]any{"sequence": 2},
			}),
			u.AddEdge(graph.Edge{From: "t2", To: "t1", Type: "CAUSED_BY"}),
		)
	})
	if err != nil {
		t.Fatal(err)
	}
	views, err := g.View(t.Context(), "cold cache", nil)
	if err != nil || len(views) != 4 {
		t.Fatalf("%v (%v)", views, err)
	}

	ids := func(view, column string) (all string) {
		for _, row := range views[view] {
			all += row[column].(map[string]any)["id"].(string) + " "
		}
		return all
	}
	expect(t, ids("semantic", "node"), "t1 ")
	expect(t, ids("temporal", "node"), "t2 t1 ")
	expect(t, ids("causal", "cause"), "t1 ")
	if _, err := g.View(t.Context(), "x", []string{"nonsense"}); err == nil {
		t.Error("an unknown view was accepted")
	}
}

// TestDocumentsLoadInLinearTime loads documents for which a simple parser takes quadratic time.
func TestDocumentsLoadInLinearTime(t *testing.T) {
	g := open(t, graph.Config{})
	many := func(format string) string {
		var b strings.Builder
		for i := range 3000 {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	terms := many(`"t%d":"http://x/t",`) + `"z":"http://x/z"`
	for _, c := range []struct{ format, text, want string }{
		{
			"jsonld", `{"@context":{"p":{"@id":"http://x/p","@context":{` + terms + `}}},"p":[1` + many(",%d") + `]}`,
			"its contexts take too long",
		},
		{
			"jsonld", `{"p":[1` + many(",%d") + `],"@context":{"p":{"@id":"http://x/p","@context":{` + terms + `}}}}`,
			"must be the first member",
		},
		{
			"jsonld", `{"@context":{` + terms + `},"@graph":[{}` + many(`,{"@context":{},"n":%d}`) + `]}`,
			"its contexts take too long",
		},
		{
			"jsonld", `{"@context":{` + many(`"a%[1]d":{"@context":{}},"b%[1]d":{"@context":{}},`) +
				many(`"c%[1]d":{"@context":{}},"d%[1]d":{"@context":{}},`) + `"z":"http://x/z"}}`,
			"its contexts take too long",
		},
		{"rdfxml", "<rdf:RDF " + many(" xmlns:a%d='http://x/'") + "></rdf:RDF>", "more than 1000 attributes"},
		{"ntriples", `<http://x/a> <http://x/b> "` + strings.Repeat("a", 17<<20), "more than 16 MiB: split it"},
	} {
		t.Run(c.format, func(t *testing.T) {
			err := g.LoadRDF(t.Context(), strings.NewReader(c.text), c.format, "")
			wantError(t, err, c.want)
		})
	}

	terms = `{"p":{"@id":"http://x/p","@context":{"q":"http://x/q"}}}`
	text := `{"@context":` + terms + `,"@graph":[{"@id":"http://x/a","p":{"@id":"http://x/b","q":1}}]}`
	if err := g.LoadRDF(t.Context(), strings.NewReader(text), "jsonld", ""); err != nil {
		t.Fatal(err)
	}
	expect(t, rows(t, g, "MATCH (n)-[:p]->(m) RETURN m.q AS q", nil), "[q] [map[q:1]]")
}

// TestADeepResultIsAnErrorOfTheQuery builds deeply nested lists.
func TestADeepResultIsAnErrorOfTheQuery(t *testing.T) {
	g := open(t, graph.Config{})
	_, err := g.Cypher(t.Context(), "RETURN reduce(a = [], x IN range(1, 100) | [a]) AS deep", nil)
	var wrong *graph.QueryError
	if !errors.As(err, &wrong) {
		t.Errorf("got %v", err)
	}
	wantError(t, err, "more than 64 levels of lists and maps")
}
