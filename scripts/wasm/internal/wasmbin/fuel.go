package wasmbin

import (
	"errors"
	"fmt"
	"math"
)

// FuelGlobal is the name under which the fuel counter is exported.
const FuelGlobal = "fuel"

// FuelStats counts the places at which code pays fuel: loop headers, instructions that copy or
// fill memory, indirect calls, and the beginning of functions.
type FuelStats struct {
	Functions, Loops, Bulk, Indirect, Prologues int
}

// Points returns the number of all places.
func (s FuelStats) Points() int { return s.Loops + s.Bulk + s.Indirect + s.Prologues }

// AddFuel makes the module count fuel: a new exported mutable global of type i64 decreases by
// one
//
//   - at every loop header,
//   - before every indirect call that no other payment of its function precedes, and at the
//     beginning of some functions, so that no tree of calls is endless without a payment,
//   - for every 64 bytes that an instruction copies or fills.
//
// Whenever the counter is negative there, or between two parts of a long copy, the code calls the
// imported function yield, which has no parameters or results. The global starts at the maximum, so
// that a module without a host never yields.
func (m *Module) AddFuel(yield Import) (*Module, FuelStats, error) {
	yieldIndex, err := m.functionImport(yield)
	if err != nil {
		return nil, FuelStats{}, err
	}

	out, fuel, err := m.addFuelGlobal()
	if err != nil {
		return nil, FuelStats{}, err
	}

	out, bulk, err := out.declareBulk()
	if err != nil {
		return nil, FuelStats{}, err
	}

	counter := meter{fuel: fuel, yield: yieldIndex}
	w := rewriter{check: counter.check(1), bulk: bulk}
	code, err := w.rewriteCode(m.Section(SectionCode), bulk.imports)
	if err != nil {
		return nil, FuelStats{}, fmt.Errorf("wasmbin: code: %w", err)
	}
	for _, body := range [][]byte{counter.copyFunction(), counter.fillFunction()} {
		code = appendItem(code, append(appendU32(nil, uint32(len(body))), body...))
	}
	out = out.replace(SectionCode, code)
	err = out.CheckFuel(yield)
	return out, w.stats, err
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

// appendItem returns a section's body with an additional item at its end.
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

// rewriter inserts check where code pays fuel, and replaces every instruction that copies or
// fills with a call of a function in bulk.
type rewriter struct {
	check []byte
	bulk  bulkFunctions
	stats FuelStats
}

func (w *rewriter) rewriteCode(section []byte, imports uint32) ([]byte, error) {
	bodies, err := list(section, func(r *reader) []byte { return r.bytes(r.u32()) })
	if err != nil {
		return nil, err
	}
	graph, err := newCallGraph(bodies, imports)
	if err != nil {
		return nil, err
	}

	paysFirst := graph.choosePayers()
	out := appendU32(make([]byte, 0, len(section)+len(section)/32), uint32(len(bodies)))
	for i, body := range bodies {
		function, err := w.rewriteFunction(body, paysFirst[i])
		if err != nil {
			return nil, fmt.Errorf("function %d: %w", i, err)
		}
		out = appendU32(out, uint32(len(function)))
		out = append(out, function...)
	}
	return out, nil
}

func (w *rewriter) rewriteFunction(body []byte, paysFirst bool) ([]byte, error) {
	w.stats.Functions++
	var out []byte
	copied := 0
	insert := func(at int, code []byte) {
		out = append(append(out, body[copied:at]...), code...)
		copied = at
	}

	paid := payment{isPaid: paysFirst}
	if paysFirst {
		w.stats.Prologues++
		insert(codeStart(body), w.check)
	}

	err := eachInstruction(body, func(i instruction) error {
		if i.op == opLoop {
			w.stats.Loops++
			insert(i.end, w.check)
		} else if i.op == opCallIndirect && !paid.isPaid {
			w.stats.Indirect++
			insert(i.at, w.check)
		} else if function, ok := w.bulk.replaces(body[i.at:i.end]); ok {
			w.stats.Bulk++
			insert(i.at, appendU32([]byte{opCall}, function))
			copied = i.end
		}
		return paid.pass(i.op)
	})
	return append(out, body[copied:]...), err
}

// instruction is one instruction of a function, given by its position in the function's body.
type instruction struct {
	op                byte
	at, operands, end int
}

// eachInstruction calls f for each instruction of a function except its last end.
func eachInstruction(body []byte, f func(instruction) error) error {
	r := &reader{buf: body}
	skipLocals(r)
	for r.more() {
		i := instruction{at: r.pos}
		i.op = r.byte()
		i.operands = r.pos
		skipOperands(r, i.op)
		i.end = r.pos
		err := r.err
		if r.more() {
			err = f(i)
		}
		if err != nil {
			return fmt.Errorf("at %d, opcode %#x: %w", i.at, i.op, err)
		}
	}
	return r.err
}

// codeStart returns the position of a function's first instruction, after its locals.
func codeStart(body []byte) int {
	r := &reader{buf: body}
	skipLocals(r)
	return r.pos
}

func skipLocals(r *reader) {
	for n := r.u32(); n > 0 && r.err == nil; n-- {
		r.u32()
		r.byte()
	}
}
