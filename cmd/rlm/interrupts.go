package main

import (
	"context"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// interrupts decides what Ctrl-C and SIGTERM do: they end the command, unless what
// runs in it takes Ctrl-C itself.
type interrupts struct {
	mu      sync.Mutex
	handler func()
	signals chan os.Signal
	cancel  context.CancelFunc
	done    chan struct{}
}

// listen returns a context that a signal ends.
func listen(ctx context.Context) (context.Context, *interrupts) {
	ctx, cancel := context.WithCancel(ctx)
	in := &interrupts{signals: make(chan os.Signal, 1), cancel: cancel, done: make(chan struct{})}
	signal.Notify(in.signals, os.Interrupt, syscall.SIGTERM)
	go in.serve()
	return ctx, in
}

func (in *interrupts) serve() {
	defer close(in.done)
	for s := range in.signals {
		in.mu.Lock()
		handler := in.handler
		in.mu.Unlock()
		if s == os.Interrupt && handler != nil {
			handler()
			continue
		}

		in.cancel()
	}
}

// take sends Ctrl-C to a handler until release.
func (in *interrupts) take(handler func()) (release func()) {
	in.mu.Lock()
	defer in.mu.Unlock()
	old := in.handler
	in.handler = handler
	return func() {
		in.mu.Lock()
		defer in.mu.Unlock()
		in.handler = old
	}
}

// stop gives the signals back.
func (in *interrupts) stop() {
	signal.Stop(in.signals)
	close(in.signals)
	<-in.done
	in.cancel()
}
