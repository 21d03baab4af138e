package wasm

import (
	"sync"

	"github.com/rlmhq/rlm/internal/machine/cpython"
	"github.com/rlmhq/rlm/internal/snippet/session"
)

// maxIdle bounds the idle instances of one kind. Each uses about a quarter of a mebibyte.
const maxIdle = 32

// idleKey identifies interchangeable instances: those with the same memory limit and
// room for texts, whose memory has the image's size.
type idleKey struct {
	limit uint64
	room  uint64
	plain bool
}

// idleList keeps reset instances for reuse.
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

// put stores an instance and reports whether the list had room.
func (l *idleList) put(key idleKey, in *instance) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.open || len(l.all[key]) >= maxIdle || len(l.all) > 8 {
		return false
	}
	l.all[key] = append(l.all[key], in)
	return true
}

// close closes the idle instances, and makes put reject further ones.
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

// retire resets an instance whose guest ended normally, and keeps it for another sandbox if
// possible. Instantiation takes longer than the rest of a start.
func (in *instance) retire() {
	in.pending = session.Reply{}
	if in.deterministic || !in.mem.reset(in.watch) {
		in.close()
		return
	}
	*in.watch = memoryWatch{}
	in.accounts = nil // including the session's inputs and host
	in.machine.setStackPointer(cpython.Manifest().StackPointer)
	if !in.engine.idle.put(idleKey{in.limit, in.room, true}, in) {
		in.close()
	}
}
