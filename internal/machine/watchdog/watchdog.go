// Package watchdog takes the processor back from guests that keep it.
//
// Go cannot interrupt a guest: it waits until the guest calls the host. Guests count fuel, so they
// call often. The watchdog is what holds if they do not. It is a thread that the Go runtime does
// not know, so it looks even while the runtime waits for a guest to stop the world.
//
// A guest that is inside at two looks without a move has to leave: the watchdog takes away its stack
// and its fuel. Each function of a guest looks at the one, each turn of a loop at the other, so it
// calls the host, which looks at its limits. A guest that was merely waiting for a processor goes on.
//
// There is a watchdog on Linux, on amd64 and arm64.
package watchdog

import (
	"errors"
	"sync"
)

const (
	// lookEvery is the time between two looks, in nanoseconds.
	lookEvery = 5_000_000
	// calmLooks are the looks at nobody after which the watchdog sleeps until it is called.
	calmLooks = 20 //nolint:unused // the assembly has it
	// burst is the processor time after which a guest with a thread has to leave, in nanoseconds.
	// What the host does in its place counts, too: a larger stack may cost milliseconds.
	burst = 20_000_000 //nolint:unused // the assembly has it
	// mostLooks are the looks after which it has to leave in any case: the thread may be another one.
	mostLooks = 400 //nolint:unused // the assembly has it
	// moreLooks are the looks after which it has to leave again in any case.
	moreLooks = 10
	// patience are the looks after which a guest that does not leave ends the process.
	patience = 600 //nolint:unused // the assembly has it
	// takenFuel is what the watchdog takes from a guest's fuel, which is always less.
	takenFuel = 1 << 62
	// maxStays bounds the calls of guests that run, or wait for the host, at once.
	maxStays = 1 << 15
)

// Stay is where the watchdog sees the guest of one call. One goroutine at a time may use it.
type Stay struct {
	// moves goes up when the guest enters and when it leaves. It is odd while the guest is inside.
	moves uint64
	// limit and fuel are addresses, and noStack is a value of the limit, see Watch.
	limit, fuel uintptr
	noStack     uint64
	// thread is the number of the thread that the guest is on, 0 if all time counts.
	thread uint64

	// What the watchdog knows: the moves at its last look, how often it has seen them again, the
	// number of looks at which a guest with a thread has to leave in any case, and the processor time
	// of the thread when its burst began.
	seen, looks, due, began uint64 //nolint:unused // the assembly has them
}

// freeStays are the stays that have no owner, guarded by mu.
var freeStays struct {
	mu   sync.Mutex
	list []*Stay
}

// errFull is the error of Take.
var errFull = errors.New("too many calls of guests run at once")

// Take returns a stay that has no owner. Free it.
func Take() (*Stay, error) {
	if err := start(); err != nil {
		return nil, err
	}
	freeStays.mu.Lock()
	defer freeStays.mu.Unlock()
	if n := len(freeStays.list); n > 0 {
		s := freeStays.list[n-1]
		freeStays.list = freeStays.list[:n-1]
		return s, nil
	}
	return newStay()
}

// Free gives a stay back. No guest is inside.
func (s *Stay) Free() {
	s.Watch(0, 0, 0)
	freeStays.mu.Lock()
	defer freeStays.mu.Unlock()
	freeStays.list = append(freeStays.list, s)
}

// Watch names the words of a guest that enters from now on. limit is the address of the word
// below which no function may move its stack: it becomes noStack. fuel is the address of its fuel,
// which becomes negative, see [Fuel]; 0 is for a guest without. Call [Unwatch] before the memory of
// the words is unmapped.
func (s *Stay) Watch(limit uintptr, noStack uint64, fuel uintptr) {
	s.limit, s.noStack, s.fuel = limit, noStack, fuel
}

// Enter is called before a guest enters. Each look counts from then on.
func (s *Stay) Enter() { s.enter(0) }

func (s *Stay) enter(thread uint64) {
	s.thread = thread // a stay may have had other users
	s.moves++
	wake() // if the watchdog misses this move, it sees it before it sleeps
}

// EnterOnThread is Enter for a guest that should not have to leave because it waited for a
// processor: only the processor time of its thread counts.
func (s *Stay) EnterOnThread() { s.enter(currentThread()) }

// Leave is called when a guest has left.
func (s *Stay) Leave() { s.moves++ }

// Stop is called when a call has ended, whether the guest left or a function of the host panicked.
func (s *Stay) Stop() { s.moves += s.moves & 1 }

// EndProcess makes the watchdog end the process, with an exit code, once a guest has had to leave for
// three seconds and has not. It writes the message to stderr. The first call counts.
func EndProcess(code int, message string) {
	ending.Do(func() { setEnding(code, message) })
}

var ending sync.Once

// Fuel returns the fuel that a guest really has, of the value of the word of its fuel.
func Fuel(word int64) int64 {
	if word < -takenFuel/2 {
		return word + takenFuel
	}
	return word
}
