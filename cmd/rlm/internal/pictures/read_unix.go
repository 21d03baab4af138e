//go:build unix

package pictures

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// readByte reads one byte from a terminal, if it arrives in time.
func readByte(in *os.File, wait time.Duration) (byte, bool) {
	fds := []unix.PollFd{{Fd: int32(in.Fd()), Events: unix.POLLIN}} //nolint:gosec // a descriptor
	n, err := unix.Poll(fds, max(0, int(wait.Milliseconds())))
	if err != nil || n == 0 {
		return 0, false
	}

	var b [1]byte
	n, err = in.Read(b[:])
	return b[0], err == nil && n == 1
}
