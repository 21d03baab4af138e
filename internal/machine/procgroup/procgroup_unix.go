//go:build unix

package procgroup

import (
	"os/exec"
	"syscall"
)

// Lead makes a program that has not started the leader of a process group: npx and uvx, for example,
// start others.
func Lead(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// Kill kills the remains of a program and its children.
func Kill(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
