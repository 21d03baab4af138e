package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/rlmhq/rlm/scripts/wasm/internal/wasmbin"
)

// yieldImport is the function that instrumented code calls when its fuel runs out.
var yieldImport = wasmbin.Import{Module: "rlm", Name: "yield"}

// product is the output of pack before compression.
type product struct {
	module       []byte
	image        []byte
	stackPointer uint32
	fuelPoints   int
	// python is the version of the interpreter in the image.
	python string
}

// build instruments the reactor, runs it until the image is complete, and proves that the module
// without data runs over that image.
func build(ctx context.Context, reactor, preload []byte) (*product, error) {
	module, stats, err := instrument(reactor)
	if err != nil {
		return nil, err
	}

	stackPointer, err := checkState(module)
	if err != nil {
		return nil, err
	}

	p := &product{
		module:       module.WithoutData().Encode(),
		stackPointer: stackPointer,
		fuelPoints:   stats.Points(),
	}
	if p.image, err = takeImage(ctx, module.Encode(), preload, stackPointer); err != nil {
		return nil, fmt.Errorf("take the image: %w", err)
	}
	if p.python, err = askVersion(ctx, p.module, p.image); err != nil {
		return nil, fmt.Errorf("run over the image: %w", err)
	}
	return p, nil
}

func instrument(reactor []byte) (*wasmbin.Module, wasmbin.FuelStats, error) {
	module, err := wasmbin.Parse(reactor)
	if err != nil {
		return nil, wasmbin.FuelStats{}, err
	}
	return module.AddFuel(yieldImport)
}

// checkState proves that the whole state of the module is its memory, its stack pointer and its
// fuel, and returns the initial value of the stack pointer. AddFuel ensures that the code never
// changes the table, because it rejects instructions that would do so.
func checkState(m *wasmbin.Module) (uint32, error) {
	if m.Section(wasmbin.SectionStart) != nil {
		return 0, errors.New("the module has a start function")
	}
	segments, err := m.DataSegments()
	if err != nil {
		return 0, err
	}

	stackPointer, err := checkGlobals(m)
	if err != nil {
		return 0, err
	}

	for i, s := range segments {
		if s.Passive {
			return 0, fmt.Errorf("data segment %d is passive", i)
		}
		if s.Offset < stackPointer {
			return 0, fmt.Errorf("data segment %d at %#x is in the stack", i, s.Offset)
		}
	}
	return stackPointer, nil
}

func checkGlobals(m *wasmbin.Module) (uint32, error) {
	globals, err := m.Globals()
	if err != nil {
		return 0, err
	}

	exports, err := m.Exports()
	if err != nil {
		return 0, err
	}

	names := make(map[uint32]string)
	for _, e := range exports {
		if e.Kind == wasmbin.KindGlobal {
			names[e.Index] = e.Name
		}
	}

	stackPointer := int64(-1)
	for i, g := range globals {
		switch name := names[uint32(i)]; {
		case name == stackPointerGlobal && g.Mutable:
			stackPointer = g.Init
		case g.Mutable && name != wasmbin.FuelGlobal:
			return 0, fmt.Errorf("global %d (%q) is mutable", i, name)
		}
	}

	if stackPointer <= 0 {
		return 0, fmt.Errorf("the module does not export %s", stackPointerGlobal)
	}
	return uint32(stackPointer), nil
}
