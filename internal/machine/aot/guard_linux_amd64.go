package aot

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"
)

const (
	// maxGuarded bounds the programs whose faults become traps.
	maxGuarded = 64
	// The upper bits of a span contain the first page of the code, the lower bits the number of
	// pages, which is large enough for maxCode.
	spanPages = 15
	spanMask  = 1<<spanPages - 1
)

// The handler also uses these constants.
const (
	stackMask    = stackSize - 1         //nolint:unused // used in assembly
	afterContext = StateSize - contextAt //nolint:unused // used in assembly
	outOfBounds  = 1                     //nolint:unused // used in assembly
)

// guardedCode describes a program to the handler. One word holds both ends of the code, so the
// handler never combines the beginning of one program with the end of another. The trap's address
// is written before any guest of the program runs.
type guardedCode struct {
	span uint64
	trap uint64
}

var (
	guarded   [maxGuarded]guardedCode
	guardedMu sync.Mutex
	// goHandler is Go's own handler of SIGSEGV.
	goHandler uintptr
)

func handleFault() //nolint:unused // faultHandler returns its address

// faultHandler returns the address of handleFault, for callers that follow C's calling convention.
func faultHandler() uintptr

// guard turns faults of a program's guests into traps, until unguard.
func (p *Program) guard() error {
	if err := installHandler(); err != nil {
		return err
	}
	guardedMu.Lock()
	defer guardedMu.Unlock()
	start := uint64(uintptr(unsafe.Pointer(unsafe.SliceData(p.code))))
	for i := range guarded {
		slot := &guarded[i]
		if slot.span == 0 {
			slot.trap = start + p.header.Trap
			atomic.StoreUint64(&slot.span, start/codePage<<spanPages|uint64(len(p.code)/codePage))
			p.guardedAs = slot
			return nil
		}
	}

	return fmt.Errorf("%d programs are loaded already", maxGuarded)
}

func (p *Program) unguard() {
	if p.guardedAs != nil {
		guardedMu.Lock()
		atomic.StoreUint64(&p.guardedAs.span, 0)
		guardedMu.Unlock()
	}
}

// action is the kernel's struct sigaction.
type action struct {
	handler, flags, restorer uintptr
	mask                     uint64
}

const (
	saSiginfo = 4
	saOnstack = 0x08000000
)

// changeAction sets the process's action for SIGSEGV, unless set is nil, and returns the old one.
func changeAction(set *action) (old action, err error) {
	_, _, code := unix.RawSyscall6(
		unix.SYS_RT_SIGACTION, uintptr(unix.SIGSEGV), uintptr(unsafe.Pointer(set)),
		uintptr(unsafe.Pointer(&old)), unsafe.Sizeof(old.mask), 0, 0,
	)
	if code != 0 {
		return old, code
	}
	return old, nil
}

// errFaults ends code that relies on faults once another handler receives them.
var errFaults = errors.New(
	"another part of this process has replaced the handler of SIGSEGV: choose the engine wazero",
)

// installHandler puts handleFault in front of Go's own handler, with Go's flags, mask and return.
// It never replaces any other handler.
var installHandler = sync.OnceValue(func() error {
	now, err := changeAction(nil)
	if err != nil {
		return err
	}
	if !now.isGos() {
		return errors.New("another part of this process handles SIGSEGV")
	}

	if err := testFaults(now); err != nil {
		return err
	}

	goHandler = now.handler
	now.handler = faultHandler()
	_, err = changeAction(&now)
	return err
})

// These are the properties of a test fault that testFault expects.
var (
	testAddress uintptr
	testStack   uintptr //nolint:unused // touch stores its stack pointer here
)

func testFault() //nolint:unused // testHandler returns its address

// testHandler returns the address of testFault, for callers that follow C's calling convention.
func testHandler() uintptr

// touch reads a byte that faults, and reports whether testFault recognised and redirected the
// fault.
func touch(address uintptr) bool

// testFaults checks that a fault looks as handleFault expects on this system, before a guest relies
// on faults. If the kernel, or an emulation of it, stored an address elsewhere, Go's handler would
// receive a guest's fault and end the process. For a moment, testFault precedes Go's handler, whose
// action is gos. Faults of other threads wait during that moment.
func testFaults(gos action) error {
	page, err := unix.Mmap(-1, 0, codePage, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return err
	}
	defer func() { _ = unix.Munmap(page) }() // it fails only for memory that was never mapped
	testAddress = uintptr(unsafe.Pointer(unsafe.SliceData(page))) + codePage/2

	return tryFault(gos, testAddress)
}

// tryFault faults at an address in a page.
func tryFault(gos action, address uintptr) error {
	test := gos
	test.handler = testHandler()
	if _, err := changeAction(&test); err != nil {
		return err
	}
	isKnown := touch(address)
	if _, err := changeAction(&gos); err != nil {
		return err
	}
	if !isKnown {
		return errors.New("a fault does not look as it does on Linux")
	}
	return nil
}

// isGos reports whether a handler is Go's own, which runs on a separate stack.
func (a *action) isGos() bool {
	f := runtime.FuncForPC(a.handler)
	return f != nil && f.Entry() == a.handler && strings.HasPrefix(f.Name(), "runtime.") &&
		a.flags&(saSiginfo|saOnstack) == saSiginfo|saOnstack
}

// Check returns an error if faults of the program's guests would not reach handleFault. No guest
// may then run: its fault would end the process, or call a handler that cannot handle guests.
func (p *Program) Check() error {
	if p.guardedAs == nil {
		return nil
	}
	now, err := changeAction(nil)
	if err == nil && now.handler != faultHandler() {
		err = errFaults
	}
	return err
}
