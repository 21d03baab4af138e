//go:build linux && (amd64 || arm64)

package workers

import (
	"context"
	"errors"
	"maps"
	"os"
	"sync"
	"time"

	"github.com/rlmhq/rlm/internal/machine/attached"
	"github.com/rlmhq/rlm/internal/wall/jail"
	"github.com/rlmhq/rlm/tiers"
)

// pool holds the workers of a tier.
type pool struct {
	options  Options
	patience time.Duration // how long a session waits for a place or memory
	inner    tiers.Tier    // describes the sandboxes, and prepares the shared parts

	preparing sync.Mutex
	prepared  bool
	shared    *os.File // the prepared parts of tier wasm, or nil

	life     context.Context //nolint:containedctx // ends with close
	end      context.CancelFunc
	watching sync.Once // starts watchMemory
	helpers  sync.WaitGroup
	tight    chan struct{} // is full during a save without room: see lendForSave

	mu       sync.Mutex // guards the fields below
	workers  map[*worker]struct{}
	starting int
	starts   backoff             // for failed starts on this machine
	backoffs map[string]*backoff // by tenant
	memory   ledger
	changed  chan struct{}
	closed   bool
	saved    int // sessions that exist only as a saved state
	ended    map[Cause]int64
}

func newPool(inner tiers.Tier, o Options) *pool {
	p := &pool{
		options: o, patience: admitWithin, inner: inner, workers: map[*worker]struct{}{}, changed: make(chan struct{}),
		backoffs: map[string]*backoff{}, memory: newLedger(o.Memory), ended: map[Cause]int64{},
		tight: make(chan struct{}, 1),
	}
	p.life, p.end = context.WithCancel(context.Background())
	return p
}

const (
	// admitWithin is the default of the pool's patience.
	admitWithin = 10 * time.Second
	// keepEmpty is how long a worker without sessions waits for the next one of its tenant.
	keepEmpty = 30 * time.Second
)

var errClosed = errors.New("the workers are closed")

// parts returns the prepared data that all workers map. The caller does not close it.
func (p *pool) parts(ctx context.Context) (*os.File, error) {
	p.preparing.Lock()
	defer p.preparing.Unlock()
	if p.prepared {
		return p.shared, nil
	}

	var about attached.Code
	if file, _, err := attached.Find(attached.CodePart, &about); err == nil {
		p.shared, p.prepared = file, true
		return file, nil
	}
	maker, ok := p.inner.(interface {
		Parts(ctx context.Context) ([]attached.New, error)
	})
	if !ok {
		p.prepared = true
		return nil, nil //nolint:nilnil // documented: there are none
	}

	list, err := maker.Parts(ctx)
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	if err != nil {
		p.options.Log.Warn("each worker prepares the tier itself, which takes seconds", "error", err)
		p.prepared = true
		return nil, nil //nolint:nilnil // the workers do without
	}

	empty, err := memoryFile()
	if err != nil {
		return nil, err
	}
	defer empty.Close()
	p.shared, err = sealedFile(func(f *os.File) error { return attached.Write(f, empty, list...) })
	p.prepared = err == nil
	return p.shared, err
}

// sharesParts reports whether all workers have the same interpreter, byte for byte.
func (p *pool) sharesParts() bool {
	p.preparing.Lock()
	defer p.preparing.Unlock()
	return p.shared != nil
}

// wake notifies the waiting sessions that something has changed. The caller holds mu.
func (p *pool) wake() {
	close(p.changed)
	p.changed = make(chan struct{})
}

// leave removes a session from its worker, which no other tenant can use later.
func (p *pool) leave(w *worker, id int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(w.boxes, id)
	p.wake()
	if len(w.boxes) > 0 || w.isClosed {
		return
	}
	w.emptied = time.Now()
	if w.isCondemned || p.countWorkers() >= p.options.Workers {
		p.retire(w)
		return
	}

	emptied := w.emptied
	time.AfterFunc(keepEmpty, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		if len(w.boxes) == 0 && w.emptied.Equal(emptied) {
			p.retire(w)
		}
	})
}

// retire ends a worker without sessions. The caller holds mu.
func (p *pool) retire(w *worker) {
	if !w.isClosed {
		w.isClosed = true
		delete(p.workers, w)
		if w.isCondemned {
			w.end(CauseStuck, "nothing ended a snippet in its time")
		} else {
			w.end(causeNone, "it had no sessions")
		}
	}
}

// condemn stops giving snippets to a worker in which nothing can end a running snippet. Its other
// sessions move out as soon as they rest; then the worker ends.
func (p *pool) condemn(w *worker) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if w.isCondemned || p.closed {
		return
	}
	w.isCondemned = true
	p.moveOut(w, func(*sandbox) bool { return true })
	p.wake()
}

// forget records the end of a worker.
func (p *pool) forget(w *worker) {
	cause, reason := w.why()
	p.mu.Lock()
	delete(p.workers, w)
	w.isClosed = true
	sessions := len(w.boxes)
	w.boxes = map[int64]*sandbox{}
	isNews := cause != causeNone && w.wasReady
	if isNews {
		p.ended[cause]++
	}
	if isNews && cause != CauseStuck { // a stuck worker's neighbours need not wait
		p.noteEnd(w, reason)
	}
	p.wake()
	p.mu.Unlock()

	if isNews {
		p.options.Log.Warn("a worker has ended", "cause", cause, "reason", reason, "sessions", sessions,
			"output", jail.LastLine(w.jail.Output()))
		if p.options.Ended != nil {
			p.options.Ended(Ending{Cause: cause, Reason: reason, Sessions: sessions})
		}
	}
}

// close ends all workers.
func (p *pool) close() error {
	p.mu.Lock()
	p.closed = true
	list := make([]*worker, 0, len(p.workers))
	for w := range p.workers {
		list = append(list, w)
	}
	p.wake()
	p.mu.Unlock()
	p.end()
	for _, w := range list {
		w.end(causeNone, "the workers are closed")
	}

	for _, w := range list {
		<-w.gone
	}
	p.helpers.Wait()

	p.preparing.Lock()
	defer p.preparing.Unlock()
	if p.shared == nil {
		return nil
	}
	file := p.shared
	p.shared, p.prepared = nil, false
	return file.Close()
}

func (p *pool) countSaved(change int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.saved += change
}

func (p *pool) stats() Stats {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := Stats{Workers: len(p.workers), Saved: p.saved, Memory: p.memory.total, Ended: maps.Clone(p.ended)}
	for w := range p.workers {
		s.Live += len(w.boxes)
	}
	return s
}
