package wasmbin

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
)

const (
	// A unit of fuel pays for copying 2^bulkUnitBits bytes, which takes about as long as one
	// iteration of a loop.
	bulkUnitBits = 6
	// bulkPart is the maximum that one instruction copies, in bytes. Afterwards, the host may act.
	bulkPart = 1 << 20
)

// The instructions that copy and fill the module's only memory.
var (
	memoryCopy = []byte{opPrefix, opMemoryCopy, 0, 0}
	memoryFill = []byte{opPrefix, opMemoryFill, 0}
)

// bulkFunctions are the indices of the functions that replace the instructions. imports is the
// number of functions before the module's own.
type bulkFunctions struct {
	imports, copies, fills uint32
}

// replaces returns the function that replaces an instruction.
func (f bulkFunctions) replaces(instruction []byte) (function uint32, ok bool) {
	r := &reader{buf: instruction}
	if r.byte() != opPrefix {
		return 0, false
	}
	switch r.u32() {
	case opMemoryCopy:
		return f.copies, true
	case opMemoryFill:
		return f.fills, true
	}
	return 0, false
}

// declareBulk declares the two functions, after all others. The code section
// still lacks their bodies.
func (m *Module) declareBulk() (*Module, bulkFunctions, error) {
	imports, err := m.Imports()
	if err != nil {
		return nil, bulkFunctions{}, err
	}

	functions := &reader{buf: m.Section(SectionFunction)}
	first := uint32(len(imports)) + functions.u32()
	types := &reader{buf: m.Section(SectionType)}
	index := appendU32(nil, types.u32())
	if err := errors.Join(functions.err, types.err); err != nil {
		return nil, bulkFunctions{}, fmt.Errorf("wasmbin: functions: %w", err)
	}

	signature := []byte{0x60, 3, TypeI32, TypeI32, TypeI32, 0}
	out := m.replace(SectionType, appendItem(m.Section(SectionType), signature))
	declared := appendItem(appendItem(m.Section(SectionFunction), index), index)

	return out.replace(SectionFunction, declared), bulkFunctions{uint32(len(imports)), first, first + 1}, nil
}

// meter generates code that counts fuel.
type meter struct {
	fuel, yield uint32
}

// check returns the instructions for a loop header:
//
//	fuel -= cost
//	if fuel < 0 { yield() }
//
// They do not change the operand stack, and open and close their own block, so that they fit
// wherever an instruction is allowed.
func (m meter) check(cost int64) []byte {
	return slices.Concat(
		m.burn(appendSigned([]byte{opI64Const}, cost)),
		appendU32([]byte{opGlobalGet}, m.fuel),
		[]byte{opI64Const, 0, opI64LtS, opIf, emptyType},
		appendU32([]byte{opCall}, m.yield),
		[]byte{opEnd},
	)
}

// burn returns instructions that subtract from the fuel the number that cost leaves on the
// stack.
func (m meter) burn(cost []byte) []byte {
	return slices.Concat(
		appendU32([]byte{opGlobalGet}, m.fuel),
		cost,
		appendU32([]byte{opI64Sub, opGlobalSet}, m.fuel),
	)
}

// The parameters of the functions. For a fill, source is the byte.
const (
	destination = iota
	source
	length
)

// copyFunction returns the body of a function that has the effect of memory.copy:
//
//	if length > bulkPart {
//		if max(destination, source)+length > size { memory.copy } // it traps
//		if destination <= source { copy parts from the start } else { from the end }
//	}
//	memory.copy of the remaining bytes
//
// Since it copies each part before it overwrites the next one, the ranges may overlap.
func (m meter) copyFunction() []byte {
	whole := slices.Concat(get(destination), get(source), get(length), memoryCopy)
	forward := slices.Concat(
		get(destination), get(source), i32(bulkPart), memoryCopy,
		advance(destination, bulkPart), advance(source, bulkPart), advance(length, -bulkPart),
	)
	backward := slices.Concat(
		advance(length, -bulkPart),
		get(destination), get(length), []byte{opI32Add},
		get(source), get(length), []byte{opI32Add},
		i32(bulkPart), memoryCopy,
	)

	return functionBody(slices.Concat(
		whenLong(slices.Concat(
			whenOutside(destination, whole), whenOutside(source, whole),
			get(destination), get(source), []byte{opI32LeU, opIf, emptyType},
			m.eachPart(forward),
			[]byte{opElse},
			m.eachPart(backward),
			[]byte{opEnd},
		)),
		m.burnLength(), whole,
	))
}

// fillFunction returns the body of a function that has the effect of memory.fill.
func (m meter) fillFunction() []byte {
	whole := slices.Concat(get(destination), get(source), get(length), memoryFill)
	forward := slices.Concat(
		get(destination), get(source), i32(bulkPart), memoryFill,
		advance(destination, bulkPart), advance(length, -bulkPart),
	)

	return functionBody(slices.Concat(
		whenLong(slices.Concat(whenOutside(destination, whole), m.eachPart(forward))),
		m.burnLength(), whole,
	))
}

// isBulk reports whether a body is the body of one of the two functions.
func (m meter) isBulk(body []byte) bool {
	return bytes.Equal(body, m.copyFunction()) || bytes.Equal(body, m.fillFunction())
}

// functionBody returns the body of a function without locals.
func functionBody(code []byte) []byte { return slices.Concat([]byte{0}, code, []byte{opEnd}) }

// whenLong returns code that runs only if the length exceeds one part.
func whenLong(code []byte) []byte {
	return slices.Concat(
		get(length), i32(bulkPart), []byte{opI32GtU, opIf, emptyType}, code, []byte{opEnd},
	)
}

// whenOutside returns code that runs only if the range that begins at a parameter extends beyond
// the memory.
func whenOutside(start byte, code []byte) []byte {
	const pageBits = 16
	return slices.Concat(
		get(start), []byte{opI64ExtendU}, get(length), []byte{opI64ExtendU, opI64Add},
		[]byte{opMemorySize, 0, opI64ExtendU, opI64Const, pageBits, opI64Shl},
		[]byte{opI64GtU, opIf, emptyType}, code, []byte{opEnd},
	)
}

// eachPart returns code that runs for each part except the last, and pays for the part.
func (m meter) eachPart(code []byte) []byte {
	return slices.Concat(
		[]byte{opLoop, emptyType}, m.check(bulkPart>>bulkUnitBits), code,
		get(length), i32(bulkPart), []byte{opI32GtU, opBranchIf, 0, opEnd},
	)
}

// burnLength returns code that pays for the length.
func (m meter) burnLength() []byte {
	return m.burn(append(get(length), opI32Const, bulkUnitBits, opI32ShrU, opI64ExtendU))
}

func get(parameter byte) []byte { return []byte{opLocalGet, parameter} }

func i32(v int64) []byte { return appendSigned([]byte{opI32Const}, v) }

func advance(parameter byte, by int64) []byte {
	return slices.Concat(get(parameter), i32(by), []byte{opI32Add, opLocalSet, parameter})
}
