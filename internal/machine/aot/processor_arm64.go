//go:build linux

package aot

import (
	"fmt"
	"os"
)

// checkProcessor reports whether the code can be mapped. All processors have what it was
// compiled for, but some kernels have pages of 16 or 64 KiB.
func checkProcessor() error {
	if size := os.Getpagesize(); size != codePage {
		return fmt.Errorf("the kernel has pages of %d KiB, not of %d", size>>10, codePage>>10)
	}
	return nil
}
