//go:build linux && (amd64 || arm64)

package workers

import (
	"context"
	"sync"

	"github.com/rlmhq/rlm/tiers"
)

// hostThatWaits answers when its context ends, and closes asked with the first call.
func hostThatWaits(asked chan struct{}) tiers.Host {
	var once sync.Once
	return tiers.HostFunc(func(ctx context.Context, _ tiers.Call) (tiers.Value, error) {
		once.Do(func() { close(asked) })
		<-ctx.Done()
		return nil, context.Cause(ctx)
	})
}
