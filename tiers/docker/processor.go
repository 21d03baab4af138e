package docker

import (
	"context"
	"sync"
	"time"
)

// The pauses between requests to the daemon for processor time. Each answer costs the daemon some
// milliseconds, so requests about a container that does not compute are rare.
const (
	askSoonest = 100 * time.Millisecond
	askLatest  = 2 * time.Second
)

// processor caches the processor time of a container. It queries the daemon in the background, so
// that no reader waits for the daemon, and only while the time is being read.
type processor struct {
	ask    func(context.Context) (time.Duration, error)
	ctx    context.Context
	cancel context.CancelFunc
	asking sync.WaitGroup

	mu    sync.Mutex // guards the fields below
	busy  bool       // a request is in flight
	used  time.Duration
	at    time.Time // when the last request was made
	pause time.Duration
}

func newProcessor(ask func(context.Context) (time.Duration, error)) *processor {
	p := &processor{ask: ask, pause: askSoonest}
	p.ctx, p.cancel = context.WithCancel(context.Background())
	return p
}

// time returns the daemon's last answer, or 0 before the first, and sends another request if the
// answer is old.
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
	const idle = 20 // using less than a twentieth of a processor is idle
	switch {
	case err != nil:
		p.pause = askLatest // the next order to the container reports the error
		return
	case known && worked < passed/idle:
		p.pause = min(2*p.pause, askLatest)
	default:
		p.pause = askSoonest
	}

	p.used = used
}

// stop ends the requests and waits for the last one.
func (p *processor) stop() {
	p.mu.Lock() // so that no request starts in between
	p.cancel()
	p.mu.Unlock()
	p.asking.Wait()
}
