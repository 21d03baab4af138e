package rlm

import (
	"context"
	"fmt"
	"sync"

	"github.com/rlmhq/rlm/internal/plan/runner"
	"github.com/rlmhq/rlm/internal/snippet/slots"
	"github.com/rlmhq/rlm/internal/text/quantity"
	"github.com/rlmhq/rlm/router"
	"github.com/rlmhq/rlm/tiers"
)

// ErrBusy means that the engine has no memory for another open session, or no room for another
// snippet in the tenant's queue. Nothing has run; try again later. See [Options].
var ErrBusy = slots.ErrBusy

// budget is the memory that an engine lends to its sessions. It is safe for concurrent use.
type budget struct {
	most int64 // in bytes; 0 means no bound

	mu   sync.Mutex
	lent int64
}

// admit lends memory to one session until release is called. If too little is left, the error is
// ErrBusy.
func (b *budget) admit(limits tiers.Limits) (release func(), err error) {
	need := limits.WithDefaults().Memory
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.most > 0 && need > b.most-b.lent {
		return nil, fmt.Errorf("%w: the session may use %s, and %s of %s are free", ErrBusy,
			quantity.IBytes(need), quantity.IBytes(b.most-b.lent), quantity.IBytes(b.most))
	}

	b.lent += need
	return sync.OnceFunc(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.lent -= need
	}), nil
}

// loopRunner is the runner of a loop's session. It takes slots, and its memory is part of the
// budget.
type loopRunner struct {
	*runner.Runner
	slots   *slots.Pool
	release func()
}

// Run runs a snippet once it has a slot.
func (r loopRunner) Run(ctx context.Context, job tiers.Job) (router.Result, error) {
	return r.Runner.Run(r.slots.With(ctx), job)
}

// Close ends the session.
func (r loopRunner) Close() error {
	defer r.release()
	return r.Runner.Close()
}
