//go:build linux && (amd64 || arm64)

package workers

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rlmhq/rlm/tiers"
)

// hostThatWaits returns a host that answers when its context ends, and that closes asked at the
// first call.
func hostThatWaits(asked chan struct{}) tiers.Host {
	return hostUntil(asked, &atomic.Bool{})
}

// hostUntil returns a host that answers 7 as soon as mayAnswer is set.
func hostUntil(asked chan struct{}, mayAnswer *atomic.Bool) tiers.Host {
	var once sync.Once
	return tiers.HostFunc(func(ctx context.Context, _ tiers.Call) (tiers.Value, error) {
		once.Do(func() { close(asked) })
		for !mayAnswer.Load() {
			select {
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			case <-time.After(time.Millisecond):
			}
		}
		return tiers.Value("7"), nil
	})
}

// writerFunc is a writer that calls a function with the written data.
type writerFunc func([]byte)

// Write implements io.Writer.
func (f writerFunc) Write(data []byte) (int, error) {
	f(data)
	return len(data), nil
}
