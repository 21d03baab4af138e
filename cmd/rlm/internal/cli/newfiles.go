package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// ReplaceFile replaces a file with the output of write, completely or not at all.
func ReplaceFile(path string, write func(io.Writer) error) error {
	file, err := os.CreateTemp(filepath.Dir(path), ".rlm-save-") // with mode 0600
	if err != nil {
		return err
	}

	err = errors.Join(write(file), file.Close())
	if err == nil {
		err = os.Rename(file.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(file.Name()))
	}
	return nil
}

// CreateFile creates a new file that only the user can read.
func CreateFile(name string) (*os.File, error) {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("cannot write %q: the file exists already: choose another name", name)
	}
	return file, err
}

// CheckFolder checks, before any work, that the folder of a flag's file exists.
func CheckFolder(flag, path string) error {
	if info, err := os.Stat(filepath.Dir(path)); err != nil || !info.IsDir() {
		return fmt.Errorf("--%s %s: its folder does not exist", flag, path)
	}
	return nil
}
