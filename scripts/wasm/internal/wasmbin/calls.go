package wasmbin

import (
	"errors"
	"fmt"
	"math"
)

// freeCalls bounds the number of calls to which one call may lead without a payment. So many calls
// take about 0.1 ms.
const freeCalls = 10_000

// payment follows the instructions of one function, and tracks whether the path to the current one
// has paid fuel: at the function's beginning, at a loop header, or before an indirect call. The
// code is structured, so all code inside a loop, or after a loop in the same block, has passed the
// loop's header.
type payment struct {
	isPaid bool
	blocks []block
}

// block is an open block.
type block struct{ isLoop, wasPaid bool }

// errNesting is the error of code whose blocks do not match.
var errNesting = errors.New("an end or else without its block")

// pass advances past an instruction.
func (p *payment) pass(op byte) error {
	switch op {
	case opBlock, opIf, opLoop:
		isLoop := op == opLoop
		p.blocks = append(p.blocks, block{isLoop, p.isPaid})
		p.isPaid = p.isPaid || isLoop

	case opElse, opEnd:
		n := len(p.blocks)
		if n == 0 {
			return errNesting
		}
		b := p.blocks[n-1]
		p.isPaid = b.wasPaid || b.isLoop
		if op == opEnd {
			p.blocks = p.blocks[:n-1]
		}

	case opCallIndirect:
		p.isPaid = true
	}
	return nil
}

// unpaidCalls lists the indices of the functions that a body calls before it pays. A function
// appears as often as the code calls it.
func unpaidCalls(body []byte) (callees []uint32, err error) {
	var p payment
	err = eachInstruction(body, func(i instruction) error {
		if i.op == opCall && !p.isPaid {
			r := &reader{buf: body, pos: i.operands}
			callees = append(callees, r.u32())
		}
		return p.pass(i.op)
	})
	return callees, err
}

// callGraph holds the unpaid calls of each function to others that the module defines itself. The
// numbers of functions do not include the imports.
type callGraph [][]uint32

func newCallGraph(bodies [][]byte, imports uint32) (callGraph, error) {
	g := make(callGraph, len(bodies))
	for f, body := range bodies {
		callees, err := unpaidCalls(body)
		if err != nil {
			return nil, fmt.Errorf("function %d: %w", f, err)
		}
		for _, callee := range callees {
			if callee < imports {
				continue
			}
			if callee -= imports; int(callee) >= len(bodies) {
				return nil, fmt.Errorf("function %d: %w", f, errUnknownCallee)
			}
			g[f] = append(g[f], callee)
		}
	}
	return g, nil
}

// choosePayers returns the functions that must pay at their beginning, so that no call leads to
// more than freeCalls other calls without a payment, or to infinitely many. Loops and indirect
// calls already pay.
//
// It first cuts each cycle at the function with the most calls to and from the cycle, which is a
// common greedy choice for the feedback vertex set. It then cuts each tree that is too large.
func (g callGraph) choosePayers() []bool {
	pays := make([]bool, len(g))
	for cycles := g.cycles(pays); len(cycles) > 0; cycles = g.cycles(pays) {
		for _, cycle := range cycles {
			pays[g.busiest(cycle)] = true
		}
	}

	sizes := make([]int, len(g))
	for f := range g {
		g.cutTrees(uint32(f), pays, sizes)
	}
	return pays
}

// cutTrees makes functions pay if their trees of unpaid calls are too large, the deepest first.
// sizes holds the known sizes of trees, and 0 for the other trees. The graph has no cycles.
func (g callGraph) cutTrees(f uint32, pays []bool, sizes []int) int {
	switch {
	case pays[f]:
		return 1
	case sizes[f] != 0:
		return sizes[f]
	}

	size := 1
	for _, callee := range g[f] {
		size += g.cutTrees(callee, pays, sizes)
	}
	if size > freeCalls {
		pays[f] = true
		size = 1
	}
	sizes[f] = size
	return size
}

// busiest returns the function of a cycle that calls itself, or that has the most pairs of calls
// to and from others in the cycle.
func (g callGraph) busiest(cycle []uint32) uint32 {
	inside := map[uint32]int{} // the calls to each function
	for _, f := range cycle {
		inside[f] = 0
	}
	for _, f := range cycle {
		for _, callee := range g[f] {
			if _, ok := inside[callee]; ok {
				inside[callee]++
			}
		}
	}

	best, most := cycle[0], -1
	for _, f := range cycle {
		calls := 0
		for _, callee := range g[f] {
			if callee == f {
				calls = math.MaxInt32
				break
			}
			if _, ok := inside[callee]; ok {
				calls++
			}
		}
		if pairs := calls * inside[f]; pairs > most || pairs == most && f < best {
			best, most = f, pairs
		}
	}
	return best
}

// cycles returns the strongly connected components of the functions that do not pay, except for
// single functions that do not call themselves. The algorithm is Tarjan's.
func (g callGraph) cycles(pays []bool) [][]uint32 {
	n := len(g)
	t := tarjan{
		graph: g, pays: pays,
		index: make([]int, n), low: make([]int, n), isOpen: make([]bool, n),
	}
	for f := range g {
		if t.index[f] == 0 && !pays[f] {
			t.visit(uint32(f))
		}
	}
	return t.found
}

// tarjan is the state of Tarjan's algorithm.
type tarjan struct {
	graph      callGraph
	pays       []bool
	index, low []int // by function, from 1
	last       int
	open       []uint32
	isOpen     []bool
	found      [][]uint32
}

func (t *tarjan) visit(f uint32) {
	t.last++
	t.index[f], t.low[f] = t.last, t.last
	t.open = append(t.open, f)
	t.isOpen[f] = true
	callsItself := false

	for _, callee := range t.graph[f] {
		switch {
		case t.pays[callee]:
		case t.index[callee] == 0:
			t.visit(callee)
			t.low[f] = min(t.low[f], t.low[callee])
		case t.isOpen[callee]:
			t.low[f] = min(t.low[f], t.index[callee])
			callsItself = callsItself || callee == f
		}
	}

	if t.low[f] == t.index[f] {
		t.close(f, callsItself)
	}
}

// close completes the component that begins with f.
func (t *tarjan) close(f uint32, callsItself bool) {
	at := len(t.open) - 1
	for t.open[at] != f {
		at--
	}
	component := append([]uint32(nil), t.open[at:]...)
	t.open = t.open[:at]
	for _, member := range component {
		t.isOpen[member] = false
	}
	if len(component) > 1 || callsItself {
		t.found = append(t.found, component)
	}
}
