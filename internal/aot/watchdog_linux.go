//go:build linux && (amd64 || arm64)

package aot

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// The watchdog is a thread that the Go runtime does not know, so it looks while the runtime waits
// for a guest. A guest that is still inside at a second look has to leave: the watchdog takes away
// its stack and its fuel, of which each function and each turn of a loop looks at one. The guest
// then calls [Host.Preempt], or yields as if its fuel were used up, and goes on. So no guest keeps
// Go waiting for more than three looks, even if its code paid no fuel at all.
//
// The thread begins with the first program and stays. It sleeps while no guest computes.
const (
	// lookEvery is the time between two looks, in nanoseconds.
	lookEvery = 10_000_000 //nolint:unused // the assembly has it
	// calmLooks are the looks at nobody after which the watchdog sleeps until it is called.
	calmLooks = 20 //nolint:unused // the assembly has it
	// takenFuel is what the watchdog takes from a guest's fuel, which is always less.
	takenFuel = 1 << 62
	// maxStays bounds the calls that run or wait for the host at once.
	maxStays = 1 << 15
)

// stay is the place where the watchdog sees the guest of one stack. The guest's context does not
// change while it is inside.
type stay struct {
	// moves goes up when a guest enters and when it leaves. It is odd while one is inside.
	moves uint64
	// context and fuel are addresses in the guest's state. fuel is 0 for a guest without.
	context, fuel uintptr
	// seen are the moves at the last look.
	seen uint64
}

// What Go and the watchdog share.
var (
	stays     [maxStays]stay
	usedStays uint64 // those from the first one on that have been used
	// isAsleep is 1 from the last look before the watchdog sleeps until somebody calls it.
	isAsleep uint32
	// lookedAt is the context whose guest has to leave just now, 0 for none.
	lookedAt uintptr
)

// freeStays are the places that no stack has, guarded by mu.
var freeStays struct {
	mu   sync.Mutex
	list []*stay
}

func takeStay() (*stay, error) {
	freeStays.mu.Lock()
	defer freeStays.mu.Unlock()
	if n := len(freeStays.list); n > 0 {
		s := freeStays.list[n-1]
		freeStays.list = freeStays.list[:n-1]
		return s, nil
	}

	n := atomic.LoadUint64(&usedStays)
	if n == maxStays {
		return nil, fmt.Errorf("%d calls of guests run already", maxStays)
	}
	atomic.StoreUint64(&usedStays, n+1)
	return &stays[n], nil
}

func (s *stay) free() {
	freeStays.mu.Lock()
	defer freeStays.mu.Unlock()
	freeStays.list = append(freeStays.list, s)
}

// begin is called before a guest enters.
func (s *stay) begin() {
	s.moves++
	if isAsleep != 0 { // if the watchdog misses it, it has looked again before it sleeps
		callWatchdog()
	}
}

// end is called when a guest has left.
func (s *stay) end() { s.moves++ }

func callWatchdog() {
	if atomic.CompareAndSwapUint32(&isAsleep, 1, 0) {
		_, _, _ = unix.RawSyscall(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&isAsleep)), futexWake, 1)
	}
}

const futexWake = 1 | 128 // FUTEX_WAKE_PRIVATE

// awaitWatchdog returns once the watchdog does not look at a context whose guest is outside. It
// begins no new look then.
func awaitWatchdog(context uintptr) {
	atomic.AddUint64(&usedStays, 0) // orders the guest's last move before what follows
	for atomic.LoadUintptr(&lookedAt) == context {
		_, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
	}
}

// startThread starts the watchdog on a stack that ends at top, with all signals blocked. It
// returns an error number.
func startThread(top uintptr) (code int)

func watch() //nolint:unused // startThread leads the thread there

// startWatchdog starts the watchdog once.
var startWatchdog = sync.OnceValue(func() error {
	const size = 64 << 10
	stack, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err == nil {
		top := uintptr(unsafe.Pointer(unsafe.SliceData(stack))) + size
		if code := startThread(top); code != 0 {
			err = errors.Join(unix.Errno(code), unix.Munmap(stack))
		}
	}
	if err != nil {
		return fmt.Errorf("cannot start the watchdog of guests: %w", err)
	}
	return nil
})
