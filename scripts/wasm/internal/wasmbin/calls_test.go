package wasmbin

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// treeModule returns a module of functions without parameters, which are all in the table and
// exported under their number. It imports rlm.yield. Global 0 is an i32.
func treeModule(bodies ...[]byte) []byte {
	types, code, elements, exports := [][]byte{}, [][]byte{}, []byte{}, [][]byte{}
	for i, body := range bodies {
		types = append(types, []byte{0})
		code = append(code, function(append(body, opEnd)...))
		elements = append(elements, byte(i+1))
		exports = append(exports, slices.Concat(
			name(string(rune('0'+i))), []byte{byte(KindFunc), byte(i + 1)}))
	}
	n := byte(len(bodies))

	return slices.Concat(
		[]byte(header),
		section(SectionType, []byte{0x60, 0, 0}),
		section(SectionImport, slices.Concat(name("rlm"), name("yield"), []byte{byte(KindFunc), 0})),
		section(SectionFunction, types...),
		section(SectionTable, []byte{0x70, 0, n}),
		section(SectionMemory, []byte{0, 1}),
		section(SectionGlobal, []byte{TypeI32, 1, opI32Const, 0, opEnd}),
		section(SectionExport, exports...),
		section(SectionElement, slices.Concat([]byte{0, opI32Const, 0, opEnd, n}, elements)),
		section(SectionCode, code...),
	)
}

func call(function int) []byte { return []byte{opCall, byte(function + 1)} }

func callTable(function int) []byte {
	return []byte{opI32Const, byte(function), opCallIndirect, 0, 0}
}

// once is a loop that ends immediately.
var once = []byte{opLoop, emptyType, opEnd}

func when(then []byte) []byte {
	return slices.Concat([]byte{opI32Const, 1, opIf, emptyType}, then, []byte{opEnd})
}

// TestNoTreeOfCallsIsFree checks modules that call themselves in a tree of 2^40 calls, or
// endlessly. The host ends a module after it has yielded often enough.
func TestNoTreeOfCallsIsFree(t *testing.T) {
	twice := func(f func(int) []byte, i int) []byte { return slices.Concat(f(i), f(i)) }
	var levels, throughTable, behindLoops [][]byte
	for i := range 40 {
		levels = append(levels, twice(call, i+1))
		throughTable = append(throughTable, twice(callTable, i+1))
		behindLoops = append(behindLoops, slices.Concat(once, twice(call, i+1)))
	}
	leaf := []byte{0x01}

	for what, bodies := range map[string][][]byte{
		"levels of direct calls":    append(levels, leaf),
		"levels through the table":  append(throughTable, leaf),
		"levels behind loops":       append(behindLoops, leaf),
		"a function calls itself":   {twiceBelow(call(0))},
		"two functions":             {twiceBelow(call(1)), call(0)},
		"itself through the table":  {twiceBelow(callTable(0))},
		"behind an if with a loop":  {twiceBelow(slices.Concat(when(once), call(0)))},
		"in an if behind a loop":    {twiceBelow(slices.Concat(once, when(call(0))))},
		"a branch over the loop":    {twiceBelow(slices.Concat(branchOver(once), call(0)))},
		"else of an if with a loop": {twiceBelow(elseOf(once, call(0)))},
	} {
		t.Run(what, func(t *testing.T) { checkItYields(t, bodies) })
	}
}

// twiceBelow returns code that runs code twice, but at most 30 levels deep. Global 0 is the level.
func twiceBelow(code []byte) []byte {
	level := func(by byte) []byte { return []byte{opGlobalGet, 0, opI32Const, by, opI32Add, opGlobalSet, 0} }
	const less = 0x48 // i32.lt_s

	return slices.Concat(
		level(1),
		[]byte{opGlobalGet, 0, opI32Const, 30, less, opIf, emptyType}, code, []byte{opEnd},
		[]byte{opGlobalGet, 0, opI32Const, 30, less, opIf, emptyType}, code, []byte{opEnd},
		level(0x7f),
	)
}

