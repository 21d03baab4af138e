// Package pyfolder reads a folder of Python packages, such as one made by `pip install --target`.
// The folder may be an archive, and its content is not trusted: it is bounded before it is read.
package pyfolder

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"unicode"
)

// These bounds apply to a folder.
const (
	maxFiles = 20_000
	maxFile  = 64 << 20  // bytes
	maxBytes = 512 << 20 // bytes of all files
	maxPath  = 400
)

// Folder is a folder of packages. It implements [fs.FS].
type Folder struct {
	fs.FS

	sizes   map[string]int64 // in bytes, by path
	modules []string
}

// Open lists a folder of pure Python packages. The error names a file that exceeds a bound, or that
// was compiled for a processor.
func Open(files fs.FS) (*Folder, error) {
	if folder, isOpen := files.(*Folder); isOpen {
		return folder, nil
	}

	f := &Folder{FS: files, sizes: map[string]int64{}}
	total := int64(0)
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		size, err := check(name, entry)
		if err != nil {
			return err
		}
		if total += size; total > maxBytes || len(f.sizes) >= maxFiles {
			return fmt.Errorf("the packages have more than %d files or %d MiB", maxFiles, maxBytes>>20)
		}
		f.sizes[name] = size
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("cannot use the Python packages: %w", err)
	}

	f.modules = Modules(slices.Collect(maps.Keys(f.sizes)))
	return f, nil
}

// check returns the size of a file if the file may be in a folder.
func check(name string, entry fs.DirEntry) (int64, error) {
	info, err := entry.Info()
	switch {
	case err != nil:
		return 0, err
	case len(name) > maxPath || strings.ContainsFunc(name, unicode.IsControl):
		return 0, fmt.Errorf("the file name %.100q is too long or has control characters", name)
	case !info.Mode().IsRegular():
		return 0, fmt.Errorf("%s is not a regular file", name)
	case info.Size() > maxFile:
		return 0, fmt.Errorf("%s has more than %d MiB", name, maxFile>>20)
	case isCompiled(name):
		return 0, fmt.Errorf("%s is compiled, and only pure Python runs in every tier: "+
			"build an image for tier docker with rlm images build --with", name)
	}
	return info.Size(), nil
}

// compiled lists the extensions of modules compiled for a processor.
var compiled = []string{".so", ".pyd", ".dylib", ".dll"}

func isCompiled(name string) bool { return slices.Contains(compiled, path.Ext(name)) }

// Modules returns the sorted top-level names that can be imported, given the paths of files.
func Modules(files []string) []string {
	found := map[string]bool{}
	for _, name := range files {
		if path.Ext(name) != ".py" && path.Ext(name) != ".so" {
			continue
		}
		top, rest, isInside := strings.Cut(name, "/")
		module, _, isFile := strings.Cut(top, ".") // a.py, a.cpython-313-x86_64-linux-gnu.so
		if isInside && isFile || isInside && strings.HasPrefix(rest, ".") {
			continue // x.dist-info, x.libs
		}
		if isIdentifier(module) {
			found[module] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// isIdentifier reports whether Python can import a name.
func isIdentifier(name string) bool {
	for i, r := range name {
		if r != '_' && !unicode.IsLetter(r) && (i == 0 || !unicode.IsDigit(r)) {
			return false
		}
	}
	return name != "" && name != "__pycache__"
}

// Modules returns the sorted top-level names that can be imported.
func (f *Folder) Modules() []string { return f.modules }

// Files returns the sorted paths of all files.
func (f *Folder) Files() []string { return slices.Sorted(maps.Keys(f.sizes)) }

// ErrNoFile reports a path that is not in the folder.
var ErrNoFile = errors.New("the packages have no such file")

// Read returns a file, up to the size that it had when the folder was opened.
func (f *Folder) Read(name string) ([]byte, error) {
	size, isThere := f.sizes[name]
	if !isThere {
		return nil, fmt.Errorf("%w: %.100q", ErrNoFile, name)
	}
	file, err := f.Open(name)
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", name, err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, size))
	if err != nil {
		return nil, fmt.Errorf("cannot read %s: %w", name, err)
	}
	return data, nil
}
