package bigtext

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"unsafe"
)

// Guard runs f, which may read bytes returned by Slice. The mapping persists while f runs, even if
// the text is closed meanwhile. If the file was truncated, Guard returns an error that wraps
// [ErrChanged]. It protects only f's own goroutine, and propagates any other panic.
func Guard(t *Text, f func()) error {
	return t.run(func() error { f(); return nil })
}

// run protects f like Guard, and keeps the mapping.
func (t *Text) run(f func() error) error {
	if err := t.acquire(); err != nil {
		return err
	}
	defer t.release() //nolint:errcheck // Close returns the error to its caller
	return t.protect(f)
}

// protect converts a fault of f in this text's mapping to an error. Each goroutine that reads the
// mapping needs its own call.
func (t *Text) protect(f func() error) (err error) {
	old := debug.SetPanicOnFault(true)
	defer debug.SetPanicOnFault(old)
	defer func() {
		if e := recover(); e != nil {
			err = t.fault(e)
		}
	}()
	return f()
}

// fault returns the error for the fault e in the mapping; it propagates any other panic.
func (t *Text) fault(e any) error {
	re, ok := e.(runtime.Error)
	if !ok {
		panic(e)
	}
	at, ok := re.(interface{ Addr() uintptr })
	if !ok || t.file == nil || !t.maps(at.Addr()) {
		panic(e)
	}
	return fmt.Errorf("context file %q was truncated while in use: %w", t.name, ErrChanged)
}

// maps reports whether address p is in a mapping, or right after its last
// byte, where a vector instruction may report its fault.
func (t *Text) maps(p uintptr) bool {
	for _, b := range [][]byte{t.data, t.random} {
		base := uintptr(unsafe.Pointer(unsafe.SliceData(b)))
		if len(b) > 0 && p >= base && p-base < uintptr(len(b))+1<<16 {
			return true
		}
	}
	return false
}
