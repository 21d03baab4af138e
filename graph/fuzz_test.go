package graph_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm/graph"
)

// fuzzQueries runs queries on a graph, which must remain usable and unchanged.
func fuzzQueries(f *testing.F, query func(*testing.T, *graph.Graph, string) error) {
	f.Helper()
	g := open(f, graph.Config{Timeout: time.Second, MaxMemory: 128 << 20, MaxRows: 100})
	if err := g.Update(f.Context(), traces); err != nil {
		f.Fatal(err)
	}

	f.Fuzz(func(t *testing.T, text string) {
		err := query(t, g, text)
		var wrong *graph.QueryError
		var limit *graph.LimitError
		if err != nil && !errors.As(err, &wrong) && !errors.As(err, &limit) && !errors.Is(err, graph.ErrReadOnly) {
			t.Logf("%q: %v", text, err)
			if strings.Contains(err.Error(), "engine failed") {
				t.Fail()
			}
		}
		expect(t, rows(t, g, "MATCH (n) RETURN count(*) AS n", nil), "[n] [map[n:3]]")
	})
}

func FuzzCypher(f *testing.F) {
	for _, seed := range []string{
		"MATCH (a)-[r*1..3]->(b) WHERE a.score > 1 RETURN a, collect(b.id) ORDER BY a.id LIMIT 3",
		"MATCH (a {é: 'ü'})-->(b {id: 'run-1'})<-[r:T]-(c) WHERE c.id = 'edit' RETURN a",
		"UNWIND [1, 2] AS x WITH x RETURN sum(x)", "RETURN duration.between(date('2024-W02'), datetime())",
		"RETURN date.truncate('week', date('2024-01-31') + duration('P1Y2M3DT4.5S'), {day: 2}).week",
		"MATCH p = (a)-[*0..2]-() WITH a, count(p) AS n WHERE n > 1 RETURN [x IN range(1, n) WHERE x % 2 = 0 | x / n]",
		"OPTIONAL MATCH (a)-[r]->(b) RETURN DISTINCT properties(r), a {.*, x: 1} ORDER BY size(keys(a)) DESC SKIP 1",
		"CREATE (:A {x: 1})", "RETURN é, `a b` AS c",
		"MATCH (a) WHERE a.score > 1 OR a.id CONTAINS 'e' AND a.x IS NULL RETURN a.id, count(*), sum(a.score)",
		"RETURN datetime('2024-03-31T02:30[Europe/Paris]') + duration('P1D') AS d",
	} {
		f.Add(seed)
	}

	fuzzQueries(f, func(t *testing.T, g *graph.Graph, text string) error {
		t.Helper()
		_, err := g.Cypher(t.Context(), text, map[string]any{"p": 1})
		return err
	})
}

func FuzzSPARQL(f *testing.F) {
	for _, seed := range []string{
		"SELECT ?s (COUNT(*) AS ?n) { ?s au:score ?x FILTER(?x > 1) } GROUP BY ?s", "ASK {}",
		"CONSTRUCT { ?s a ?o } WHERE { ?s au:causedBy+ ?o }", "DESCRIBE au:edit", "CLEAR ALL",
		"PREFIX é: <http://e/> ASK { ?x é:a:b '''a:''' ; ex:p \"\\\"\", _:b # c:d\n FILTER(?x<1) }",
	} {
		f.Add(seed)
	}

	fuzzQueries(f, func(t *testing.T, g *graph.Graph, text string) error {
		t.Helper()
		_, err := g.SPARQL(t.Context(), text)
		return err
	})
}
