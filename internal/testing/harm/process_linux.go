package harm

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
)

// makeGroup puts a process into a separate group, so that the whole group can be killed.
func makeGroup(_ *testing.T, cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// killGroup kills a process and its group.
func killGroup(pid int) {
	_ = syscall.Kill(-pid, syscall.SIGKILL) // fails if the group is empty
}

// residentMemory returns the resident memory of a process, in bytes.
func residentMemory(pid int) int64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/statm", pid))
	if fields := bytes.Fields(text); err == nil && len(fields) > 1 {
		pages, _ := strconv.ParseInt(string(fields[1]), 10, 64) // the kernel writes valid digits
		return pages * int64(os.Getpagesize())
	}
	return 0
}
