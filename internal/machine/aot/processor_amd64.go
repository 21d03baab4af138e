//go:build linux

package aot

import (
	"errors"

	"golang.org/x/sys/cpu"
)

// checkProcessor returns an error if the processor lacks a feature of x86-64-v2, for which the code
// was compiled.
func checkProcessor() error {
	x := cpu.X86
	if !x.HasSSE42 || !x.HasPOPCNT || !x.HasSSSE3 || !x.HasCX16 {
		return errors.New("the processor is older than x86-64-v2")
	}
	return nil
}
