//go:build unix

package tools

import (
	"os/exec"
	"syscall"
)

// makeGroup makes a program the leader of a process group, because npx and uvx start others.
func makeGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// killGroup kills the remains of a program and its children.
func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
