// Package codecache keeps compiled WebAssembly, and what was prepared with it, between
// processes. The code is executed, so a cache belongs to one user: nobody else can have written
// to it, and each file has tags that only its user's programs can make.
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

// The folders in the cache directory.
const (
	// CodeDir has machine code.
	CodeDir = "code"
	// ImageDir has images of prepared memory.
	ImageDir = "image"
)

// Cache is a directory of sealed files. Without a directory, nothing is found and nothing is
// kept.
type Cache struct {
	Dir  string
	Log  *slog.Logger
	seal *seal // nil without a directory
}

// Open checks a cache directory and reads its key. If the cache is not complete, Open first
// waits until no other process prepares, and others then wait until release.
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
	// Another process may have made the key, or everything.
	if c.seal, err = readSeal(dir); err == nil && c.seal == nil {
		c.seal, err = makeSeal(dir)
	}
	if err != nil {
		release()
		return nil, nil, err
	}
	return c, release, nil
}

// Look opens a cache that is only read. Without a directory, or without a key in it, it is empty.
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

// Check creates a missing directory for its owner alone. It returns an error if the
// path cannot be a cache: it is not a directory, other users may write to it, or this process
// may not.
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

// Find returns the directory that a setting names: empty is rlm's in the user's cache, which Find
// checks, "none" is no directory.
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

// Choose is Find for a program that works without a cache: an unusable default directory is only
// logged, and is "none". A directory that the caller has named must work.
func Choose(setting string, log *slog.Logger) (string, error) {
	dir, err := Find(setting)
	if err != nil && setting == "" {
		log.Warn("cannot use the default cache directory, so each process takes "+
			"seconds to start: name another cache directory", "error", err)
		return "", nil
	}
	return dir, err
}

// Has reports whether the cache has a file. Only Fetch verifies it.
func (c *Cache) Has(path string) bool {
	if c.seal == nil {
		return false
	}
	_, err := os.Lstat(path)
	return err == nil
}

// Fetch uses a file of the cache, and reports whether it could. A file that is not what Store
// has written is made again. An empty key is any.
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

// Store caches a file for the next process. A failure is only logged: the next process then
// prepares again.
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

// untrusted is the error for a cache to which other users could add code. To change the
// modes would not help: the code of others may lie in it already.
func untrusted(dir, path, reason string) error {
	return fmt.Errorf("cannot use the cache directory %s: %s %s, but rlm runs the code in it: "+
		"name an empty directory of your own", dir, path, reason)
}
