package hostcall

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"

	"github.com/rlmhq/rlm/tiers"
)

// Go calls a host function on a new goroutine, and passes its result to done exactly once. A
// function that panics or ends its goroutine has failed.
func Go(
	ctx context.Context, log *slog.Logger, host tiers.Host, call tiers.Call,
	done func(tiers.Value, error),
) {
	go func() {
		var value tiers.Value
		err := fmt.Errorf("%s failed: the host function ended its goroutine", call.Function)
		defer func() { done(value, err) }()
		value, err = Call(ctx, log, host, call)
	}()
}

// Await is like Go, but waits for the result.
func Await(
	ctx context.Context, log *slog.Logger, host tiers.Host, call tiers.Call,
) (value tiers.Value, err error) {
	ended := make(chan struct{})
	Go(ctx, log, host, call, func(v tiers.Value, failed error) {
		value, err = v, failed
		close(ended)
	})
	<-ended
	return value, err
}

// Call calls a host function. A panic becomes an error without the panic's value, which must not
// reach the guest. The value and the stack are logged.
func Call(
	ctx context.Context, log *slog.Logger, host tiers.Host, call tiers.Call,
) (value tiers.Value, err error) {
	defer func() {
		if p := recover(); p != nil {
			log.Error("a host function panicked",
				"function", call.Function, "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			value, err = nil, fmt.Errorf("%s failed: the host function panicked", call.Function)
		}
	}()
	return host.Call(ctx, call)
}
