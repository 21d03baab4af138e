//go:build !linux

package harm

import (
	"os/exec"
	"testing"
)

func alone(t *testing.T, _ *exec.Cmd) { t.Skip("processes are watched on Linux only") }

func slay(int) {}

func resident(int) int64 { return 0 }
