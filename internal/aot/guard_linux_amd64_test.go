package aot

import (
	"errors"
	"os"
	"reflect"
	"runtime/debug"
	"testing"

	"golang.org/x/sys/unix"
)

func loadGuarded(t *testing.T) *Program {
	t.Helper()
	p := loadHostile(t)
	if p.Reach() == 0 {
		t.Fatal("the code checks each access itself")
	}
	return p
}

// TestOnlyFaultsOfGuestsAreTraps has Go's own code fault: at nil, elsewhere, and in the space of a
// guest, also while the guest waits for the host. Go notices each, and the guest goes on.
func TestOnlyFaultsOfGuestsAreTraps(t *testing.T) {
	h := newHostile(t, loadGuarded(t))
	other, err := unix.Mmap(-1, 0, codePage, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Munmap(other) }()
	beyond := h.region[hostileBefore+wasmPage:]
	fault := func() {
		t.Helper()
		for name, access := range map[string]func(){
			"nil":                  func() { var nothing *byte; *nothing = 1 }, //nolint:govet // wanted
			"another mapping":      func() { other[0] = 1 },
			"beyond a guest":       func() { beyond[0] = 1 },
			"far beyond a guest":   func() { beyond[4<<30] = 1 },
			"the end of its space": func() { beyond[reach-wasmPage-1] = 1 },
		} {
			if !faults(access) {
				t.Errorf("Go does not notice a fault at %s", name)
			}
		}
	}

	fault()
	h.host = func(*hostile, int, []uint64) { fault() }
	if _, err := h.run("again", 1); err != nil {
		t.Error(err)
	}
	if _, err := h.run("i32.load +0", wasmPage); !errors.Is(err, TrapError(1)) {
		t.Errorf("a guest's own fault: %v", err)
	}
}

// faults reports whether a fault of Go's own becomes a panic.
func faults(access func()) (isFault bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { isFault = recover() != nil }()
	access()
	return false
}

// TestNoGuestRunsWithoutTheHandler replaces the handler, as a library in C may do. No guest begins
// until it is back.
func TestNoGuestRunsWithoutTheHandler(t *testing.T) {
	h := newHostile(t, loadGuarded(t))
	ours, err := changeAction(nil)
	if err != nil {
		t.Fatal(err)
	}
	theirs := ours
	theirs.handler = goHandler
	if _, err := changeAction(&theirs); err != nil {
		t.Fatal(err)
	}
	_, runErr := h.run("i32.add", 1, 2)
	_, newErr := h.program.NewGuest(h.region[hostileBefore-StateSize:], wasmPage)
	if _, err := changeAction(&ours); err != nil {
		t.Fatal(err)
	}

	for _, err := range []error{runErr, newErr} {
		if !errors.Is(err, errFaults) {
			t.Errorf("with another handler: %v", err)
		}
	}
	if n, err := newHostile(t, h.program).run("i32.add", 1, 2); err != nil || n != 3 {
		t.Errorf("with our handler: %d, %v", n, err)
	}
}

// TestTheHandlerGoesBeforeGosOnly shows handlers that belong to others.
func TestTheHandlerGoesBeforeGosOnly(t *testing.T) {
	gos, err := changeAction(nil)
	if err != nil {
		t.Fatal(err)
	}
	gos.handler = goHandler
	if !gos.isGos() {
		t.Error("Go's own handler is not known")
	}
	for name, change := range map[string]func(a *action){
		"the default":             func(a *action) { a.handler = 0 },
		"none":                    func(a *action) { a.handler = 1 },
		"a function of C":         func(a *action) { a.handler = 1 << 40 },
		"a function of a program": func(a *action) { a.handler = reflect.ValueOf(os.Exit).Pointer() },
		"the middle of Go's":      func(a *action) { a.handler++ },
		"ours":                    func(a *action) { a.handler = faultHandler() },
		"one without a stack":     func(a *action) { a.flags &^= saOnstack },
		"one without registers":   func(a *action) { a.flags &^= saSiginfo },
	} {
		changed := gos
		change(&changed)
		if changed.isGos() {
			t.Errorf("%s counts as Go's handler", name)
		}
	}
}
