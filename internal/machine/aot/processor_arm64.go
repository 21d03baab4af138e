//go:build linux

package aot

import (
	"fmt"
	"os"
)

// checkProcessor returns an error if the code cannot be mapped. Every processor supports the code,
// but some kernels have pages of 16 or 64 KiB.
func checkProcessor() error {
	if size := os.Getpagesize(); size != codePage {
		return fmt.Errorf("the kernel has pages of %d KiB, not of %d", size>>10, codePage>>10)
	}
	return nil
}
