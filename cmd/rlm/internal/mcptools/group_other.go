//go:build !unix

package mcptools

import "os/exec"

func makeGroup(*exec.Cmd) {}

func killGroup(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
