//go:build linux && (amd64 || arm64)

package watchdog

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Go and the watchdog share this state.
var (
	stays     [maxStays]Stay
	usedStays uint64 // number of leading stays that have had an owner
	// isAsleep is 1 from the last check before the watchdog sleeps until it is woken.
	isAsleep uint32
	// takesFrom is the address of the limit of the guest that is being made to leave, or 0.
	takesFrom uintptr

	// These are the exit code and the message for the end of the process. The length of the message
	// is written last; it is 0 if the process must not end.
	endCode, endMessage uintptr //nolint:unused // the assembly has them
	endLength           uintptr
)

// newStay returns a stay that has never had an owner. The caller holds the lock of freeStays.
func newStay() (*Stay, error) {
	n := atomic.LoadUint64(&usedStays)
	if n == maxStays {
		return nil, errFull
	}
	atomic.StoreUint64(&usedStays, n+1)
	return &stays[n], nil
}

func wake() {
	if atomic.LoadUint32(&isAsleep) != 0 {
		call()
	}
}

func call() {
	const futexWake = 1 | 128 // FUTEX_WAKE_PRIVATE
	if atomic.CompareAndSwapUint32(&isAsleep, 1, 0) {
		_, _, _ = unix.RawSyscall(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&isAsleep)), futexWake, 1)
	}
}

func currentThread() uint64 {
	id, _, _ := unix.RawSyscall(unix.SYS_GETTID, 0, 0, 0)
	return uint64(id)
}

// Unwatch waits until the watchdog no longer touches the words of a guest that has left, given the
// address of its limit. The watchdog will not touch them again. A limit of 0 means a guest without
// a limit.
func Unwatch(limit uintptr) {
	if limit == 0 {
		return
	}
	atomic.AddUint64(&usedStays, 0) // orders the guest's last move before the code below
	for atomic.LoadUintptr(&takesFrom) == limit {
		_, _, _ = unix.RawSyscall(unix.SYS_SCHED_YIELD, 0, 0, 0)
	}
}

// endText keeps the message reachable.
var endText []byte

func setEnding(code int, message string) {
	endText = []byte(message)
	endCode, endMessage = uintptr(code), uintptr(unsafe.Pointer(unsafe.SliceData(endText)))
	atomic.StoreUintptr(&endLength, uintptr(len(endText)))
}

// startThread starts the watchdog on a stack that ends at top, with all signals blocked. It
// returns an error number.
func startThread(top uintptr) (code int)

func watch() //nolint:unused // startThread leads the thread there

// start starts the watchdog, once.
var start = sync.OnceValue(func() error {
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
