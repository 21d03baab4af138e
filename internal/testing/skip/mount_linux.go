package skip

import (
	"testing"

	"golang.org/x/sys/unix"
)

// WithoutNoExec returns a new folder of a file system that forbids the execution of its files. It
// skips the test if this user cannot mount such a file system.
func WithoutNoExec(tb testing.TB) string {
	tb.Helper()
	dir := tb.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", unix.MS_NOEXEC, "mode=0700"); err != nil {
		tb.Skipf("cannot mount a file system with noexec, which needs root: %v", err)
	}
	tb.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			tb.Error(err)
		}
	})
	return dir
}
