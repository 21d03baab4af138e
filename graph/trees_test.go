package graph_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm/graph"
)

// TestTreesOfQueriesAreStopped requests 2^40 rows without a loop. The control requests 2^5 rows.
func TestTreesOfQueriesAreStopped(t *testing.T) {
	cypher := func(depth int) string {
		var b strings.Builder
		for i := range depth {
			fmt.Fprintf(&b, "UNWIND [0, 1] AS a%d ", i)
		}
		return b.String() + "RETURN count(*) AS n"
	}
	sparql := func(depth int) string {
		var b strings.Builder
		for i := range depth {
			fmt.Fprintf(&b, "VALUES ?a%d { 0 1 } ", i)
		}
		return "SELECT (COUNT(*) AS ?n) WHERE { " + b.String() + "}"
	}

	for limit, config := range map[string]graph.Config{
		"Timeout": {Timeout: 100 * time.Millisecond, Fuel: 1 << 60},
		"Fuel":    {Fuel: 10_000_000, Timeout: time.Minute},
	} {
		t.Run(limit, func(t *testing.T) {
			g := open(t, config)
			if err := g.Update(t.Context(), traces); err != nil {
				t.Fatal(err)
			}
			for language, ask := range map[string]func(depth int) error{
				"Cypher": func(depth int) error { _, err := g.Cypher(t.Context(), cypher(depth), nil); return err },
				"SPARQL": func(depth int) error { _, err := g.SPARQL(t.Context(), sparql(depth)); return err },
			} {
				if err := ask(5); err != nil {
					t.Errorf("%s, %s: a small query: %v", language, limit, err)
				}
				var passed *graph.LimitError
				if err := ask(40); !errors.As(err, &passed) {
					t.Errorf("%s, %s: %v", language, limit, err)
				}
			}
		})
	}
}
