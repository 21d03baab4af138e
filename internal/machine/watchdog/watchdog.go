// Package watchdog takes the processor back from guests that do not yield it.
//
// Go cannot interrupt a guest: it waits until the guest calls the host. Guests count fuel, so they
// call often. The watchdog is the safeguard if they do not. It is a thread unknown to the Go
// runtime, so it continues to check even while the runtime waits for a guest in order to stop the
// world.
//
// A guest that is inside at two consecutive checks, without having moved in between, must leave:
// the watchdog takes away its stack and its fuel. Each function of a guest checks its stack, and
// each iteration of a loop its fuel, so the guest calls the host, which checks its limits. A guest
// that was merely waiting for a processor then continues.
//
// For a guest with a thread, losing its stack is costly: see [Stay.EnterOnThread]. At first, it
// loses only its fuel, and keeps its stack unless it then computes for a burst without moving.
//
// The watchdog exists on Linux, on amd64 and arm64.
package watchdog

import (
	"errors"
	"sync"
)

const (
	// checkEvery is the interval between two checks, in nanoseconds.
	checkEvery = 5_000_000
	// calmChecks is the number of checks without any guest after which the watchdog sleeps until it
	// is woken.
	calmChecks = 20 //nolint:unused // the assembly has it
	// burst is the processor time after which a guest with a thread loses its stack, in
	// nanoseconds. Work that the host does on the guest's behalf counts, too: allocating a larger
	// stack may take milliseconds.
	burst = 20_000_000 //nolint:unused // the assembly has it
	// mostChecks is the number of checks after which such a guest loses its stack regardless of
	// processor time: the thread may have changed.
	mostChecks = 400 //nolint:unused // the assembly has it
	// moreChecks is the number of checks after which such a guest loses its stack again regardless
	// of processor time.
	moreChecks = 10
	// patience is the number of checks after which a guest that does not leave ends the process.
	patience = 600 //nolint:unused // the assembly has it
	// takenFuel is subtracted from a guest's fuel, which is always less.
	takenFuel = 1 << 62
	// maxStays bounds the calls of guests that are running or waiting for the host at the same
	// time.
	maxStays = 1 << 15
)

// Stay describes the guest of one call to the watchdog. It does not support concurrent use.
type Stay struct {
	// moves is incremented when the guest enters and when it leaves. It is odd while the guest is
	// inside.
	moves uint64
	// limit and fuel are addresses, and noStack is a value for the limit: see Watch.
	limit, fuel uintptr
	noStack     uint64
	// thread is the number of the guest's thread, or 0 if all time counts.
	thread uint64

	// These fields are the state of the watchdog: the moves at its last check, the number of checks
	// since without a move, the number of checks at which a guest with a thread loses its stack
	// regardless of processor time, and the processor time of the thread when its burst began.
	seen, checks, due, began uint64 //nolint:unused // the assembly has them
}

// freeStays contains the stays without an owner, guarded by mu.
var freeStays struct {
	mu   sync.Mutex
	list []*Stay
}

// errFull is the error of Take.
var errFull = errors.New("too many calls of guests run at once")

// Take returns a stay without an owner. The caller must Free it.
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

// Free returns a stay. Its guest must not be inside.
func (s *Stay) Free() {
	s.Watch(0, 0, 0)
	freeStays.mu.Lock()
	defer freeStays.mu.Unlock()
	freeStays.list = append(freeStays.list, s)
}

// Watch sets the words of a guest that enters from now on. limit is the address of the word that
// holds the lowest stack address for functions: it is overwritten with noStack. fuel is the address
// of the guest's fuel, which becomes negative (see [Fuel]), or 0 for a guest without fuel. Call
// [Unwatch] before the memory of the words is unmapped.
func (s *Stay) Watch(limit uintptr, noStack uint64, fuel uintptr) {
	s.limit, s.noStack, s.fuel = limit, noStack, fuel
}

// Enter must be called before a guest enters. From then on, all time counts, even if the guest
// waits for a processor.
func (s *Stay) Enter() { s.enter(0) }

func (s *Stay) enter(thread uint64) {
	s.thread = thread // the stay may have had other users
	s.moves++
	wake() // if the watchdog misses this move, it notices before it sleeps
}

// EnterOnThread is like Enter, for a guest that keeps its stack while it waits for a processor:
// only the processor time of its thread counts. It loses its fuel first, as if it had no thread.
func (s *Stay) EnterOnThread() { s.enter(currentThread()) }

// Leave must be called when a guest has left.
func (s *Stay) Leave() { s.moves++ }

// Stop must be called when a call has ended, whether the guest left or a function of the host
// panicked.
func (s *Stay) Stop() { s.moves += s.moves & 1 }

// EndProcess makes the watchdog end the process with an exit code if a guest that must leave has
// not done so for three seconds. The watchdog writes the message to stderr. Only the first call has
// an effect.
func EndProcess(code int, message string) {
	ending.Do(func() { setEnding(code, message) })
}

var ending sync.Once

// Fuel returns a guest's real fuel, given the value of its fuel word.
func Fuel(word int64) int64 {
	if word < -takenFuel/2 {
		return word + takenFuel
	}
	return word
}
