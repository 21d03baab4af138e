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

// chain returns Turtle with a chain of nodes linked by a transitive property, which implies many
// facts.
func chain(nodes int) string {
	var s strings.Builder
	s.WriteString("@prefix e: <http://e/> . e:next a <http://www.w3.org/2002/07/owl#TransitiveProperty> .\n")
	for i := range nodes - 1 {
		fmt.Fprintf(&s, "e:n%d e:next e:n%d .\n", i, i+1)
	}
	return s.String()
}

// TestAnInferenceOutlivesItsCallers queries repeatedly, each time with a timeout much shorter than
// the inference. If each caller started the inference again, none would ever get an answer.
func TestAnInferenceOutlivesItsCallers(t *testing.T) {
	const ask = "ASK { <http://e/n0> <http://e/next> <http://e/n200> }"
	isShort := true // the inference ended before its first caller gave up
	for nodes := 250; isShort; nodes *= 2 {
		g := open(t, graph.Config{})
		load(t, g, chain(nodes))
		askShortly := func() (bool, error) {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			defer cancel()
			answer, err := g.SPARQL(ctx, ask)
			return err == nil && answer.Boolean, err
		}

		isInferred, err := askShortly()
		isShort = isInferred
		for errors.Is(err, context.DeadlineExceeded) {
			isInferred, err = askShortly()
		}
		if err != nil || !isInferred {
			t.Fatalf("the last answer is %v: %v", isInferred, err)
		}
	}
}

// TestCloseEndsAnInference closes a graph while one caller waits for its inference and another one
// has given up.
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
