//go:build unix

package tools

import (
	"os/exec"
	"syscall"
)

// makeGroup lets a program lead a group of processes, because npx and uvx start others.
func makeGroup(cmd *exec.Cmd) { cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} }

// killGroup kills what is left of a program and its children.
func killGroup(cmd *exec.Cmd) { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
