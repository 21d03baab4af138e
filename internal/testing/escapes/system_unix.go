//go:build unix

package escapes

import (
	"syscall"
	"testing"
	"time"
)

// processorTime returns the processor time of this process.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// makePipe creates a named pipe.
func makePipe(path string) error { return syscall.Mkfifo(path, 0o600) }
