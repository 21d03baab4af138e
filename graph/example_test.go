package graph_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/rlmhq/rlm/graph"
	"github.com/rlmhq/rlm/internal/testing/testcache"
)

// A graph answers Cypher and SPARQL queries, and infers facts.
func Example() {
	if err := example(context.Background()); err != nil {
		fmt.Println(err)
	}
	// Output:
	// [map[a.id:second b.id:first]]
	// 2 runs
}

func example(ctx context.Context) error {
	g, err := graph.Open(ctx, graph.Config{CacheDir: testcache.Dir()})
	if err != nil {
		return err
	}
	defer g.Close()

	err = g.Update(ctx, func(u *graph.Update) error {
		for _, id := range []string{"first", "second"} {
			if err := u.AddNode(graph.Node{ID: id, Labels: []string{"failed_run"}}); err != nil {
				return err
			}
		}
		if err := u.AddEdge(graph.Edge{From: "second", To: "first", Type: "CAUSED_BY"}); err != nil {
			return err
		}
		return u.RDF(strings.NewReader(`
			@prefix au: <http://agent-utilities.dev/ontology#> .
			@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
			au:FailedRun rdfs:subClassOf au:Run .`), "turtle", "")
	})
	if err != nil {
		return err
	}

	rows, err := g.Cypher(ctx, "MATCH (a)-[:CAUSED_BY]->(b) RETURN a.id, b.id", nil)
	if err != nil {
		return err
	}
	fmt.Println(rows.Rows)
	answer, err := g.SPARQL(ctx, "SELECT ?run WHERE { ?run a au:Run } ORDER BY ?run")
	if err != nil {
		return err
	}
	fmt.Println(len(answer.Rows), "runs")
	return nil
}
