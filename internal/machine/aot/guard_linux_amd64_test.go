package aot

import (
	"errors"
	"os"
	"reflect"
	"runtime/debug"
	"testing"
	"unsafe"

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

// TestOnlyFaultsOfGuestsAreTraps makes Go's own code fault: at nil, elsewhere, and in the address
// space of a guest, even while the guest waits for the host. Go must receive each fault, and the
// guest must continue.
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

// faults reports whether a fault in Go's own code becomes a panic.
func faults(access func()) (isFault bool) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() { isFault = recover() != nil }()
	access()
	return false
}

// stealHandler replaces the handler, as a C library may do, until giveBack is called.
func stealHandler(t *testing.T) (giveBack func()) {
	t.Helper()
	ours, err := changeAction(nil)
	if err != nil {
		t.Fatal(err)
	}
	theirs := ours
	theirs.handler = goHandler
	if _, err := changeAction(&theirs); err != nil {
		t.Fatal(err)
	}
	return func() {
		if _, err := changeAction(&ours); err != nil {
			t.Fatal(err)
		}
	}
}

// TestNoGuestRunsWithoutTheHandler checks that no guest starts until the handler is restored.
func TestNoGuestRunsWithoutTheHandler(t *testing.T) {
	h := newHostile(t, loadGuarded(t))
	giveBack := stealHandler(t)
	_, runErr := h.run("i32.add", 1, 2)
	_, newErr := h.program.NewGuest(h.region[hostileBefore-StateSize:], wasmPage)
	checkErr := h.program.Check()
	giveBack()

	for _, err := range []error{runErr, newErr, checkErr} {
		if !errors.Is(err, errFaults) {
			t.Errorf("with another handler: %v", err)
		}
	}
	if n, err := newHostile(t, h.program).run("i32.add", 1, 2); err != nil || n != 3 {
		t.Errorf("with our handler: %d, %v", n, err)
	}
}

// TestFaultsAreTested makes a fault look unlike the expected one. This must return an error, and
// not end the process.
func TestFaultsAreTested(t *testing.T) {
	loadGuarded(t)
	ours, err := changeAction(nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := testFaults(ours); err != nil {
			t.Error(err)
		}
		page, err := unix.Mmap(-1, 0, codePage, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
		if err != nil {
			t.Fatal(err)
		}
		testAddress = uintptr(unsafe.Pointer(&page[8]))
		if tryFault(ours, testAddress-1) == nil {
			t.Error("a fault at another address counts as the expected one")
		}
		if err := unix.Munmap(page); err != nil {
			t.Fatal(err)
		}
	}
	if now, err := changeAction(nil); err != nil || now != ours {
		t.Errorf("the handler is %+v (%v), want %+v", now, err, ours)
	}
}

// TestManyPrograms loads as many programs as the handler supports, and makes a guest of each
// program fault. Closing programs must make room for others.
func TestManyPrograms(t *testing.T) {
	blob := mustRead(t, "testdata/hostile_amd64.blob")
	var all []*Program
	defer func() {
		for _, p := range all {
			if err := p.Close(); err != nil {
				t.Error(err)
			}
		}
	}()
	for {
		p, err := Load(blob)
		if err != nil {
			if len(all) < maxGuarded/2 || len(all) > maxGuarded {
				t.Fatalf("after %d programs: %v", len(all), err)
			}
			break
		}
		all = append(all, p)
	}

	for _, i := range []int{0, len(all) / 2, len(all) - 1} {
		if err := all[i].Close(); err != nil {
			t.Fatal(err)
		}
		var err error
		if all[i], err = Load(blob); err != nil {
			t.Fatal("behind a closed one: ", err)
		}
	}
	h := newHostile(t, all[0])
	for i, p := range all {
		h.program, h.Guest.program = p, p
		if _, err := h.run("i32.load +0", wasmPage); !errors.Is(err, TrapError(1)) {
			t.Errorf("a fault in program %d: %v", i, err)
		}
	}
}

// TestTheHandlerGoesBeforeGosOnly checks that handlers other than Go's are never replaced.
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
