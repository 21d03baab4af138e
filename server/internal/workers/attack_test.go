//go:build linux && (amd64 || arm64)

package workers

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rlmhq/rlm/internal/machine/watchdog"
)

func withTestTimeout() (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.Background(), time.Minute)
}

// withholds is true in a worker that withholds its answers.
var withholds atomic.Bool

// attack runs in a worker, in place of machine code that a snippet smuggled in. It executes an
// order from attacks, and returns "done" or the error.
func attack(order string) any {
	what, operand, _ := strings.Cut(order, " ")
	var err error
	switch what {
	case "read":
		_, err = os.ReadFile(operand)
	case "list":
		_, err = os.ReadDir(operand)
	case "write":
		err = os.WriteFile(operand, []byte("x"), 0o600)
	case "environment":
		return attackResult{strings.Join(os.Environ(), " ")}
	case "arguments":
		return attackResult{strings.Join(os.Args, " ")}
	case "execute":
		err = syscall.Exec(operand, []string{operand}, nil)
	case "clone":
		_, _, errno := unix.RawSyscall(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0)
		err = fromErrno(errno)
	case "descriptors":
		return attackResult{describeDescriptors()}
	case "signal":
		var pid int
		_, _ = fmt.Sscan(operand, &pid)
		err = unix.Kill(pid, 0)
	case "trace":
		var pid int
		_, _ = fmt.Sscan(operand, &pid)
		err = unix.PtraceAttach(pid)
	case "peek":
		var pid int
		_, _ = fmt.Sscan(operand, &pid)
		buffer := make([]byte, 8)
		_, err = unix.ProcessVMReadv(pid, []unix.Iovec{{Base: &buffer[0], Len: 8}},
			[]unix.RemoteIovec{{Base: 0x400000, Len: 8}}, 0)
	case "socket":
		var family, kind int
		_, _ = fmt.Sscan(operand, &family, &kind)
		_, err = unix.Socket(family, kind, 0)
	case "keyring":
		_, err = unix.KeyctlGetKeyringID(unix.KEY_SPEC_USER_KEYRING, false)
	case "grow":
		growUntilKilled()
	case "stall":
		stall()
	case "exit":
		os.Exit(7)
	case "hold":
		holdProcessor()
	case "withhold":
		withholds.Store(true)
		select {} // only blocks this answer; the worker answers other requests
	case "withholds":
		return attackResult{strconv.FormatBool(withholds.Load())}
	case "kill":
		err = unix.Kill(unix.Getpid(), unix.SIGKILL)
	case "garbage":
		_, err = unix.Write(3, []byte(operand+"\n"))
	case "writable":
		return attackResult{describeWritable()}
	default:
		err = errors.New("unknown attack")
	}

	if err != nil {
		return attackResult{err.Error()}
	}
	return attackResult{"done"}
}

// holdProcessor computes without end, like a guest that only the watchdog can end.
func holdProcessor() {
	stay, err := watchdog.Take()
	if err != nil {
		panic(err)
	}
	stay.Enter()
	select {}
}

func fromErrno(errno syscall.Errno) error {
	if errno == 0 {
		return nil
	}
	return errno
}

// describeDescriptors describes each open descriptor.
func describeDescriptors() string {
	var all []string
	for fd := range 256 {
		var stat unix.Stat_t
		if unix.Fstat(fd, &stat) == nil {
			all = append(all, fmt.Sprintf("%d:%o:%d", fd, stat.Mode&unix.S_IFMT, stat.Dev))
		}
	}
	return strings.Join(all, " ")
}

// describeWritable lists the regular files that the worker can write, except those in memory.
func describeWritable() string {
	var all []string
	for fd := 3; fd < 256; fd++ {
		var stat unix.Stat_t
		mode, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
		if err != nil || unix.Fstat(fd, &stat) != nil || stat.Mode&unix.S_IFMT != unix.S_IFREG || stat.Nlink == 0 {
			continue
		}
		if mode&unix.O_ACCMODE != unix.O_RDONLY {
			all = append(all, fmt.Sprint(fd))
		}
	}

	return strings.Join(all, " ")
}

func growUntilKilled() {
	var all [][]byte
	for {
		block := make([]byte, 16<<20)
		for i := range block {
			block[i] = byte(i)
		}
		all = append(all, block)
		runtime.KeepAlive(all)
	}
}

// stall blocks every thread of the worker, as an endless instruction would when the garbage
// collector waits for it.
func stall() {
	_ = unix.Kill(unix.Getpid(), unix.SIGSTOP)
}
