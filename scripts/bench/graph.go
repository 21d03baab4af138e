package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"time"
)

const (
	// graphNodes is the number of nodes. With five facts each, they make a million facts.
	graphNodes = 200_000
	graphReach = 3 // times the native engine

	// firstQuery bounds the start of a process with a small graph, until its first answer.
	firstQuery = 150 * time.Millisecond

	graphRuns = 5
)

// graphQueries are the queries in each language.
var graphQueries = map[string][]string{
	"sparql": {
		"SELECT ?p ?o { ex:n777 ?p ?o }",
		"SELECT (COUNT(*) AS ?n) { ?p a ex:Person ; ex:age ?age FILTER(?age > 60) }",
		"SELECT ?p ?name { ?p ex:livesIn ex:n5460 ; ex:name ?name }",
		"SELECT ?age (COUNT(?p) AS ?n) { ?p ex:age ?age } GROUP BY ?age ORDER BY DESC(?n) ?age",
		"SELECT (COUNT(DISTINCT ?c) AS ?n) { ?p ex:livesIn ?c }",
		"SELECT ?c { ex:n1234 ex:knows/ex:knows/ex:knows ?c }",
		"SELECT ?r { ex:n199980 ex:partOf+ ?r }",
		"SELECT ?c ?t { ?c ex:population ?n . FILTER(?n < 20000) OPTIONAL { ?c ex:twinOf ?t } }",
		"SELECT ?p ?age { ?p ex:age ?age ; ex:name ?name } ORDER BY DESC(?age) ?name LIMIT 10",
		"SELECT (COUNT(*) AS ?n) { ?p ex:name ?name FILTER(CONTAINS(?name, '99')) }",
	},
	"cypher": {
		"MATCH (p:Person {id: 'n777'}) RETURN p.name, p.age",
		"MATCH (p:Person) WHERE p.age > 60 RETURN count(*)",
		"MATCH (p:Person)-[:LIVES_IN]->(c:City {id: 'n5460'}) RETURN p.id, p.name",
		"MATCH (p:Person) RETURN p.age, count(*) AS n ORDER BY n DESC, p.age",
		"MATCH (p:Person)-[:LIVES_IN]->(c:City) RETURN count(DISTINCT c.id)",
		"MATCH (a:Person {id: 'n1234'})-[:KNOWS]->()-[:KNOWS]->()-[:KNOWS]->(b:Person) RETURN b.id",
		"MATCH (a:City {id: 'n199980'})-[:PART_OF*1..4]->(b:City) RETURN b.id",
		"MATCH (c:City) WHERE c.population < 20000 OPTIONAL MATCH (c)-[:TWIN_OF]->(t:City) RETURN c.id, t.id",
		"MATCH (p:Person) RETURN p.id, p.age ORDER BY p.age DESC, p.name LIMIT 10",
		"MATCH (p:Person) WHERE p.name CONTAINS '99' RETURN count(*)",
	},
}

// measureGraphs compares package graph with the engines of other wheels, each in its own
// process, in turns.
func (b *bench) measureGraphs() error {
	folder, err := os.MkdirTemp("", "rlm-bench-graph")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	if err := writeGraph(folder); err != nil {
		return err
	}

	if err := b.measureFirstQuery(folder); err != nil {
		return err
	}
	for _, language := range []string{"sparql", "cypher"} {
		if err := b.measureGraph(language, folder); err != nil {
			return fmt.Errorf("%s: %w", language, err)
		}
	}
	return b.measureClosure(folder)
}

// graphEngines returns the processes to compare, ours first.
func (b *bench) graphEngines(kind, folder string) (pair [2]*graphProcess, stop func(), err error) {
	ours, err := startGraph(b.ctx, os.Args[0], "-only", "graph-child", "-graph", kind, "-folder", folder)
	if err != nil {
		return pair, nil, err
	}
	native, err := startGraph(b.ctx, b.python, "scripts/graph/native.py", kind, folder)
	if err != nil {
		ours.stop()
		return pair, nil, err
	}
	return [2]*graphProcess{ours, native}, func() { ours.stop(); native.stop() }, nil
}

func (b *bench) measureGraph(language, folder string) error {
	engines, stop, err := b.graphEngines(language, folder)
	if err != nil {
		return err
	}
	defer stop()
	if err := b.compareOnce(language+": load", engines, graphRequest{Do: "load"}); err != nil {
		return err
	}

	var memory [2]int64
	for _, query := range graphQueries[language] {
		var best [2]graphReply
		for run := range graphRuns {
			for i, engine := range engines {
				reply, err := engine.ask(graphRequest{Do: "query", Query: withPrefix(language, query)})
				if err != nil {
					return fmt.Errorf("%s: %w", query, err)
				}
				if run == 0 || reply.Seconds < best[i].Seconds {
					best[i] = reply
				}
				memory[i] = reply.Memory
			}
		}
		if best[0].Rows != best[1].Rows {
			return fmt.Errorf("%s: %d rows here, %d there", query, best[0].Rows, best[1].Rows)
		}
		b.addSeconds("`"+query+"`", best)
	}
	b.addMemory(language+": most memory", memory)
	return nil
}

