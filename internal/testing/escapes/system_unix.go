//go:build unix

package escapes

import (
	"syscall"
	"testing"
	"time"
)

// processorTime is what this process has used.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		t.Fatal(err)
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// makePipe makes a pipe with a name.
func makePipe(path string) error { return syscall.Mkfifo(path, 0o600) }
