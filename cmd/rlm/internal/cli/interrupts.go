package cli

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"sync"
	"syscall"
	"time"
)

// Interrupts handles Ctrl-C and SIGTERM. Both end the command, unless a handler has taken over
// Ctrl-C.
type Interrupts struct {
	mu      sync.Mutex
	handler func()
	late    func() // ends the process, nil if the command may take any time
	grace   time.Duration
	signals chan os.Signal
	cancel  context.CancelCauseFunc
	done    chan struct{}
}

// ErrInterrupted is the cause of a context that ends at a signal, or at Ctrl-C in a session.
var ErrInterrupted error = interruptedError{}

type interruptedError struct{}

func (interruptedError) Error() string { return "interrupted" }

func (interruptedError) Is(target error) bool { return target == context.Canceled }

// EndEcho ends the line in which a terminal has shown ^C, so that the next note begins a line.
func (e *Env) EndEcho() {
	if e.Pause == nil && IsTerminal(e.Stderr) { // the live view clears its own line
		_, _ = fmt.Fprintln(e.Stderr)
	}
}

// Listen returns a context that ends at a signal.
func Listen(ctx context.Context) (context.Context, *Interrupts) {
	ctx, cancel := context.WithCancelCause(ctx)
	in := &Interrupts{signals: make(chan os.Signal, 1), cancel: cancel, done: make(chan struct{})}
	signal.Notify(in.signals, os.Interrupt, syscall.SIGTERM)
	go in.serve()
	return ctx, in
}

func (in *Interrupts) serve() {
	defer close(in.done)
	for s := range in.signals {
		in.mu.Lock()
		handler, late, grace := in.handler, in.late, in.grace
		in.mu.Unlock()
		if s == os.Interrupt && handler != nil {
			handler()
			continue
		}

		in.cancel(ErrInterrupted)
		if late != nil {
			time.AfterFunc(grace, late) // started by each signal; the first call ends the process
		}
	}
}

// endWithin bounds the time from a signal to the end of a command that serves clients. After grace,
// late must end the process, even during a client's request. Sandboxes end with the process, as
// after a kill.
func (in *Interrupts) endWithin(grace time.Duration, late func()) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.grace, in.late = grace, late
}

// Take sends Ctrl-C to handler until release is called.
func (in *Interrupts) Take(handler func()) (release func()) {
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

// Stop restores the default handling of the signals.
func (in *Interrupts) Stop() {
	signal.Stop(in.signals)
	close(in.signals)
	<-in.done
	in.cancel(nil)
}
