//go:build unix

package wasm

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"syscall"
)

// checkPrivate rejects a directory to which other users may write: the code in it is executed.
func checkPrivate(dir string) error {
	info, err := os.Stat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it will be created for its owner alone
	}
	if err != nil {
		return fmt.Errorf("cannot use the cache directory: %w", err)
	}

	stat, ok := info.Sys().(*syscall.Stat_t)
	if ok && stat.Uid != 0 && int(stat.Uid) != os.Geteuid() {
		return fmt.Errorf(
			"cannot use the cache directory %s: it belongs to user %d, and rlm runs the code in it: "+
				"use a directory that belongs to you",
			dir, stat.Uid,
		)
	}

	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf(
			"cannot use the cache directory %s: others may write to it, and rlm runs the code in it: "+
				"run chmod go-w on it",
			dir,
		)
	}

	return nil
}
