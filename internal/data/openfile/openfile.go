// Package openfile opens files whose names clients and commands provide. A name may lead to a pipe,
// a device or a socket: opening one can block forever, or have effects.
package openfile

import (
	"fmt"
	"io/fs"
	"os"
)

// Regular opens a regular file for reading, and refuses anything else. It never blocks, even if a
// pipe replaces the file concurrently.
func Regular(path string) (*os.File, error) { return regular(path, os.Stat, os.OpenFile) }

// RegularIn is like Regular, for a file in a folder.
func RegularIn(root *os.Root, name string) (*os.File, error) {
	return regular(name, root.Stat, root.OpenFile)
}

func regular(
	name string, stat func(name string) (fs.FileInfo, error),
	open func(name string, flag int, perm fs.FileMode) (*os.File, error),
) (*os.File, error) {
	info, err := stat(name) // first, because opening a device may have effects
	if err != nil {
		return nil, err
	}
	if err := Check(info); err != nil {
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}

	file, err := open(name, os.O_RDONLY|withoutWaiting, 0)
	if err != nil {
		return nil, err
	}
	if info, err = file.Stat(); err == nil {
		err = Check(info)
	}
	if err != nil {
		_ = file.Close() // only opened
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return file, nil
}

// Check returns an error if a file is not a regular one.
func Check(info fs.FileInfo) error {
	what := "a special file"
	switch mode := info.Mode(); {
	case mode.IsRegular():
		return nil
	case mode.IsDir():
		what = "a folder"
	case mode&fs.ModeNamedPipe != 0:
		what = "a pipe"
	case mode&fs.ModeSocket != 0:
		what = "a socket"
	case mode&fs.ModeDevice != 0:
		what = "a device"
	}
	return fmt.Errorf("it is %s, not a regular file: give a file, or send the text itself", what)
}
