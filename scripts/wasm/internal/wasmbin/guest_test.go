package wasmbin

import (
	"slices"
	"strings"
	"testing"
)

// TestAsGuest checks that exports are renamed to their numbers, and that the memory is exported.
func TestAsGuest(t *testing.T) {
	m := parse(t, module(countdown))
	guest, err := m.AsGuest()
	if err != nil {
		t.Fatal(err)
	}
	again := parse(t, guest.Encode())
	exports, err := again.Exports()
	want := []Export{{"memory", KindMemory, 0}, {"0", KindFunc, 1}, {"1", KindGlobal, 0}}
	if err != nil || !slices.Equal(exports, want) {
		t.Errorf("exports %v, %v, want %v", exports, err, want)
	}
	if again.Section(SectionData) != nil {
		t.Error("the guest has data")
	}

	last, err := m.WithLastGlobal("fuel")
	if err != nil {
		t.Fatal(err)
	}
	exports, err = parse(t, last.Encode()).Exports()
	if err != nil || len(exports) != 3 || exports[2] != (Export{"fuel", KindGlobal, 0}) {
		t.Errorf("exports %v, %v", exports, err)
	}
}

// TestAsGuestAddsAMemory checks that a module without a memory gets one, before the globals.
func TestAsGuestAddsAMemory(t *testing.T) {
	m := parse(t, module(countdown))
	m.Sections = slices.DeleteFunc(m.Sections, func(s Section) bool { return s.ID == SectionMemory })
	guest, err := m.AsGuest()
	if err != nil {
		t.Fatal(err)
	}
	if pages, err := guest.MemoryPages(); err != nil || pages != 0 {
		t.Errorf("%d pages, %v", pages, err)
	}
	if !slices.IsSortedFunc(guest.Sections, func(a, b Section) int { return int(a.ID) - int(b.ID) }) {
		t.Error("the sections are in the wrong order")
	}
}

// TestNoGuest checks that modules that cannot be guests are rejected.
func TestNoGuest(t *testing.T) {
	for want, change := range map[string]func(*Module) *Module{
		"start function": func(m *Module) *Module { return m.with(SectionStart, []byte{1}) },
		"not a function": func(m *Module) *Module {
			return m.with(SectionImport, []byte{1, 1, 'a', 1, 'b', byte(KindMemory), 0, 1})
		},
		"exports no function": func(m *Module) *Module { return m.with(SectionExport, []byte{0}) },
	} {
		if _, err := change(parse(t, module(countdown))).AsGuest(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want an error about %q", err, want)
		}
	}
	m := parse(t, module(countdown)).with(SectionGlobal, []byte{0})
	if _, err := m.WithLastGlobal("fuel"); err == nil {
		t.Error("a module without globals has a last one")
	}
}
