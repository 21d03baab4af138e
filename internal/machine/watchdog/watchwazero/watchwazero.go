// Package watchwazero calls guests of wazero under the watchdog.
//
// The watchdog takes the guest's fuel first, so the guest calls the host at its next loop. This
// costs nothing, so it does no harm if a slow or busy machine delays a guest.
//
// For a guest that reaches no loop, the watchdog takes the stack: wazero's code compares its stack
// with a bound when a function begins, and calls Go for a larger stack. The watchdog raises this
// bound, so the guest calls Go, which doubles its stack. A guest that holds the processor a dozen
// times thus overflows its stack, which ends the call with an error.
package watchwazero

import (
	"context"
	"math"
	"reflect"
	"runtime"
	"sync"
	"unsafe"

	"github.com/tetratelabs/wazero/api"

	"github.com/rlmhq/rlm/internal/machine/watchdog"
)

// stayKey is the context key of the stay of the current call.
type stayKey struct{}

// Fuel is the global with which a guest counts its fuel. The zero value is for a guest that counts
// no fuel, and must not be read or set.
type Fuel struct {
	global api.MutableGlobal
	value  unsafe.Pointer // nil if unknown
}

// FuelOf returns the fuel of a module, which exports it as a mutable global of this name.
func FuelOf(m api.Module) Fuel {
	global := m.ExportedGlobal("fuel").(api.MutableGlobal)
	return Fuel{global, valueOf(global)}
}

// Left returns the guest's remaining fuel. The watchdog does not change it.
func (f Fuel) Left() int64 { return watchdog.Fuel(int64(f.global.Get())) }

// Set sets the guest's fuel, at most 2^61.
func (f Fuel) Set(units int64) { f.global.Set(uint64(units)) }

// Call calls a guest's function. The function finds its parameters on the stack, and leaves its
// results there. All host functions that may take a long time should be wrapped by [HostFunction].
// The host function that the guest calls when it has no fuel must set its fuel.
func Call(ctx context.Context, f api.Function, fuel Fuel, stack []uint64) error {
	stay, err := watchdog.Take()
	if err != nil {
		return err
	}
	defer stay.Free()

	limit := stackBound(f)
	if limit == 0 {
		fuel.value = nil // Unwatch waits for guests with a limit alone
	}
	stay.Watch(limit, math.MaxInt64, uintptr(fuel.value)) // on arm64, wazero's comparison is signed
	stay.EnterOnThread()
	defer func() {
		stay.Stop()
		watchdog.Unwatch(limit)
		runtime.KeepAlive(f) // the word is part of the function
		runtime.KeepAlive(fuel)
	}()
	return f.CallWithStack(context.WithValue(ctx, stayKey{}, stay), stack)
}

// HostFunction wraps a function of the host, during which the guest is considered outside.
func HostFunction(f api.GoModuleFunc) api.GoModuleFunc {
	return func(ctx context.Context, m api.Module, stack []uint64) {
		stay, isWatched := ctx.Value(stayKey{}).(*watchdog.Stay)
		if !isWatched {
			f(ctx, m, stack)
			return
		}
		stay.Leave()
		f(ctx, m, stack) // after a panic, the guest does not enter again
		stay.EnterOnThread()
	}
}

// stackBound returns the address of a function's stack bound, or 0 if wazero's layout is unknown.
// In that case, a test fails.
func stackBound(f api.Function) uintptr {
	v := reflect.ValueOf(f)
	offset, isKnown := boundOffset(v.Type())
	if !isKnown {
		return 0
	}
	return v.Pointer() + offset
}

var offsets sync.Map // by the type of a function

// boundOffset returns the offset of the stack bound in a function of the given type.
func boundOffset(of reflect.Type) (offset uintptr, isKnown bool) {
	if known, ok := offsets.Load(of); ok {
		offset, isKnown = known.(uintptr)
		return offset, isKnown && offset != 0
	}

	if of.Kind() == reflect.Pointer && of.Elem().Kind() == reflect.Struct {
		context, hasContext := of.Elem().FieldByName("execCtx")
		if hasContext && context.Type.Kind() == reflect.Struct {
			bound, hasBound := context.Type.FieldByName("stackBottomPtr")
			if hasBound && bound.Type == reflect.TypeFor[*byte]() {
				offset = context.Offset + bound.Offset
			}
		}
	}
	offsets.Store(of, offset)
	return offset, offset != 0
}

// valueOf returns a pointer to the value of a module's own global, or nil if wazero's layout is
// unknown. In that case, a test fails. The engine keeps the values of all globals in one slice of
// bytes.
func valueOf(g api.Global) unsafe.Pointer {
	instance := pointedAt(reflect.ValueOf(g), "g")
	engine := pointedAt(instance, "Me")
	values, offsets := field(engine, "opaque"), field(pointedAt(engine, "parent"), "offsets")
	begin, index := field(offsets, "GlobalsBegin"), field(instance, "Index")
	if values.Kind() != reflect.Slice || !begin.CanInt() || !index.CanUint() {
		return nil
	}

	const size = 16 // of a value, in bytes
	at := begin.Int() + int64(index.Uint())*size
	if at < 0 || at+size > int64(values.Len()) {
		return nil
	}
	return unsafe.Add(values.UnsafePointer(), at)
}

// pointedAt returns the value to which a field of a structure points, or the zero Value.
func pointedAt(structure reflect.Value, name string) reflect.Value {
	v := field(structure, name)
	for v.Kind() == reflect.Interface || v.Kind() == reflect.Pointer {
		v = v.Elem()
	}
	return v
}

// field returns a field of a structure, or the zero Value.
func field(structure reflect.Value, name string) reflect.Value {
	if structure.Kind() != reflect.Struct {
		return reflect.Value{}
	}
	return structure.FieldByName(name)
}
