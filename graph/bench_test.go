package graph_test

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/graph"
)

// benchNodes is the number of nodes. Each node has five facts in RDF.
func benchNodes(b *testing.B) int {
	b.Helper()
	n, err := strconv.Atoi(os.Getenv("RLM_BENCH_NODES"))
	if err != nil {
		return 2000
	}
	return n
}

// benchTurtle returns n people of two classes, each with a name, an age and a friend.
func benchTurtle(n int) string {
	var s strings.Builder
	s.WriteString("@prefix au: <" + graph.Namespace + "> . " +
		"@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> . au:Worker rdfs:subClassOf au:Person .\n")
	for i := range n {
		fmt.Fprintf(&s, "au:n%d a au:%s ; au:name \"name %d\" ; au:age %d ; au:knows au:n%d, au:n%d .\n",
			i, []string{"Person", "Worker"}[i%2], i, i%90, (i*7+1)%n, (i*13+5)%n)
	}
	return s.String()
}

func BenchmarkLoadRDF(b *testing.B) {
	text := benchTurtle(benchNodes(b))
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		g := open(b, graph.Config{})
		load(b, g, text)
	}
}

func BenchmarkLoadNodes(b *testing.B) {
	n := benchNodes(b)
	for b.Loop() {
		g := open(b, graph.Config{})
		err := g.Update(b.Context(), func(u *graph.Update) error {
			for i := range n {
				err := u.AddNode(graph.Node{
					ID: fmt.Sprint("n", i), Labels: []string{"Person"}, Properties: map[string]any{"age": i % 90},
				})
				if err != nil {
					return err
				}
			}

			for i := range n {
				err := u.AddEdge(graph.Edge{
					From: fmt.Sprint("n", i), To: fmt.Sprint("n", (i*7+1)%n), Type: "KNOWS",
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/node")
}

// BenchmarkInference measures the first query after a load, which infers all facts and indexes
// them.
func BenchmarkInference(b *testing.B) {
	text := benchTurtle(benchNodes(b))
	for b.Loop() {
		b.StopTimer()
		g := open(b, graph.Config{})
		load(b, g, text)
		b.StartTimer()
		ask(b, g, "ASK { ?x a au:Person }")
	}
}

func BenchmarkQueries(b *testing.B) {
	g := open(b, graph.Config{})
	load(b, g, benchTurtle(benchNodes(b)))
	ask(b, g, "ASK {}")
	rows(b, g, "RETURN 1", nil)

	for name, query := range map[string]string{
		"lookup":    "SELECT ?x { au:n7 au:name ?x }",
		"closure":   "SELECT (COUNT(*) AS ?n) { ?x a au:Person }",
		"filter":    "SELECT (COUNT(*) AS ?n) { ?x au:age ?a FILTER(?a > 80) }",
		"join":      "SELECT (COUNT(*) AS ?n) { ?x au:knows ?y . ?y au:age 7 }",
		"path":      "SELECT (COUNT(*) AS ?n) { au:n7 au:knows/au:knows/au:knows ?y }",
		"aggregate": "SELECT ?a (COUNT(*) AS ?n) { ?x au:age ?a } GROUP BY ?a",
	} {
		b.Run("SPARQL/"+name, func(b *testing.B) {
			for b.Loop() {
				ask(b, g, query)
			}
		})
	}
	for name, query := range map[string]string{
		"lookup":    "MATCH (x {id: 'n7'}) RETURN x.name",
		"count":     "MATCH (x:Worker) RETURN count(*)",
		"filter":    "MATCH (x) WHERE x.age > 80 RETURN count(*)",
		"join":      "MATCH (x)-[:knows]->(y {age: 7}) RETURN count(*)",
		"path":      "MATCH (x {id: 'n7'})-[:knows*3..3]->(y) RETURN count(*)",
		"aggregate": "MATCH (x:Worker) RETURN x.age, count(*)",
	} {
		b.Run("Cypher/"+name, func(b *testing.B) {
			for b.Loop() {
				rows(b, g, query, nil)
			}
		})
	}
}
