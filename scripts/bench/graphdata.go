package main

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
)

const graphNamespace = "http://example.org/"

// graphOntology entails about a million additional facts from the million facts.
const graphOntology = `@prefix ex: <` + graphNamespace + `> .
@prefix owl: <http://www.w3.org/2002/07/owl#> .
@prefix rdfs: <http://www.w3.org/2000/01/rdf-schema#> .
ex:Person rdfs:subClassOf ex:Agent .
ex:City rdfs:subClassOf ex:Place .
ex:livesIn rdfs:subPropertyOf ex:locatedIn .
ex:partOf a owl:TransitiveProperty .
ex:knows a owl:SymmetricProperty .
`

// graphNode is a node of the data. Every twentieth node is a city; the others are people.
type graphNode struct {
	id, label, name, numberName string
	number                      int
	edges                       []graphEdge
}

// graphEdge is an edge, for example of type LIVES_IN in Cypher and with the property livesIn in
// RDF.
type graphEdge struct{ kind, property, to string }

func makeGraphNode(i int) graphNode {
	id := func(i int) string { return fmt.Sprintf("n%d", i) }
	if i%20 == 0 {
		city := i / 20
		return graphNode{
			id(i), "City", fmt.Sprintf("city %d", city), "population", 500 + city*7919%1_000_003,
			[]graphEdge{
				{"PART_OF", "partOf", id(city / 10 * 20)},
				{"TWIN_OF", "twinOf", id((city*31 + 7) % (graphNodes / 20) * 20)},
			},
		}
	}
	friend := (i*7919 + 11) % graphNodes
	if friend%20 == 0 {
		friend++
	}
	return graphNode{
		id(i), "Person", fmt.Sprintf("person %d", i), "age", 18 + i*31%70,
		[]graphEdge{
			{"LIVES_IN", "livesIn", id(i * 13 % (graphNodes / 20) * 20)},
			{"KNOWS", "knows", id(friend)},
		},
	}
}

// writeGraph writes the data: facts, an ontology, and tables of nodes and edges. The facts are
// N-Triples, which are also valid Turtle.
func writeGraph(folder string) error {
	files := map[string]*bufio.Writer{}
	var open []*os.File
	defer func() {
		for _, file := range open {
			_ = file.Close() // for errors; the writers are flushed below
		}
	}()
	for _, name := range []string{
		"facts.ttl", "ontology.ttl", "Person.csv", "City.csv",
		"LIVES_IN.csv", "KNOWS.csv", "PART_OF.csv", "TWIN_OF.csv",
	} {
		file, err := os.Create(filepath.Join(folder, name))
		if err != nil {
			return err
		}
		open = append(open, file)
		files[name] = bufio.NewWriter(file)
	}

	facts := files["facts.ttl"]
	ontology := files["ontology.ttl"]
	_, _ = ontology.WriteString(graphOntology)
	for i := range graphNodes {
		n := makeGraphNode(i)
		subject := "<" + graphNamespace + n.id + ">"
		property := func(name string) string { return "<" + graphNamespace + name + ">" }
		fmt.Fprintf(facts, "%s <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> %s .\n", subject,
			property(n.label))
		fmt.Fprintf(facts, "%s %s \"%s\" .\n", subject, property("name"), n.name)
		fmt.Fprintf(facts, "%s %s \"%d\"^^<http://www.w3.org/2001/XMLSchema#integer> .\n", subject,
			property(n.numberName), n.number)
		fmt.Fprintf(files[n.label+".csv"], "%s,%s,%d\n", n.id, n.name, n.number)
		for _, e := range n.edges {
			fmt.Fprintf(facts, "%s %s %s .\n", subject, property(e.property), property(e.to))
			fmt.Fprintf(files[e.kind+".csv"], "%s,%s\n", n.id, e.to)
		}
	}
	for _, file := range files {
		if err := file.Flush(); err != nil {
			return err
		}
	}
	return nil
}