// branchOver returns a block that is left immediately, before the given code.
func branchOver(code []byte) []byte {
	return slices.Concat([]byte{opBlock, emptyType, 0x0c, 0}, code, []byte{opEnd})
}

// elseOf returns an if whose condition is false.
func elseOf(then, otherwise []byte) []byte {
	return slices.Concat(
		[]byte{opI32Const, 0, opIf, emptyType}, then, []byte{opElse}, otherwise, []byte{opEnd})
}

// errEnough ends a guest.
var errEnough = errors.New("it has yielded often enough")

// checkItYields runs function 0 until it has yielded a thousand times.
func checkItYields(t *testing.T, bodies [][]byte) {
	t.Helper()
	ctx := t.Context()
	m, _, err := parse(t, treeModule(bodies...)).AddFuel(Import{"rlm", "yield"})
	if err != nil {
		t.Fatal(err)
	}
	r := wazero.NewRuntime(ctx)
	defer r.Close(ctx)
	yields := 0
	yield := func() {
		if yields++; yields == 1000 {
			panic(errEnough)
		}
	}
	_, err = r.NewHostModuleBuilder("rlm").NewFunctionBuilder().WithFunc(yield).Export("yield").Instantiate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	mod, err := r.Instantiate(ctx, m.Encode())
	if err != nil {
		t.Fatal(err)
	}

	mod.ExportedGlobal(FuelGlobal).(api.MutableGlobal).Set(0)
	if _, err := mod.ExportedFunction("0").Call(ctx); !errors.Is(err, errEnough) {
		t.Errorf("it ended after %d yields: %v", yields, err)
	}
}

// TestRandomCallGraphsAreBounded compares choosePayers with a plain count of the calls.
func TestRandomCallGraphsAreBounded(t *testing.T) {
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 7))
		g := make(callGraph, 1+random.IntN(60))
		for f := range g {
			for range random.IntN(5) {
				g[f] = append(g[f], uint32(random.IntN(len(g))))
			}
		}
		checkGraph(t, g)
	}
}

// checkGraph fails the test if a call leads to too many other calls without a payment.
func checkGraph(t *testing.T, g callGraph) {
	t.Helper()
	pays := g.choosePayers()
	sizes := make([]int, len(g))
	const isBegun = -1
	var count func(f uint32) int
	count = func(f uint32) int {
		if pays[f] {
			return 0
		}
		switch sizes[f] {
		case isBegun:
			t.Fatalf("function %d calls itself without a payment", f)
		case 0:
			sizes[f] = isBegun
			size := 1
			for _, callee := range g[f] {
				size += count(callee)
			}
			sizes[f] = size
		}
		return sizes[f]
	}

	for f := range g {
		if n := count(uint32(f)); n > freeCalls {
			t.Fatalf("function %d leads to %d calls without a payment", f, n)
		}
	}
}

func TestUnmatchedEndsAreRefused(t *testing.T) {
	for _, body := range [][]byte{{opEnd, opEnd}, {opElse, opEnd}} {
		if _, err := unpaidCalls(append([]byte{0}, body...)); !errors.Is(err, errNesting) {
			t.Errorf("%x: %v", body, err)
		}
	}
}

// FuzzCode passes arbitrary code to the functions that insert payments. If they accept code that
// wazero accepts, wazero must also accept the result.
func FuzzCode(f *testing.F) {
	f.Add(countdown)
	f.Add(slices.Concat(once, call(0), []byte{opEnd}))
	f.Add(slices.Concat(callTable(0), []byte{opEnd}))
	f.Fuzz(func(t *testing.T, code []byte) {
		wasm := module(code)
		m, err := Parse(wasm)
		if err != nil {
			t.Fatal(err)
		}
		counted, _, err := m.AddFuel(Import{"rlm", "yield"})
		if err != nil {
			return
		}
		ctx := context.Background()
		r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
		defer r.Close(ctx)
		if _, err := r.CompileModule(ctx, wasm); err != nil {
			return
		}
		if _, err := r.CompileModule(ctx, counted.Encode()); err != nil {
			t.Errorf("%x: %v", code, err)
		}
	})
}
