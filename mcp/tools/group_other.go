//go:build !unix

package tools

import "os/exec"

func makeGroup(*exec.Cmd) {}

func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
