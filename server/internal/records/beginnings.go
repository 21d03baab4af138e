package records

import (
	"context"
	"sync"
)

// Beginnings let requests that begin the same thing, such as those with one Idempotency-Key, look for
// it and record it one after the other. The zero value is ready to use.
type Beginnings struct {
	mu  sync.Mutex
	all map[string]*beginning
}

type beginning struct {
	free  chan struct{} // has a value while no request is in
	users int           // the request that is in, and those that wait
}

// Enter waits until no other request of the tenant begins what the word names. An empty word names
// nothing. Call leave, which may be called more than once, when the thing is recorded.
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
