package wasmbin

import (
	"errors"
	"fmt"
)

// Kind is the kind of an import or export.
type Kind byte

// The kinds of imports and exports.
const (
	KindFunc Kind = iota
	KindTable
	KindMemory
	KindGlobal
)

// Import is one imported function. Modules must not import anything else.
type Import struct {
	Module, Name string
}

// Export is one export.
type Export struct {
	Name  string
	Kind  Kind
	Index uint32
}

// Global is one of the module's own globals.
type Global struct {
	Type    byte
	Mutable bool
	// Init is the initial value; only constants are allowed.
	Init int64
}

// The value types that a global can have here.
const (
	TypeI32 byte = 0x7f
	TypeI64 byte = 0x7e
)

const (
	opI32Const = 0x41
	opI64Const = 0x42
	opEnd      = 0x0b
)

// list decodes a section, which has a count, followed by that many items.
func list[T any](body []byte, item func(*reader) T) ([]T, error) {
	if body == nil {
		return nil, nil
	}
	r := &reader{buf: body}
	var items []T
	for n := r.u32(); n > 0 && r.err == nil; n-- {
		items = append(items, item(r))
	}
	if r.more() {
		r.fail(errors.New("bytes left over"))
	}
	return items, r.err
}

// Imports lists the imported functions.
func (m *Module) Imports() ([]Import, error) {
	imports, err := list(m.Section(SectionImport), readImport)
	if err != nil {
		return nil, fmt.Errorf("wasmbin: imports: %w", err)
	}
	return imports, nil
}

func readImport(r *reader) Import {
	imp := Import{Module: r.name(), Name: r.name()}
	if kind := Kind(r.byte()); kind != KindFunc {
		r.fail(fmt.Errorf("%s.%s is not a function", imp.Module, imp.Name))
	}
	r.u32() // its type
	return imp
}

// Exports lists the exports.
func (m *Module) Exports() ([]Export, error) {
	exports, err := list(m.Section(SectionExport), readExport)
	if err != nil {
		return nil, fmt.Errorf("wasmbin: exports: %w", err)
	}
	return exports, nil
}

func readExport(r *reader) Export {
	return Export{Name: r.name(), Kind: Kind(r.byte()), Index: r.u32()}
}

// Globals lists the globals; their indices start at 0, because no globals are imported.
func (m *Module) Globals() ([]Global, error) {
	globals, err := list(m.Section(SectionGlobal), readGlobal)
	if err != nil {
		return nil, fmt.Errorf("wasmbin: globals: %w", err)
	}
	return globals, nil
}

func readGlobal(r *reader) Global {
	g := Global{Type: r.byte(), Mutable: r.byte() == 1}
	switch op := r.byte(); {
	case op == opI32Const && g.Type == TypeI32:
		g.Init = r.signed(32)
	case op == opI64Const && g.Type == TypeI64:
		g.Init = r.signed(64)
	default:
		r.fail(fmt.Errorf("global of type %#x initialised by %#x", g.Type, op))
	}

	if r.byte() != opEnd {
		r.fail(errors.New("global is not initialised by a constant"))
	}
	return g
}

// DataSegment describes where one segment of the data section is.
type DataSegment struct {
	// Passive means that the code copies the segment, and not the start of the module.
	Passive bool
	Offset  uint32
	Bytes   []byte
}

// DataSegments lists the segments of the data section.
func (m *Module) DataSegments() ([]DataSegment, error) {
	segments, err := list(m.Section(SectionData), readDataSegment)
	if err != nil {
		return nil, fmt.Errorf("wasmbin: data: %w", err)
	}
	return segments, nil
}

func readDataSegment(r *reader) DataSegment {
	var s DataSegment
	switch flags := r.u32(); flags {
	case 0:
		if r.byte() != opI32Const {
			r.fail(errors.New("segment at a place that is not constant"))
		}
		s.Offset = uint32(r.signed(32))
		if r.byte() != opEnd {
			r.fail(errors.New("segment at a place that is not constant"))
		}
	case 1:
		s.Passive = true
	default:
		r.fail(fmt.Errorf("segment with flags %d", flags))
	}

	s.Bytes = r.bytes(r.u32())
	return s
}

// WithoutData returns the module without its data. It must then run over a memory that already
// holds the data.
func (m *Module) WithoutData() *Module {
	out := &Module{}
	for _, s := range m.Sections {
		if s.ID != SectionData && s.ID != SectionDataCount {
			out.Sections = append(out.Sections, s)
		}
	}
	return out
}

// MemoryPages returns the initial size of the only memory, in pages of 64 KiB.
func (m *Module) MemoryPages() (uint32, error) {
	type limits struct{ least uint32 }
	memories, err := list(m.Section(SectionMemory), func(r *reader) limits {
		flags := r.byte()
		l := limits{r.u32()}
		if flags&1 != 0 {
			r.u32() // the maximum
		}
		return l
	})
	if err != nil || len(memories) != 1 {
		return 0, errors.Join(err, fmt.Errorf("wasmbin: %d memories, not 1", len(memories)))
	}
	return memories[0].least, nil
}
