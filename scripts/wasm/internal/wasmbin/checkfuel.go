package wasmbin

import (
	"bytes"
	"errors"
	"fmt"
)

// CheckFuel returns an error unless all code of a module pays. Each loop must pay at its header,
// each indirect call before the call, and each tree of direct calls after at most freeCalls calls.
// It reads the code that AddFuel wrote, and shares only the instruction tables with it.
func (m *Module) CheckFuel(yield Import) error {
	index, err := m.functionImport(yield)
	if err != nil {
		return err
	}
	imports, err := m.Imports()
	if err != nil {
		return err
	}
	fuel, err := m.fuelGlobal()
	if err != nil {
		return err
	}
	bodies, err := list(m.Section(SectionCode), func(r *reader) []byte { return r.bytes(r.u32()) })
	if err != nil {
		return fmt.Errorf("wasmbin: code: %w", err)
	}

	counter := meter{fuel: fuel, yield: index}
	c := fuelChecker{
		payments: [][]byte{counter.check(1), counter.check(bulkPart >> bulkUnitBits)},
		graph:    make(callGraph, len(bodies)),
		imports:  uint32(len(imports)),
	}
	for _, body := range bodies {
		c.isBulk = append(c.isBulk, counter.isBulk(body))
	}
	for f, body := range bodies {
		if err := c.readFunction(uint32(f), body); err != nil {
			return fmt.Errorf("wasmbin: function %d: %w", f, err)
		}
	}
	return c.checkTrees()
}

func (m *Module) fuelGlobal() (uint32, error) {
	exports, err := m.Exports()
	if err != nil {
		return 0, err
	}
	for _, e := range exports {
		if e.Kind == KindGlobal && e.Name == FuelGlobal {
			return e.Index, nil
		}
	}
	return 0, errors.New("wasmbin: the module counts no fuel")
}

var (
	errFreeLoop = errors.New("a loop does not pay")
	errFreeCall = errors.New("an indirect call does not pay")

	errUnknownCallee = errors.New("a call of an unknown function")
)

// fuelChecker checks instrumented code.
type fuelChecker struct {
	payments [][]byte
	graph    callGraph
	imports  uint32
	isBulk   []bool // the functions that replace an instruction
}

// readFunction adds a function's unpaid calls to the graph.
func (c *fuelChecker) readFunction(f uint32, body []byte) error {
	var blocks []bool // whether the code before each open block has paid, or the block is a loop
	isPaid := false

	return eachInstruction(body, func(i instruction) error {
		isPaid = isPaid || c.isPayment(body[i.at:])
		switch i.op {
		case opBlock, opIf:
			blocks = append(blocks, isPaid)
		case opLoop:
			if !c.isPayment(body[i.end:]) {
				return errFreeLoop
			}
			blocks = append(blocks, true)
		case opElse, opEnd:
			if len(blocks) == 0 {
				return errNesting
			}
			isPaid = blocks[len(blocks)-1]
			if i.op == opEnd {
				blocks = blocks[:len(blocks)-1]
			}
		case opCallIndirect:
			if !isPaid {
				return errFreeCall
			}
		case opCall:
			r := &reader{buf: body, pos: i.operands}
			callee := r.u32()
			if int64(callee)-int64(c.imports) >= int64(len(c.graph)) {
				return errUnknownCallee
			}
			if callee >= c.imports && !isPaid && !c.isBulk[callee-c.imports] {
				c.graph[f] = append(c.graph[f], callee-c.imports)
			}
		}
		return nil
	})
}

func (c *fuelChecker) isPayment(code []byte) bool {
	for _, payment := range c.payments {
		if bytes.HasPrefix(code, payment) {
			return true
		}
	}
	return false
}

// checkTrees counts the calls below each function.
func (c *fuelChecker) checkTrees() error {
	const isBegun = -1
	sizes := make([]int, len(c.graph))
	var count func(f uint32) (int, error)
	count = func(f uint32) (int, error) {
		switch {
		case sizes[f] == isBegun:
			return 0, fmt.Errorf("wasmbin: function %d calls itself without paying", f)
		case sizes[f] > 0:
			return sizes[f], nil
		}

		sizes[f] = isBegun
		size := 1
		for _, callee := range c.graph[f] {
			below, err := count(callee)
			if err != nil {
				return 0, err
			}
			size += below
		}
		if size > freeCalls {
			return 0, fmt.Errorf("wasmbin: function %d leads to %d calls without paying", f, size)
		}
		sizes[f] = size
		return size, nil
	}

	for f := range c.graph {
		if _, err := count(uint32(f)); err != nil {
			return err
		}
	}
	return nil
}
