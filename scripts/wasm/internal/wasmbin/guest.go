package wasmbin

import (
	"errors"
	"slices"
	"strconv"
)

// AsGuest returns an equivalent module that can be a guest of package aot. It has no data and no
// table. It exports its memory as "memory", and its functions and globals under their number among
// the module's exports. The host that runs it supplies the data. It returns an error for a module
// that runs its own code at the start, imports anything but functions, or has no function to call.
func (m *Module) AsGuest() (*Module, error) {
	if m.Section(SectionStart) != nil {
		return nil, errors.New("wasmbin: the module has a start function")
	}
	if _, err := m.Imports(); err != nil {
		return nil, err
	}
	exports, err := m.Exports()
	if err != nil {
		return nil, err
	}

	kept := []Export{{Name: "memory", Kind: KindMemory}}
	for i, e := range exports {
		if e.Kind == KindFunc || e.Kind == KindGlobal {
			kept = append(kept, Export{Name: strconv.Itoa(i), Kind: e.Kind, Index: e.Index})
		}
	}
	if !slices.ContainsFunc(kept, func(e Export) bool { return e.Kind == KindFunc }) {
		return nil, errors.New("wasmbin: the module exports no function")
	}

	out := m.WithoutData()
	if out.Section(SectionMemory) == nil {
		out = out.with(SectionMemory, []byte{1, 1, 0, 0}) // one memory of 0 pages, with a maximum of 0
	}
	return out.with(SectionExport, encodeExports(kept)), nil
}

func encodeExports(exports []Export) []byte {
	body := appendU32(nil, uint32(len(exports)))
	for _, e := range exports {
		body = append(appendU32(body, uint32(len(e.Name))), e.Name...)
		body = appendU32(append(body, byte(e.Kind)), e.Index)
	}
	return body
}

// with returns the module with a section of that kind. The section replaces an earlier one, or is
// inserted in the standard's order. The kind must not come after the element section.
func (m *Module) with(id SectionID, body []byte) *Module {
	out, isDone := &Module{}, false
	for _, s := range m.Sections {
		if !isDone && s.ID != SectionCustom && s.ID >= id {
			out.Sections = append(out.Sections, Section{ID: id, Body: body})
			isDone = true
		}
		if s.ID != id {
			out.Sections = append(out.Sections, s)
		}
	}

	if !isDone {
		out.Sections = append(out.Sections, Section{ID: id, Body: body})
	}
	return out
}

// WithLastGlobal returns the module with its last global exported under a name.
func (m *Module) WithLastGlobal(name string) (*Module, error) {
	exports, err := m.Exports()
	if err != nil {
		return nil, err
	}
	r := &reader{buf: m.Section(SectionGlobal)}
	count := r.u32()
	if r.err != nil || count == 0 {
		return nil, errors.New("wasmbin: the module has no global")
	}

	exports = append(exports, Export{Name: name, Kind: KindGlobal, Index: count - 1})
	return m.with(SectionExport, encodeExports(exports)), nil
}