func withPrefix(language, query string) string {
	if language == "sparql" {
		return "PREFIX ex: <" + graphNamespace + "> " + query
	}
	return query
}

// measureClosure compares the time to compute the facts that the ontology entails.
func (b *bench) measureClosure(folder string) error {
	engines, stop, err := b.graphEngines("closure", folder)
	if err != nil {
		return err
	}
	defer stop()
	for _, engine := range engines {
		if _, err := engine.ask(graphRequest{Do: "load"}); err != nil {
			return err
		}
	}
	return b.compareOnce("closure", engines, graphRequest{Do: "infer"})
}

// compareOnce compares a request that works only once in a process.
func (b *bench) compareOnce(what string, engines [2]*graphProcess, request graphRequest) error {
	var replies [2]graphReply
	for i, engine := range engines {
		var err error
		if replies[i], err = engine.ask(request); err != nil {
			return fmt.Errorf("%s: %w", what, err)
		}
	}
	b.addSeconds(what, replies)
	b.addMemory(what+": most memory", [2]int64{replies[0].Memory, replies[1].Memory})
	return nil
}

func (b *bench) addSeconds(what string, replies [2]graphReply) {
	ours, native := replies[0].Seconds, replies[1].Seconds
	b.add(what, millis(ours), millis(native), ours/native, graphReach)
}

func (b *bench) addMemory(what string, bytes [2]int64) {
	b.add(what, fmt.Sprintf("%d MiB", bytes[0]>>20), fmt.Sprintf("%d MiB", bytes[1]>>20),
		float64(bytes[0])/float64(bytes[1]), graphReach)
}

func millis(seconds float64) string { return fmt.Sprintf("%.3g ms", seconds*1e3) }

// measureFirstQuery times processes from their start to their first answer, and their total
// processor time, which other programs affect less. It ignores the first process, which may compile
// the engine.
func (b *bench) measureFirstQuery(folder string) error {
	for _, kind := range []string{"first-sparql", "first-cypher"} {
		var times, busy []time.Duration
		for range graphRuns + 1 {
			start := time.Now()
			process, err := startGraph(b.ctx, os.Args[0], "-only", "graph-child", "-graph", kind, "-folder", folder)
			if err != nil {
				return err
			}
			_, err = process.ask(graphRequest{Do: "first"})
			times = append(times, time.Since(start))
			process.stop()
			if err != nil {
				return fmt.Errorf("%s: %w", kind, err)
			}
			state := process.command.ProcessState
			busy = append(busy, state.UserTime()+state.SystemTime())
		}

		report := func(what string, all []time.Duration) {
			best := slices.Min(all[1:])
			b.addPlain(kind+what, best.Round(time.Millisecond).String(),
				"<= "+firstQuery.String(), best <= firstQuery)
		}
		report(" query of a process", times)
		report(" query of a process: processors' time", busy)
	}
	return nil
}

type (
	graphRequest struct {
		Do    string `json:"do"`
		Query string `json:"query"`
	}
	graphReply struct {
		Seconds float64 `json:"seconds"`
		Rows    int     `json:"rows"`
		Memory  int64   `json:"memory"`
		Error   string  `json:"error"`
	}
)

// graphProcess is an engine that reads requests and writes replies, each as a line of JSON.
type graphProcess struct {
	command *exec.Cmd
	input   io.WriteCloser
	output  *bufio.Reader
}

func startGraph(ctx context.Context, program string, args ...string) (*graphProcess, error) {
	command := exec.CommandContext(ctx, program, args...)
	command.Stderr = os.Stderr
	input, err := command.StdinPipe()
	if err != nil {
		return nil, err
	}
	output, err := command.StdoutPipe()
	if err != nil {
		return nil, err
	}
	return &graphProcess{command, input, bufio.NewReader(output)}, command.Start()
}

func (p *graphProcess) ask(request graphRequest) (graphReply, error) {
	var reply graphReply
	if err := json.NewEncoder(p.input).Encode(request); err != nil {
		return reply, err
	}
	line, err := p.output.ReadBytes('\n')
	if err != nil {
		return reply, fmt.Errorf("%s has ended: %w", filepath.Base(p.command.Path), err)
	}
	if err := json.Unmarshal(line, &reply); err != nil {
		return reply, err
	}
	if reply.Error != "" {
		return reply, fmt.Errorf("%s", reply.Error)
	}
	return reply, nil
}

// stop closes the input of the process, which then ends.
func (p *graphProcess) stop() {
	_ = p.input.Close()
	_ = p.command.Wait()
}
