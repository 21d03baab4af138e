package escapes

import (
	"context"
	"testing"
	"time"

	"github.com/rlmhq/rlm/tiers"
)

// neighbour is another session of the tier, which works while a case runs.
type neighbour struct {
	box     tiers.Sandbox
	stop    context.CancelFunc
	answers chan int
}

// startNeighbour opens a session that runs small snippets until end is called.
func (e *escape) startNeighbour(t *testing.T) *neighbour {
	t.Helper()
	box, err := e.tier.Open(t.Context(), tiers.Config{Limits: tiers.Limits{Memory: caseMemory}})
	if err != nil {
		t.Fatalf("cannot open the neighbour's sandbox: %v", err)
	}

	// The first snippet also waits for the start of an interpreter, which may take a long time. If
	// the tier already hangs, the next snippet reveals it.
	first, end := context.WithTimeout(t.Context(), 20*time.Second)
	_, _ = box.Run(first, tiers.Job{Source: "x = 1"})
	end()

	n := &neighbour{box: box, answers: make(chan int, 1)}
	ctx, stop := context.WithCancel(t.Context())
	n.stop = stop
	go func() {
		answers := 0
		for ctx.Err() == nil {
			if r, err := box.Run(ctx, tiers.Job{Source: "x = 6 * 7"}); err == nil && r.Status == tiers.StatusOK {
				answers++
			}
		}
		n.answers <- answers
	}()
	return n
}

// end closes the session and returns the number of snippets that it ran.
func (n *neighbour) end(t *testing.T) int {
	t.Helper()
	n.stop()
	answers := <-n.answers
	if err := n.box.Close(); err != nil {
		t.Errorf("cannot close the neighbour's sandbox: %v", err)
	}
	return answers
}
