package wasmbin

import (
	"errors"
	"fmt"
)

const (
	opBlock        = 0x02
	opLoop         = 0x03
	opIf           = 0x04
	opElse         = 0x05
	opBranchIf     = 0x0d
	opCall         = 0x10
	opCallIndirect = 0x11
	opLocalGet     = 0x20
	opLocalSet     = 0x21
	opGlobalGet    = 0x23
	opGlobalSet    = 0x24
	opMemorySize   = 0x3f
	opI32GtU       = 0x4b
	opI32LeU       = 0x4d
	opI64LtS       = 0x53
	opI64GtU       = 0x56
	opI32Add       = 0x6a
	opI32ShrU      = 0x76
	opI64Add       = 0x7c
	opI64Sub       = 0x7d
	opI64Shl       = 0x86
	opI64ExtendU   = 0xad // extends an i32
	opPrefix       = 0xfc
	emptyType      = 0x40
)

// The opcodes after opPrefix.
const (
	opMemoryCopy = 10
	opMemoryFill = 11
)

// errForbidden is for instructions that would change state that a memory image cannot hold: the
// table, or the set of dropped segments. A module with such an instruction cannot be resumed from
// its memory alone.
var errForbidden = errors.New("instruction changes state outside the memory")

// errUnknown is for instructions that are not in the table yet.
var errUnknown = errors.New("unknown instruction")

// skipOperands moves r past the operands of the instruction op. It fails at unknown or forbidden
// instructions.
func skipOperands(r *reader, op byte) {
	switch {
	case op == opBlock, op == opLoop, op == opIf:
		skipBlockType(r)
	case op == 0x0c, op == opBranchIf, op == opCall: // br, br_if, call
		r.u32()
	case op == 0x0e: // br_table
		for n := uint64(r.u32()) + 1; n > 0 && r.err == nil; n-- {
			r.u32()
		}
	case op == opCallIndirect:
		r.u32()
		r.u32()
	case op >= 0x20 && op <= 0x25: // local.*, global.*, table.get
		r.u32()
	case op == 0x26: // table.set
		r.fail(errForbidden)
	case op >= 0x28 && op <= 0x3e: // loads and stores: alignment, offset
		r.u32()
		r.u32()
	case op == opMemorySize, op == 0x40: // memory.size, memory.grow
		r.u32()
	case op == opI32Const:
		r.signed(32)
	case op == opI64Const:
		r.signed(64)
	case op == 0x43: // f32.const
		r.bytes(4)
	case op == 0x44: // f64.const
		r.bytes(8)
	case op == opPrefix:
		skipPrefixed(r)
	case !plain(op):
		r.fail(errUnknown)
	}
}

// plain reports whether op is an instruction without operands.
func plain(op byte) bool {
	switch op {
	case 0x00, 0x01, opElse, opEnd, 0x0f, 0x1a, 0x1b:
		// unreachable, nop, else, end, return, drop, select
		return true
	}
	return op >= 0x45 && op <= 0xc4 // numeric instructions, with sign extension last
}

func skipBlockType(r *reader) {
	switch b := r.byte(); b {
	case emptyType, 0x7f, 0x7e, 0x7d, 0x7c: // none or a number's type
	default:
		r.pos--
		if r.signed(33) < 0 {
			r.fail(fmt.Errorf("unknown block type %#x", b))
		}
	}
}

// skipPrefixed skips the second opcode byte and the operands after 0xfc.
func skipPrefixed(r *reader) {
	switch op := r.u32(); {
	case op <= 7: // saturating truncations
	case op == opMemoryCopy:
		r.u32()
		r.u32()
	case op == opMemoryFill:
		r.u32()
	case op == 16: // table.size
		r.u32()
	case op == 8, op == 9, op >= 12 && op <= 15, op == 17:
		// memory.init, data.drop, table.init, elem.drop, table.copy,
		// table.grow, table.fill
		r.fail(errForbidden)
	default:
		r.fail(fmt.Errorf("%w: 0xfc %d", errUnknown, op))
	}
}
