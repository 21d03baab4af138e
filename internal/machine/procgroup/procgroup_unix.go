//go:build unix

package procgroup

import (
	"os/exec"
	"syscall"
)

// Lead makes a program that has not been started the leader of a process group, because programs
// such as npx and uvx start others.
func Lead(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// Kill kills a program, if it still runs, and its children.
func Kill(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
