// Package aot runs WebAssembly compiled ahead of time, without cgo: machine code that scripts/wasm
// generated with wasm2c and clang. It maps the code, enters it on a separate stack, and implements
// its imports in Go.
package aot

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
)

// Slots bounds the parameters of a function of the interface.
const Slots = 16

// Signature describes a function of a module's interface. Module is empty for an export. Params and
// Result contain one letter for each number: i for i32, I for i64, f for f32, F for f64. Each
// number occupies one slot of 64 bits.
type Signature struct {
	Module string `json:",omitempty"`
	Name   string
	Params string
	Result string
}

// Segment is a part of the code with uniform protection: readable, and perhaps executable.
type Segment struct {
	Offset, Size uint64
	IsExecutable bool
}

// Header describes a blob. All addresses are offsets: addresses of code from the beginning of the
// code, addresses of fields from the beginning of the guest's state.
type Header struct {
	// Machine is the architecture, by its name in Go.
	Machine string
	// Size is the size of the code, in bytes; it is a whole number of pages.
	Size     uint64
	Segments []Segment
	// Begin calls a function, Resume continues after an import, and Start sets the globals.
	Begin, Resume, Start uint64
	// Trap is the number of the trap for an access outside the memory, if the code relies on
	// faults: see [Program.Reach]. If Trap is 0, the code checks each access.
	Trap uint64 `json:",omitempty"`
	// Pages and Bytes are the addresses of the fields that contain the size of the memory.
	Pages, Bytes uint64
	Imports      []Signature
	Exports      []Export
	Globals      map[string]uint64
}

// Export is a function of the module, with the address of the C function that calls it.
type Export struct {
	Signature
	Address uint64
}

// Encode returns the blob for a header and code.
func Encode(h Header, code []byte) ([]byte, error) {
	head, err := json.Marshal(h)
	if err != nil {
		return nil, err
	}
	blob := binary.LittleEndian.AppendUint32(nil, uint32(len(head)))
	return append(append(blob, head...), code...), nil
}

const codePage = 4096

// maxCode bounds the code of a blob, in bytes.
const maxCode = 64 << 20

var errBlob = errors.New("the machine code is damaged")

// Split returns the encoded header of a blob, and its code.
func Split(blob []byte) (head, code []byte, err error) {
	if len(blob) < 4 || uint64(binary.LittleEndian.Uint32(blob)) > uint64(len(blob)-4) {
		return nil, nil, errBlob
	}
	n := binary.LittleEndian.Uint32(blob)
	return blob[4 : 4+n], blob[4+n:], nil
}

// decode parses a blob and checks that all addresses are within bounds.
func decode(blob []byte) (h Header, code []byte, err error) {
	head, code, err := Split(blob)
	if err == nil {
		h, err = decodeHeader(head, uint64(len(code)))
	}
	return h, code, err
}

func decodeHeader(head []byte, size uint64) (h Header, err error) {
	dec := json.NewDecoder(bytes.NewReader(head))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&h); err != nil {
		return h, fmt.Errorf("%w: %w", errBlob, err)
	}
	if h.Machine != runtime.GOARCH {
		return h, fmt.Errorf("the machine code is for %s, not for %s", h.Machine, runtime.GOARCH)
	}
	err = h.check(size)
	return h, err
}

func (h *Header) check(size uint64) error {
	if h.Size != size || h.Size%codePage != 0 || h.Size > maxCode {
		return errBlob
	}

	end := uint64(0)
	for _, s := range h.Segments {
		if s.Offset < end || s.Offset%codePage != 0 || s.Size%codePage != 0 || s.Size > h.Size-s.Offset {
			return errBlob
		}
		end = s.Offset + s.Size
	}

	for _, f := range h.Imports {
		if len(f.Params) > Slots {
			return errBlob
		}
	}
	addresses := []uint64{h.Begin, h.Resume, h.Start}
	if h.Trap != 0 {
		addresses = append(addresses, h.Trap)
	}
	for _, e := range h.Exports {
		addresses = append(addresses, e.Address)
	}

	for _, address := range addresses {
		if !h.isCode(address) {
			return errBlob
		}
	}
	fields := []uint64{h.Pages, h.Bytes}
	for _, offset := range h.Globals {
		fields = append(fields, offset)
	}

	for _, offset := range fields {
		if offset > contextAt-8 {
			return errBlob
		}
	}
	return nil
}

func (h *Header) isCode(address uint64) bool {
	for _, s := range h.Segments {
		if s.IsExecutable && address >= s.Offset && address-s.Offset < s.Size {
			return true
		}
	}

	return false
}

// StateSize is the size of a guest's state, in bytes. The state ends where the memory begins.
const StateSize = 4096

// This is the layout of the state and of the context in it, as in scripts/wasm/aot/c/aot.h.
const (
	contextAt = 2048

	guestSP    = 24
	stackLimit = 32
	function   = 40
	exitCode   = 48
	slots      = 56
)
