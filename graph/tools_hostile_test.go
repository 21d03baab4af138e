package graph_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rlmhq/rlm/graph"
	"github.com/rlmhq/rlm/tiers"
)

// endless is a query that no machine can finish.
const endless = `"UNWIND range(1, 10000000) AS a UNWIND range(1, 1000000) AS b RETURN count(*) AS n"`

func TestTheEndOfASessionIsNoData(t *testing.T) {
	call, tools := toolsOf(t, couple(t), graph.ToolOptions{})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	value, err := tools.Call(ctx, tiers.Call{Function: "graph_query", Args: []tiers.Value{tiers.Value(endless)}})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a cancelled call gave %s, %v", value, err)
	}

	if got := call("graph_query", `"MATCH (p:Person) RETURN count(p) AS n"`); got != `[{"n":2}]` {
		t.Errorf("after it: %s", got)
	}
}

func TestAClosedGraphRaises(t *testing.T) {
	g := couple(t)
	call, _ := toolsOf(t, g, graph.ToolOptions{})
	var readers sync.WaitGroup
	for range 4 {
		readers.Go(func() {
			for range 50 {
				got := call("graph_query", `"MATCH (p:Person) RETURN count(p) AS n"`)
				if got != `[{"n":2}]` && got != "raised: graph_query: the graph is closed" {
					t.Errorf("while the graph closes: %s", got)
				}
			}
		})
	}

	if err := g.Close(); err != nil {
		t.Error(err)
	}
	readers.Wait()
	for name, args := range map[string][]string{
		"graph_query": {`"RETURN 1"`}, "owl_query": {`"ASK {}"`}, "kg_bulk_export": {`"*"`}, "magma_view": {`"x"`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := call(name, args...); got != "raised: "+name+": the graph is closed" {
				t.Errorf("%s: %s", name, got)
			}
		})
	}
}

func TestAClosedToolboxHasNoScratchGraphs(t *testing.T) {
	box, err := graph.NewToolbox(t.Context(), couple(t), graph.ToolOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(box.Close(), box.Close()); err != nil {
		t.Error(err)
	}

	for _, tool := range box.Tools() {
		if tool.Name != "ephemeral_graph_query" {
			continue
		}
		args := map[string]tiers.Value{"cypher": tiers.Value(`"RETURN 1"`), "namespace": tiers.Value(`"a"`)}
		if value, err := tool.Call(t.Context(), args); !errors.Is(err, graph.ErrClosed) {
			t.Errorf("after Close: %s, %v", value, err)
		}
	}
}

// TestSessionsShareAGraph runs sessions that read while another one writes. Each reader must
// receive only whole updates.
func TestSessionsShareAGraph(t *testing.T) {
	g := couple(t)
	writes, _ := toolsOf(t, g, graph.ToolOptions{Writable: true})
	var sessions sync.WaitGroup
	for range 3 {
		reads, _ := toolsOf(t, g, graph.ToolOptions{})
		sessions.Go(func() {
			for range 20 {
				got := reads("graph_query", `"MATCH (n:Pair) RETURN count(n) % 2 AS odd"`)
				if got != `[{"odd":0}]` {
					t.Errorf("half of an update: %s", got)
				}
				if got := reads("graph_query", `"CREATE (n:Pair)"`); !strings.Contains(got, "read-only") {
					t.Errorf("a reader wrote: %s", got)
				}
			}
		})
	}

	sessions.Go(func() {
		for range 20 {
			if got := writes("graph_query", `"CREATE (a:Pair), (b:Pair)"`); strings.Contains(got, "error") {
				t.Errorf("a write: %s", got)
			}
		}
	})
	sessions.Wait()
	if got := writes("graph_query", `"MATCH (n:Pair) RETURN count(n) AS n"`); got != `[{"n":40}]` {
		t.Errorf("after all writes: %s", got)
	}
}
