package graph_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm/graph"
)

// chain is a transitive property between so many nodes, from which many facts follow.
func chain(nodes int) string {
	var s strings.Builder
	s.WriteString("@prefix e: <http://e/> . e:next a <http://www.w3.org/2002/07/owl#TransitiveProperty> .\n")
	for i := range nodes - 1 {
		fmt.Fprintf(&s, "e:n%d e:next e:n%d .\n", i, i+1)
	}
	return s.String()
}

// TestAnInferenceOutlivesItsCaller asks with a context that ends long before the inference. The
// graph infers on, without another question, and the next one finds the facts.
func TestAnInferenceOutlivesItsCaller(t *testing.T) {
	g := open(t, graph.Config{})
	load(t, g, chain(150))
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := g.SPARQL(ctx, "ASK {}"); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("the inference has ended at once, or wrongly: %v", err)
	}

	for isInferred := false; !isInferred; {
		stats, err := g.Stats(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		isInferred = stats.IsInferred
	}
	expect(t, ask(t, g, "ASK { <http://e/n0> <http://e/next> <http://e/n149> }"), "true")
}

// TestCloseEndsAnInference closes a graph while one caller waits for its inference, and another
// one has given up.
func TestCloseEndsAnInference(t *testing.T) {
	g := open(t, graph.Config{})
	load(t, g, chain(2000))
	ctx, cancel := context.WithTimeout(t.Context(), time.Millisecond)
	defer cancel()
	if _, err := g.SPARQL(ctx, "ASK {}"); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("the inference has ended at once, or wrongly: %v", err)
	}
	ended := make(chan error)
	go func() {
		_, err := g.SPARQL(t.Context(), "ASK {}")
		ended <- err
	}()

	if err := g.Close(); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; !errors.Is(err, graph.ErrClosed) {
		t.Errorf("the caller that waits gets %v", err)
	}
}
