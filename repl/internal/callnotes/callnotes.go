// Package callnotes carries notes about a model call to the loop that makes it. Calls go through
// providers that third parties may write, so the context carries the receiver.
package callnotes

import (
	"context"
	"sync"
	"time"
)

// Wait is a pause before a call is retried.
type Wait struct {
	// Reason explains why the last attempt failed, without provider and model.
	Reason string
	// Pause is the time until the next attempt, Waited the time since the first failure, and
	// Limit the maximum time for retries.
	Pause, Waited, Limit time.Duration
}

// Receiver receives notes, concurrently.
type Receiver interface {
	NoteWait(w Wait)
	// NoteDropped reports that the model rejects a sampling parameter of the request, such as
	// "temperature", and is asked without it.
	NoteDropped(part string)
	// NoteAsked reports the request and its server, once for each attempt.
	NoteAsked(a Asked)
}

// Asked is the part of a request that the provider determines.
type Asked struct {
	Host              string
	Port              int
	MaxTokens         int
	Temperature, TopP *float64
	Seed              *int64
}

type key struct{}

// With returns a context whose calls send their notes to a receiver.
func With(ctx context.Context, r Receiver) context.Context {
	return context.WithValue(ctx, key{}, r)
}

// SendWait passes on a wait. Without a receiver it does nothing.
func SendWait(ctx context.Context, w Wait) {
	if r, ok := ctx.Value(key{}).(Receiver); ok {
		r.NoteWait(w)
	}
}

// SendAsked passes on the sent request. Without a receiver it does nothing.
func SendAsked(ctx context.Context, a Asked) {
	if r, ok := ctx.Value(key{}).(Receiver); ok {
		r.NoteAsked(a)
	}
}

// Dropped passes on the names of parameters that models reject, each once for a model. The zero
// value is ready to use. It is safe for concurrent use.
type Dropped struct {
	mu   sync.Mutex
	sent map[[2]string]bool // by model and parameter
}

// maxDropped bounds the entries that Dropped stores. If there are more, names are passed on again.
const maxDropped = 1024

// Send passes on the name of a parameter. Without a receiver it does nothing.
func (d *Dropped) Send(ctx context.Context, model, part string) {
	r, ok := ctx.Value(key{}).(Receiver)
	if !ok {
		return
	}

	d.mu.Lock()
	isNew := !d.sent[[2]string{model, part}]
	if d.sent == nil || len(d.sent) >= maxDropped {
		d.sent = map[[2]string]bool{}
	}
	d.sent[[2]string{model, part}] = true
	d.mu.Unlock()
	if isNew {
		r.NoteDropped(part)
	}
}
