package httpclient

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/rlmhq/rlm/repl/llm/internal/kind"
)

// pace bounds the requests in flight to one server. It follows the server's answers: a 429
// halves the bound, and successes raise it again by one per round (additive increase,
// multiplicative decrease, as in RFC 5681, section 3.1). The zero pace has no bound until the
// first 429.
type pace struct {
	mu     sync.Mutex
	most   float64 // 0: unbounded
	start  float64 // the bound before any 429, which successes never exceed; 0: unbounded
	flying int
	round  int // counts the halvings
	queue  []chan struct{}
}

// newPace returns a pace with an initial bound, for a server that handles few requests concurrently
// and queues the others. Zero means no bound.
func newPace(atOnce int) *pace {
	return &pace{most: float64(atOnce), start: float64(atOnce)}
}

// enter waits for a place, and returns the round in which the request begins. Call leave to
// return the place.
func (p *pace) enter(ctx context.Context) (round int, err error) {
	p.mu.Lock()
	if len(p.queue) == 0 && p.hasRoom() {
		p.flying++
		defer p.mu.Unlock()
		return p.round, nil
	}
	place := make(chan struct{})
	p.queue = append(p.queue, place)
	p.mu.Unlock()

	select {
	case <-place:
		p.mu.Lock()
		defer p.mu.Unlock()
		return p.round, nil
	case <-ctx.Done():
		p.abandon(place)
		return 0, context.Cause(ctx)
	}
}

func (p *pace) hasRoom() bool { return p.most == 0 || float64(p.flying) < p.most }

// abandon removes a request from the queue. It passes on a place granted in the meantime.
func (p *pace) abandon(place chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, waiting := range p.queue {
		if waiting == place {
			p.queue = append(p.queue[:i], p.queue[i+1:]...)
			return
		}
	}
	p.flying--
	p.admit()
}

// admit grants free places to waiting requests, in order. The caller holds mu.
func (p *pace) admit() {
	for len(p.queue) > 0 && p.hasRoom() {
		p.flying++
		close(p.queue[0])
		p.queue = p.queue[1:]
	}
}

// leave returns a place and adapts the bound to the outcome of the request. Several 429s in one
// round lower the bound once, because they answer the same burst. It returns the new bound if it
// was lowered, else 0.
func (p *pace) leave(round int, err error) (lowered int) {
	p.mu.Lock()
	defer p.mu.Unlock()

	switch {
	case errors.Is(err, kind.ErrRateLimited) && round == p.round:
		p.most = max(1, float64(p.flying)/2)
		p.round++
		if p.flying > 1 {
			lowered = int(p.most)
		}
	case err == nil && p.most > 0:
		if p.most += 1 / p.most; p.start > 0 {
			p.most = min(p.most, p.start)
		}
	}
	p.flying--
	p.admit()
	return lowered
}

// describeBound describes a lowered bound for the note about a pause. For zero it returns "".
func describeBound(lowered int) string {
	if lowered == 0 {
		return ""
	}
	return fmt.Sprintf("; requests in flight are now at most %d", lowered)
}
