//go:build unix

package cli

import (
	"syscall"
	"testing"
	"time"
)

// TestACommandThatDoesNotEndIsKilled checks that the grace period begins with the signal.
func TestACommandThatDoesNotEndIsKilled(t *testing.T) {
	t.Parallel()
	ctx, in := Listen(t.Context())
	killed := make(chan bool)
	in.endWithin(time.Nanosecond, func() { close(killed) })
	in.signals <- syscall.SIGTERM
	<-killed
	if ctx.Err() == nil {
		t.Error("the signal does not end the command first")
	}
	in.Stop()
}
