package cli

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// isGiven reports whether stdin has data meant only for this process.
func isGiven(stdin *os.File) bool {
	info, err := stdin.Stat()
	if err != nil {
		return false
	}

	if isShared(info, os.Getppid()) {
		return false
	}

	switch {
	case info.Mode().IsRegular():
		at, err := stdin.Seek(0, io.SeekCurrent)
		return err == nil && at < info.Size()
	case info.Mode()&(os.ModeNamedPipe|os.ModeSocket) != 0:
		return countWaiting(stdin) > 0
	}
	return false
}

// wrappers are programs that run another program as their child, with their own stdin.
var wrappers = []string{
	"chrt", "doas", "ionice", "nice", "nohup", "setsid", "stdbuf", "strace", "sudo", "taskset", "time",
	"timeout",
}

// isShared reports whether a parent process reads the same stdin, such as a shell loop that reads
// lines. The data may then be the parent's. Wrappers do not count, since they share their stdin
// with their child.
func isShared(stdin os.FileInfo, parent int) bool {
	for range 16 {
		process := fmt.Sprintf("/proc/%d/", parent)
		theirs, err := os.Stat(process + "fd/0")
		if err != nil || !os.SameFile(stdin, theirs) {
			return false
		}

		stat, err := os.ReadFile(process + "stat") // PID (NAME) STATE PARENT ...
		if err != nil {
			return true
		}

		_, rest, _ := strings.Cut(string(stat), "(")
		end := strings.LastIndexByte(rest, ')')
		if end < 0 || !slices.Contains(wrappers, rest[:end]) {
			return true
		}
		if _, err := fmt.Sscanf(rest[end+1:], " %1s %d", new(string), &parent); err != nil {
			return true
		}
	}
	return true
}

// countWaiting returns how many unread bytes a pipe or a socket holds.
func countWaiting(stdin *os.File) (n int) {
	conn, err := stdin.SyscallConn()
	if err != nil {
		return 0
	}

	err = conn.Control(func(fd uintptr) {
		if waiting, err := unix.IoctlGetInt(int(fd), unix.TIOCINQ); err == nil {
			n = waiting
		}
	})
	if err != nil {
		return 0
	}
	return n
}
