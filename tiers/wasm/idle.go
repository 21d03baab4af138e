package wasm

import "sync"

// maxIdle bounds how many instances of one kind are kept. Each holds about a
// quarter of a mebibyte.
const maxIdle = 32

// idleKey is what instances must have in common to stand in for one another: the
// limit of their memory, and that it has the image's size.
type idleKey struct {
	limit uint64
	plain bool
}

// idleList keeps instances that are as good as new.
type idleList struct {
	mu   sync.Mutex
	all  map[idleKey][]*instance // nil once closed
	open bool
}

func newIdleList() *idleList { return &idleList{all: map[idleKey][]*instance{}, open: true} }

func (l *idleList) get(key idleKey) *instance {
	if !key.plain {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	list := l.all[key]
	if len(list) == 0 {
		return nil
	}

	in := list[len(list)-1]
	l.all[key] = list[:len(list)-1]
	return in
}

// put reports whether it has kept the instance.
func (l *idleList) put(key idleKey, in *instance) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.open || len(l.all[key]) >= maxIdle || len(l.all) > 8 {
		return false
	}
	l.all[key] = append(l.all[key], in)
	return true
}

// close closes the idle instances and keeps no more.
func (l *idleList) close() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, list := range l.all {
		for _, in := range list {
			in.close()
		}
	}

	l.all, l.open = nil, false
}
