package records

import (
	"context"
	"sync"
)

// Beginnings serialise requests that create the same object, such as requests with one
// Idempotency-Key, so that each looks for the object before it creates one. The zero value is ready
// to use.
type Beginnings struct {
	mu  sync.Mutex
	all map[string]*beginning
}

type beginning struct {
	free  chan struct{} // has a value while no request has entered
	users int           // requests that have entered or wait
}

// Enter waits until no other request of the tenant creates the object that the word names. An empty
// word names no object. Call leave when the object is recorded; it may be called more than once.
func (b *Beginnings) Enter(ctx context.Context, tenant, word string) (leave func(), err error) {
	if word == "" {
		return func() {}, nil
	}

	name := tenant + "\n" + word
	one := b.join(name)
	select {
	case <-one.free:
		return sync.OnceFunc(func() { one.free <- struct{}{}; b.part(name) }), nil
	case <-ctx.Done():
		b.part(name)
		return nil, context.Cause(ctx)
	}
}

func (b *Beginnings) join(name string) *beginning {
	b.mu.Lock()
	defer b.mu.Unlock()

	one := b.all[name]
	if one == nil {
		if b.all == nil {
			b.all = map[string]*beginning{}
		}
		one = &beginning{free: make(chan struct{}, 1)}
		one.free <- struct{}{}
		b.all[name] = one
	}

	one.users++
	return one
}

func (b *Beginnings) part(name string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.all[name].users--; b.all[name].users == 0 {
		delete(b.all, name)
	}
}
