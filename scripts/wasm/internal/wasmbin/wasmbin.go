// Package wasmbin turns a linked WebAssembly module into one that runs over a prepared memory. It
// reads binaries section by section, adds code that counts fuel, and strips the data.
//
// It supports exactly the code that clang emits for this project's modules, and rejects everything
// else. If it skipped an instruction incorrectly, the result would be a module that is valid but
// behaves differently.
package wasmbin

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// SectionID is the number of a kind of section.
type SectionID byte

// The sections of a module.
const (
	SectionCustom SectionID = iota
	SectionType
	SectionImport
	SectionFunction
	SectionTable
	SectionMemory
	SectionGlobal
	SectionExport
	SectionStart
	SectionElement
	SectionCode
	SectionData
	SectionDataCount
)

// Section is one section, undecoded.
type Section struct {
	ID   SectionID
	Body []byte
}

// Module is a module as a list of sections. Bodies may alias the parsed bytes and are never
// changed in place.
type Module struct {
	Sections []Section
}

const header = "\x00asm\x01\x00\x00\x00"

// errTruncated reports that a binary ended prematurely.
var errTruncated = errors.New("unexpected end")

// Parse splits a module into its sections.
func Parse(wasm []byte) (*Module, error) {
	if len(wasm) < len(header) || string(wasm[:len(header)]) != header {
		return nil, errors.New("wasmbin: not a WebAssembly module of version 1")
	}
	r := &reader{buf: wasm, pos: len(header)}
	m := &Module{}
	for r.more() {
		id := SectionID(r.byte())
		body := r.bytes(r.u32())
		if r.err != nil {
			return nil, fmt.Errorf("wasmbin: section %d: %w", id, r.err)
		}
		if id > SectionDataCount {
			return nil, fmt.Errorf("wasmbin: unknown section %d", id)
		}

		m.Sections = append(m.Sections, Section{ID: id, Body: body})
	}

	return m, nil
}

// Encode returns the module's binary.
func (m *Module) Encode() []byte {
	out := []byte(header)
	for _, s := range m.Sections {
		out = append(out, byte(s.ID))
		out = appendU32(out, uint32(len(s.Body)))
		out = append(out, s.Body...)
	}
	return out
}

// Section returns the body of the section of that kind, or nil. There is at most one of each,
// except for custom sections.
func (m *Module) Section(id SectionID) []byte {
	for _, s := range m.Sections {
		if s.ID == id {
			return s.Body
		}
	}
	return nil
}

// replace returns a module with the body of one kind of section replaced.
func (m *Module) replace(id SectionID, body []byte) *Module {
	out := &Module{Sections: make([]Section, len(m.Sections))}
	copy(out.Sections, m.Sections)
	for i := range out.Sections {
		if out.Sections[i].ID == id {
			out.Sections[i].Body = body
		}
	}
	return out
}

// reader decodes values. After its first error, it returns zeros and keeps the error, so that
// callers check it only once.
type reader struct {
	buf []byte
	pos int
	err error
}

func (r *reader) more() bool { return r.err == nil && r.pos < len(r.buf) }

func (r *reader) fail(err error) {
	if r.err == nil {
		r.err = err
	}
}

func (r *reader) byte() byte {
	if r.err != nil || r.pos >= len(r.buf) {
		r.fail(errTruncated)
		return 0
	}
	b := r.buf[r.pos]
	r.pos++
	return b
}

func (r *reader) bytes(n uint32) []byte {
	if r.err != nil || uint64(n) > uint64(len(r.buf)-r.pos) {
		r.fail(errTruncated)
		return nil
	}
	b := r.buf[r.pos : r.pos+int(n)]
	r.pos += int(n)
	return b
}

func (r *reader) name() string { return string(r.bytes(r.u32())) }

func (r *reader) u32() uint32 {
	v, n := binary.Uvarint(r.buf[min(r.pos, len(r.buf)):])
	if r.err != nil || n <= 0 || n > 5 || v > 1<<32-1 {
		r.fail(errors.New("malformed 32-bit integer"))
		return 0
	}
	r.pos += n
	return uint32(v)
}

// signed decodes a signed integer of at most that many bits.
func (r *reader) signed(bits uint) int64 {
	var v int64
	for shift := uint(0); shift < bits; shift += 7 {
		b := r.byte()
		v |= int64(b&0x7f) << shift
		if b&0x80 != 0 {
			continue
		}

		if shift+7 < 64 && b&0x40 != 0 {
			v |= -1 << (shift + 7)
		}
		return v
	}

	r.fail(errors.New("malformed signed integer"))
	return 0
}

func appendU32(dst []byte, v uint32) []byte {
	return binary.AppendUvarint(dst, uint64(v))
}
