// Package smalldisk mounts a separate disk on a folder, for tests of disks that are full or
// read-only.
package smalldisk

import (
	"errors"
	"testing"

	"golang.org/x/sys/unix"
)

// Mount mounts an empty disk on a folder until the test ends. The options are those of tmpfs, such
// as "size=2m". Only root can do this; for other users, Mount skips the test.
func Mount(tb testing.TB, dir, options string) {
	tb.Helper()
	err := unix.Mount("none", dir, "tmpfs", 0, options)
	if errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
		tb.Skip("only root can mount a small disk")
	}
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		if err := unix.Unmount(dir, unix.MNT_DETACH); err != nil {
			tb.Error(err)
		}
	})
}

// Resize changes the size of a disk, to a value such as "64m".
func Resize(tb testing.TB, dir, size string) {
	tb.Helper()
	remount(tb, dir, 0, "size="+size)
}

// MakeReadOnly makes a disk read-only.
func MakeReadOnly(tb testing.TB, dir string) {
	tb.Helper()
	remount(tb, dir, unix.MS_RDONLY, "")
}

func remount(tb testing.TB, dir string, flags uintptr, options string) {
	tb.Helper()
	if err := unix.Mount("none", dir, "tmpfs", unix.MS_REMOUNT|flags, options); err != nil {
		tb.Fatal(err)
	}
}
