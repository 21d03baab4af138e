package dbfile

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/rlmhq/rlm/internal/machine/flush"
)

// salvagedSuffix is the suffix of a database that replaces a damaged one.
const salvagedSuffix = "-salvaged"

// Replace replaces a damaged database with another one, which is closed and in the same folder. It
// first copies the damaged files to another folder. No process may be using either database. If the
// process is killed, the next Use completes the replacement.
func Replace(path, fresh, keep string) error {
	if err := os.MkdirAll(keep, 0o700); err != nil {
		return err
	}
	for _, file := range Files(path) {
		if err := copyFile(file, filepath.Join(keep, filepath.Base(file))); err != nil {
			return fmt.Errorf("cannot keep a copy of %s: %w", file, err)
		}
	}
	if err := flush.Folder(keep); err != nil {
		return err
	}

	if err := os.Rename(fresh, path+salvagedSuffix); err != nil {
		return err
	}
	if err := flush.Folder(filepath.Dir(path)); err != nil {
		return err
	}
	return finishReplace(path)
}

// finishReplace completes Replace. It first removes the log, which belongs to the damaged database.
func finishReplace(path string) error {
	if _, err := os.Lstat(path + salvagedSuffix); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, suffix := range []string{logSuffix, indexSuffix} {
		if err := os.Remove(path + suffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := os.Rename(path+salvagedSuffix, path); err != nil {
		return err
	}
	return flush.Folder(filepath.Dir(path))
}

// copyFile copies a file, if it exists, and flushes the copy to the disk.
func copyFile(from, to string) error {
	source, err := os.Open(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer source.Close()
	target, err := os.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}

	if _, err = io.Copy(target, source); err == nil {
		err = target.Sync()
	}
	return errors.Join(err, target.Close())
}
