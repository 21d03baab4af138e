//go:build !unix

package procgroup

import "os/exec"

// Lead does nothing: this system has no process groups.
func Lead(*exec.Cmd) {}

// Kill kills a program.
func Kill(cmd *exec.Cmd) { _ = cmd.Process.Kill() }
