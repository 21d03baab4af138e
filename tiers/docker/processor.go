package docker

import (
	"context"
	"sync"
	"time"
)

// How often the daemon is asked what a container has computed: often while it does,
// rarely while it does not, because each answer costs the daemon some milliseconds.
const (
	askSoonest = 100 * time.Millisecond
	askLatest  = 2 * time.Second
)

// processor knows what the processes of a container have computed. Nobody waits for
// the daemon: it is asked in the background, and only while somebody wants to know.
type processor struct {
	ask    func(context.Context) (time.Duration, error)
	ctx    context.Context
	cancel context.CancelFunc
	asking sync.WaitGroup

	mu    sync.Mutex // guards what follows
	busy  bool       // an answer is under way
	used  time.Duration
	at    time.Time // of the last question
	pause time.Duration
}

func newProcessor(ask func(context.Context) (time.Duration, error)) *processor {
	p := &processor{ask: ask, pause: askSoonest}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// time is the last answer, 0 if there is none. It sees to the next one.
func (p *processor) time() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.busy && time.Since(p.at) >= p.pause && p.ctx.Err() == nil {
		p.busy = true
		p.asking.Go(p.renew)
	}
	return p.used
}

func (p *processor) renew() {
	begun := time.Now()
	used, err := p.ask(p.ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	passed, worked, known := begun.Sub(p.at), used-p.used, p.used > 0
	p.busy, p.at = false, begun
	const idle = 20 // a twentieth of a processor is no work
	switch {
	case err != nil:
		p.pause = askLatest // the next order to the container will tell what is wrong
		return
	case known && worked < passed/idle:
		p.pause = min(2*p.pause, askLatest)
	default:
		p.pause = askSoonest
	}

	p.used = used
}

// stop ends the asking.
func (p *processor) stop() {
	p.mu.Lock() // none is begun between these two
	p.cancel()
	p.mu.Unlock()
	p.asking.Wait()
}
