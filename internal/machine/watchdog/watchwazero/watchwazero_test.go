package watchwazero

import (
	"context"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
)

// openHostile returns a guest with internal/machine/aot's module, compiled by wazero. Its imports
// call host.
func openHostile(t *testing.T, host func()) api.Module {
	t.Helper()
	if runtime.GOOS != "linux" || runtime.GOARCH != "amd64" && runtime.GOARCH != "arm64" {
		t.Skip("the watchdog runs on Linux alone")
	}
	ctx := t.Context()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler())
	t.Cleanup(func() { _ = r.Close(context.Background()) })
	called := HostFunction(func(context.Context, api.Module, []uint64) { host() })
	i32, i64, f32, f64 := api.ValueTypeI32, api.ValueTypeI64, api.ValueTypeF32, api.ValueTypeF64
	type list = []api.ValueType
	b := r.NewHostModuleBuilder("host")
	b.NewFunctionBuilder().WithGoModuleFunction(called, list{i32, i64, f32, f64}, list{i64}).Export("tell")
	b.NewFunctionBuilder().WithGoModuleFunction(called, list{i32}, list{i32}).Export("again")
	if _, err := b.Instantiate(ctx); err != nil {
		t.Fatal(err)
	}

	source, err := os.ReadFile("../../aot/testdata/hostile.wasm")
	if err != nil {
		t.Fatal(err)
	}
	m, err := r.Instantiate(ctx, source)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// TestATreeWithoutFuelEnds checks that the watchdog ends a tree of calls that would compute for a
// thousand years.
func TestATreeWithoutFuelEnds(t *testing.T) {
	m := openHostile(t, func() {})
	err := Call(t.Context(), m.ExportedFunction("endless tree"), FuelOf(m), []uint64{63, 1, 2, 3, 4, 5, 6, 7})
	if err == nil || !strings.Contains(err.Error(), "stack overflow") {
		t.Errorf("it ended with %v", err)
	}
}

// TestAGuestThatCallsTheHostGoesOn checks that a guest with a slow host continues: host calls may
// take any time.
func TestAGuestThatCallsTheHostGoesOn(t *testing.T) {
	const turns = 300_000_000
	yields := 0
	var m api.Module
	m = openHostile(t, func() {
		yields++
		m.ExportedGlobal("fuel").(api.MutableGlobal).Set(200_000)
		runtime.Gosched()
	})
	stack := []uint64{turns}
	err := Call(t.Context(), m.ExportedFunction("endless turns"), FuelOf(m), stack)
	if err != nil || stack[0] != turns || yields < turns/200_002 {
		t.Errorf("%d turns, %d yields, %v", stack[0], yields, err)
	}
}

// TestALoopIsLeftByItsFuel runs a guest that has fuel for years and calls no function.
func TestALoopIsLeftByItsFuel(t *testing.T) {
	if runtime.GOARCH == "arm64" {
		// The loop reads, lowers and writes its fuel, and the watchdog's value is lost if it is
		// written in between. In QEMU, most of these values are lost, and the guest loses its stack
		// instead.
		t.Skip("an emulator loses the watchdog's value between a read and a write")
	}
	const turns, years = 300_000_000, 1 << 60
	var fuel Fuel
	yields := 0
	m := openHostile(t, func() {
		yields++
		fuel.Set(fuel.Left())
	})
	fuel = FuelOf(m)

	for yields < 3 {
		fuel.Set(years)
		stack := []uint64{turns}
		if err := Call(t.Context(), m.ExportedFunction("endless turns"), fuel, stack); err != nil {
			t.Fatal(err)
		}
		if burnt := years - fuel.Left(); burnt != turns {
			t.Errorf("%d turns took %d units of fuel", turns, burnt)
		}
	}
}

func TestAPanicOfTheHostEndsTheCall(t *testing.T) {
	m := openHostile(t, func() { panic("no") })
	for range 3 {
		err := Call(t.Context(), m.ExportedFunction("again"), FuelOf(m), []uint64{1})
		if err == nil || !strings.Contains(err.Error(), "no") {
			t.Errorf("it ended with %v", err)
		}
	}
}

// TestTheInterpreterIsNotWatched checks wazero's interpreter, which is Go code, so Go can interrupt
// it.
func TestTheInterpreterIsNotWatched(t *testing.T) {
	ctx := t.Context()
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	defer r.Close(ctx)
	m, err := r.Instantiate(ctx, []byte("\x00asm\x01\x00\x00\x00"+
		"\x01\x05\x01\x60\x00\x01\x7f"+"\x03\x02\x01\x00"+
		"\x07\x05\x01\x01a\x00\x00"+"\x0a\x06\x01\x04\x00\x41\x07\x0b"))
	if err != nil {
		t.Fatal(err)
	}
	stack := []uint64{0}
	if err := Call(ctx, m.ExportedFunction("a"), Fuel{}, stack); err != nil || stack[0] != 7 {
		t.Errorf("%d, %v", stack[0], err)
	}
}

func TestTheBoundIsKnown(t *testing.T) {
	if stackBound(openHostile(t, func() {}).ExportedFunction("deep")) == 0 {
		t.Error("wazero's functions have another layout: a guest that pays no fuel would never end")
	}
}

func TestTheFuelIsKnown(t *testing.T) {
	fuel := FuelOf(openHostile(t, func() {}))
	if fuel.value == nil {
		t.Fatal("wazero's globals have another layout: the watchdog of a slow guest would take its stack")
	}
	fuel.Set(1234)
	if value := *(*int64)(fuel.value); value != 1234 || fuel.Left() != 1234 {
		t.Errorf("the fuel is %d, and its value %d", fuel.Left(), value)
	}
}
