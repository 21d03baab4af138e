// Package watchwazero calls guests of wazero under the watchdog.
//
// wazero's code compares its stack with a bound when a function begins, and calls Go for a larger
// stack. The watchdog raises this bound, so the guest calls Go, which doubles its stack. A guest
// that holds the processor a dozen times thus overflows its stack, which ends the call with an
// error. An honest guest calls the host a hundred times as often as the watchdog looks.
package watchwazero

import (
	"context"
	"math"
	"reflect"
	"runtime"
	"sync"

	"github.com/tetratelabs/wazero/api"

	"github.com/rlmhq/rlm/internal/machine/watchdog"
)

// stayKey is the context key of the stay of the current call.
type stayKey struct{}

// Call calls a guest's function. The function finds its parameters on the stack, and leaves its
// results there. All host functions that the guest may call for a long time should be wrapped by
// [HostFunction].
func Call(ctx context.Context, f api.Function, stack []uint64) error {
	stay, err := watchdog.Take()
	if err != nil {
		return err
	}
	defer stay.Free()

	limit := stackBound(f)
	stay.Watch(limit, math.MaxInt64, 0) // on arm64, wazero's comparison is signed
	stay.EnterOnThread()
	defer func() {
		stay.Stop()
		watchdog.Unwatch(limit)
		runtime.KeepAlive(f) // the word is part of the function
	}()
	return f.CallWithStack(context.WithValue(ctx, stayKey{}, stay), stack)
}

// HostFunction wraps a function of the host, during which the guest counts as outside.
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

// stackBound returns the address of a function's stack bound, or 0 if wazero's layout is unknown. A
// test then fails.
func stackBound(f api.Function) uintptr {
	v := reflect.ValueOf(f)
	offset, isKnown := boundOffset(v.Type())
	if !isKnown {
		return 0
	}
	return v.Pointer() + offset
}

var offsets sync.Map // by the type of a function

// boundOffset returns the offset of the stack bound in a function of a type.
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
