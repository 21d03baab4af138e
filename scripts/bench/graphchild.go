package main

import (
	"bufio"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/rlmhq/rlm/graph"
)

// graphChild answers the requests of measureGraphs with package graph, in its own process, so that
// the memory of the process shows how much package graph needs.
type graphChild struct {
	*graph.Graph
	kind, folder string
}

// serveGraph answers requests until the end of the input.
func serveGraph(ctx context.Context, kind, folder string, input io.Reader, output io.Writer) error {
	cache, err := os.UserCacheDir()
	if err != nil {
		return err
	}
	config := graph.Config{
		NoInference: kind != "closure", CacheDir: filepath.Join(cache, "rlm"),
		MaxMemory: 4 << 30, MaxRows: 1_000_000, MaxBytes: 1 << 30, Timeout: 5 * time.Minute,
	}
	g, err := graph.Open(ctx, config)
	if err != nil {
		return err
	}
	child := &graphChild{g, kind, folder}
	defer func() { _ = child.Close() }()

	lines := bufio.NewScanner(input)
	for lines.Scan() {
		var request graphRequest
		if err := json.Unmarshal(lines.Bytes(), &request); err != nil {
			return err
		}
		start := time.Now()
		rows, err := child.answer(ctx, request)
		reply := graphReply{Seconds: time.Since(start).Seconds(), Rows: rows}
		if err != nil {
			reply.Error = err.Error()
		}
		if reply.Memory, err = mostMemory(); err != nil {
			return err
		}
		if err := json.NewEncoder(output).Encode(reply); err != nil {
			return err
		}
	}
	return lines.Err()
}

func (c *graphChild) answer(ctx context.Context, request graphRequest) (int, error) {
	switch {
	case request.Do == "load" && c.kind == "cypher":
		return c.loadTables(ctx)
	case request.Do == "load":
		return c.loadFacts(ctx)
	case request.Do == "infer":
		return c.countFacts(ctx)
	case request.Do == "first":
		return c.first(ctx)
	case c.kind == "sparql":
		answer, err := c.SPARQL(ctx, request.Query)
		if err != nil {
			return 0, err
		}
		return len(answer.Rows), nil
	}
	rows, err := c.Cypher(ctx, request.Query, nil)
	if err != nil {
		return 0, err
	}
	return len(rows.Rows), nil
}

// loadFacts loads the million facts. For a closure, it does nothing else, so that the next request
// shows the cost of inference. For queries, it prepares the graph to answer.
func (c *graphChild) loadFacts(ctx context.Context) (int, error) {
	files := map[string]string{"facts.ttl": "ntriples"}
	if c.kind == "closure" {
		files["ontology.ttl"] = "turtle"
	}
	for name, format := range files {
		file, err := os.Open(filepath.Join(c.folder, name))
		if err != nil {
			return 0, err
		}
		if err := errors.Join(c.LoadRDF(ctx, file, format, ""), file.Close()); err != nil {
			return 0, err
		}
	}
	if c.kind == "closure" {
		return 0, nil
	}
	return c.countFacts(ctx)
}

func (c *graphChild) countFacts(ctx context.Context) (int, error) {
	answer, err := c.SPARQL(ctx, "SELECT (COUNT(*) AS ?n) { ?s ?p ?o }")
	if err != nil {
		return 0, err
	}
	n, _ := answer.Rows[0]["n"].(int64)
	return int(n), nil
}

// loadTables loads the property graph.
func (c *graphChild) loadTables(ctx context.Context) (int, error) {
	err := c.Update(ctx, func(u *graph.Update) error {
		for label, number := range map[string]string{"Person": "age", "City": "population"} {
			err := c.eachRecord(label, func(record []string) error {
				value, err := strconv.ParseInt(record[2], 10, 64)
				if err != nil {
					return err
				}
				return u.AddNode(graph.Node{ID: record[0], Labels: []string{label}, Properties: map[string]any{
					"name": record[1], number: value,
				}})
			})
			if err != nil {
				return err
			}
		}
		for _, kind := range []string{"LIVES_IN", "KNOWS", "PART_OF", "TWIN_OF"} {
			err := c.eachRecord(kind, func(record []string) error {
				return u.AddEdge(graph.Edge{From: record[0], To: record[1], Type: kind})
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return c.answer(ctx, graphRequest{Query: "MATCH (n) RETURN count(*)"})
}

// eachRecord reads a table of the data.
func (c *graphChild) eachRecord(table string, use func([]string) error) error {
	file, err := os.Open(filepath.Join(c.folder, table+".csv"))
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	reader := csv.NewReader(bufio.NewReader(file))
	reader.ReuseRecord = true
	for {
		record, err := reader.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := use(record); err != nil {
			return err
		}
	}
}

// first loads a small graph, and runs one query on it.
func (c *graphChild) first(ctx context.Context) (int, error) {
	var facts strings.Builder
	for i := range 100 {
		fmt.Fprintf(&facts, "<%sa%d> <%sname> \"a %[2]d\" .\n", graphNamespace, i, graphNamespace)
	}
	if err := c.LoadRDF(ctx, strings.NewReader(facts.String()), "turtle", ""); err != nil {
		return 0, err
	}
	if c.kind == "first-cypher" {
		return c.answer(ctx, graphRequest{Query: "MATCH (n) RETURN count(*)"})
	}
	return c.countFacts(ctx)
}

// mostMemory returns the peak memory of the process, in bytes.
func mostMemory() (int64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(string(status)) {
		if kib, found := strings.CutPrefix(line, "VmHWM:"); found {
			n, err := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(kib), " kB"), 10, 64)
			return n << 10, err
		}
	}
	return 0, errors.New("the system does not tell a process's memory")
}
