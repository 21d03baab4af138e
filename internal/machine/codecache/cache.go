// Package codecache caches compiled WebAssembly, and memory prepared with it, between processes.
// The code is executed, so a cache belongs to one user: no other user may write to it, and each
// file has tags that only this user's programs can create.
package codecache

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
)

// These are the folders in the cache directory.
const (
	// CodeDir contains machine code.
	CodeDir = "code"
	// ImageDir contains images of prepared memory.
	ImageDir = "image"
)

// Cache is a directory of sealed files. Without a directory, the cache is always empty.
type Cache struct {
	Dir  string
	Log  *slog.Logger
	seal *seal // nil without a directory
}

// Open checks a cache directory and reads its key. If the cache is incomplete, Open first waits
// until no other process is preparing it, and makes others wait until release.
func Open(
	ctx context.Context, dir string, log *slog.Logger, isComplete func(*Cache) bool,
) (c *Cache, release func(), err error) {
	if c, err = Look(dir, log); err != nil {
		return nil, nil, err
	}
	if dir == "" || isComplete(c) {
		return c, func() {}, nil
	}

	if release, err = c.lock(ctx); err != nil {
		return nil, nil, err
	}
	c.sweep()
	// Another process may have created the key, or everything.
	if c.seal, err = readSeal(dir); err == nil && c.seal == nil {
		c.seal, err = makeSeal(dir)
	}
	if err != nil {
		release()
		return nil, nil, err
	}
	return c, release, nil
}

// Look opens a cache for reading only. Without a directory, or without a key in it, the cache is
// empty.
func Look(dir string, log *slog.Logger) (*Cache, error) {
	c := &Cache{Dir: dir, Log: log}
	if dir == "" {
		return c, nil
	}
	if err := checkPrivate(dir); err != nil {
		return nil, err
	}
	var err error
	c.seal, err = readSeal(dir)
	return c, err
}

// Check creates a missing directory, accessible only to its owner. It returns an error if the path
// cannot be a cache: it is not a directory, other users may write to it, or this process may not.
func Check(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("cannot use the cache directory: %w", err)
	}
	if err := checkPrivate(dir); err != nil {
		return err
	}
	if _, err := readSeal(dir); err != nil {
		return err
	}

	f, err := os.CreateTemp(dir, "new-")
	if err != nil {
		return fmt.Errorf("cannot use the cache directory: %w", err)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// Find returns the directory for a setting: "none" means no directory, and an empty setting means
// rlm's directory in the user's cache directory, which Find checks.
func Find(setting string) (string, error) {
	switch setting {
	case "none":
		return "", nil
	case "":
		dir, err := os.UserCacheDir()
		if err != nil {
			return "", err
		}
		dir = filepath.Join(dir, "rlm")
		return dir, Check(dir)
	}
	return setting, Check(setting)
}

// Choose is like Find, for a program that works without a cache: if the default directory is
// unusable, Choose logs that and returns "none". A directory named by the caller must be usable.
func Choose(setting string, log *slog.Logger) (string, error) {
	dir, err := Find(setting)
	if err != nil && setting == "" {
		log.Warn("cannot use the default cache directory, so each process takes "+
			"seconds to start: name another cache directory", "error", err)
		return "", nil
	}
	return dir, err
}

// Has reports whether the cache contains a file. Only Fetch verifies it.
func (c *Cache) Has(path string) bool {
	if c.seal == nil {
		return false
	}
	_, err := os.Lstat(path)
	return err == nil
}

// Fetch calls use with a cache file, and reports whether that succeeded. A file that differs from
// what Store wrote is treated as missing. An empty key matches any key.
func (c *Cache) Fetch(path, key string, use func(*File) error) bool {
	if c.seal == nil {
		return false
	}

	f, err := c.seal.open(path, key)
	if err == nil {
		err = use(f)
		err = errors.Join(err, f.close())
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		c.Log.Warn("a cached file is not used", "path", path, "error", err)
	}

	return err == nil
}

// Store caches a file for the next process. A failure is only logged: the next process then has to
// prepare it again.
func (c *Cache) Store(path string, head Head, data []byte) {
	if c.seal == nil {
		return
	}
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = c.seal.write(path, head, data)
	}
	if err != nil {
		c.Log.Warn("cannot cache what was prepared", "path", path, "error", err)
	}
}

// untrusted is the error for a cache to which other users could add code. Changing the modes would
// not help: the cache may already contain their code.
func untrusted(dir, path, reason string) error {
	return fmt.Errorf("cannot use the cache directory %s: %s %s, but rlm runs the code in it: "+
		"name an empty directory of your own", dir, path, reason)
}
