package wasmbin

import (
	"errors"
	"fmt"
	"math"
)

// FuelGlobal is the name under which the fuel counter is exported.
const FuelGlobal = "fuel"

// FuelStats says what AddFuel found. Bulk are the instructions that copy or fill memory.
type FuelStats struct {
	Functions, Loops, Bulk int
}

// AddFuel makes the module count: a new exported mutable global of type i64
// goes down by one at every loop header, and by one for every 64 bytes
// that an instruction copies or fills. Whenever it is negative at a loop header,
// or between two parts of a long copy, the imported function yield, of no
// parameters and no results, is called. The global starts at the largest value,
// so that a module without a host never yields.
func (m *Module) AddFuel(yield Import) (*Module, FuelStats, error) {
	var stats FuelStats
	yieldIndex, err := m.functionImport(yield)
	if err != nil {
		return nil, stats, err
	}

	out, fuel, err := m.addFuelGlobal()
	if err != nil {
		return nil, stats, err
	}

	out, bulk, err := out.declareBulk()
	if err != nil {
		return nil, stats, err
	}

	counter := meter{fuel: fuel, yield: yieldIndex}
	code, err := rewriteCode(m.Section(SectionCode), counter.check(1), bulk, &stats)
	if err != nil {
		return nil, stats, fmt.Errorf("wasmbin: code: %w", err)
	}
	for _, body := range [][]byte{counter.copyFunction(), counter.fillFunction()} {
		code = appendItem(code, body)
	}
	return out.replace(SectionCode, code), stats, nil
}

func (m *Module) functionImport(want Import) (uint32, error) {
	imports, err := m.Imports()
	if err != nil {
		return 0, err
	}

	for i, imp := range imports {
		if imp == want {
			return uint32(i), nil
		}
	}
	return 0, fmt.Errorf("wasmbin: the module does not import %s.%s", want.Module, want.Name)
}

// addFuelGlobal appends the global and its export, and returns its index.
func (m *Module) addFuelGlobal() (*Module, uint32, error) {
	globals, err := m.Globals()
	if err != nil {
		return nil, 0, err
	}

	exports, err := m.Exports()
	if err != nil {
		return nil, 0, err
	}

	for _, e := range exports {
		if e.Name == FuelGlobal {
			return nil, 0, errors.New("wasmbin: the module counts fuel already")
		}
	}

	index := uint32(len(globals))
	global := appendSigned([]byte{TypeI64, 1, opI64Const}, math.MaxInt64)
	global = append(global, opEnd)
	export := appendU32(nil, uint32(len(FuelGlobal)))
	export = append(append(export, FuelGlobal...), byte(KindGlobal))
	export = appendU32(export, index)
	out := m.replace(SectionGlobal, appendItem(m.Section(SectionGlobal), global))

	return out.replace(SectionExport, appendItem(m.Section(SectionExport), export)), index, nil
}

// appendItem returns a section's body with one more item at its end.
func appendItem(body, item []byte) []byte {
	r := &reader{buf: body}
	out := appendU32(nil, r.u32()+1)
	out = append(out, body[r.pos:]...)
	return append(out, item...)
}

func appendSigned(dst []byte, v int64) []byte {
	for {
		b := byte(v & 0x7f)
		v >>= 7
		if v == 0 && b&0x40 == 0 || v == -1 && b&0x40 != 0 {
			return append(dst, b)
		}
		dst = append(dst, b|0x80)
	}
}

// rewriteCode inserts check after every loop instruction of a code section, and
// calls a function of bulk instead of every instruction that copies or fills.
func rewriteCode(body, check []byte, bulk bulkFunctions, stats *FuelStats) ([]byte, error) {
	r := &reader{buf: body}
	count := r.u32()
	out := appendU32(make([]byte, 0, len(body)+len(body)/32), count)
	for i := range count {
		function, err := rewriteFunction(r.bytes(r.u32()), check, bulk, stats)
		if err != nil {
			return nil, fmt.Errorf("function %d: %w", i, err)
		}
		out = appendU32(out, uint32(len(function)))
		out = append(out, function...)
	}

	if r.more() {
		r.fail(errors.New("bytes left over"))
	}
	return out, r.err
}

func rewriteFunction(
	body, check []byte, bulk bulkFunctions, stats *FuelStats,
) ([]byte, error) {
	stats.Functions++
	r := &reader{buf: body}
	skipLocals(r)
	var out []byte
	copied := 0
	for r.more() {
		at := r.pos
		op := r.byte()
		skipOperands(r, op)
		if r.err != nil {
			return nil, fmt.Errorf("at %d, opcode %#x: %w", at, op, r.err)
		}

		if op == opLoop {
			out = append(out, body[copied:r.pos]...)
			out = append(out, check...)
			copied = r.pos
			stats.Loops++
		} else if function, ok := bulk.replaces(body[at:r.pos]); ok {
			out = append(out, body[copied:at]...)
			out = appendU32(append(out, opCall), function)
			copied = r.pos
			stats.Bulk++
		}
	}

	if r.err != nil {
		return nil, r.err
	}
	return append(out, body[copied:]...), nil
}

func skipLocals(r *reader) {
	for n := r.u32(); n > 0 && r.err == nil; n-- {
		r.u32()
		r.byte()
	}
}
