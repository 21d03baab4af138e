// Package flush makes the names in a folder survive the end of the machine.
package flush

import (
	"errors"
	"os"
	"runtime"
	"syscall"
)

// Folder makes the names in a folder durable, where the system can.
func Folder(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(File(f), f.Close())
}

// File flushes a file or a folder that was opened for reading, where the system can.
func File(f *os.File) error {
	err := f.Sync()
	if runtime.GOOS == "windows" || errors.Is(err, syscall.EINVAL) || errors.Is(err, errors.ErrUnsupported) {
		return nil
	}
	return err
}
