package wasm

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// imageDir is the folder of prepared images in the cache directory.
const imageDir = "image"

// CheckCacheDir creates a missing directory for its owner alone. It returns an error if the
// path cannot be a cache: it is not a directory, other users may write to it, or this process
// may not.
func CheckCacheDir(dir string) error {
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

func (e *engine) imagePath(key string) string {
	return filepath.Join(e.options.CacheDir, imageDir, key[:32])
}

// isCached reports whether the cache has an image with that key. Only adopt verifies it.
func (e *engine) isCached(key string) bool {
	if e.seal == nil {
		return false
	}
	_, err := os.Lstat(e.imagePath(key))
	return err == nil
}

// adopt loads the cached image into the engine, if there is one and it is unchanged.
func (e *engine) adopt(key string) {
	_ = e.fetch(e.imagePath(key), key, func(c *cachedFile) error {
		img, err := newImage(c.head.Size, c.head.Runs, c)
		if err != nil {
			return err
		}
		e.image, e.layout = img, c.head.Layout
		e.image.hot = e.layout.Hot

		return nil
	})
}

// fetch uses a file of the cache, and reports whether it could. A file that is not what store
// has written is made again.
func (e *engine) fetch(path, key string, use func(*cachedFile) error) bool {
	if e.seal == nil {
		return false
	}

	c, err := e.seal.open(path, key)
	if err == nil {
		err = use(c)
		err = errors.Join(err, c.file.Close())
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		e.options.Log.Warn("a cached file is not used", "path", path, "error", err)
	}

	return err == nil
}

// store caches a file for the next process. A failure is only logged: the next process then
// prepares again.
func (e *engine) store(path string, head cachedHead, data []byte) {
	if e.seal == nil {
		return
	}
	err := os.MkdirAll(filepath.Dir(path), 0o700)
	if err == nil {
		err = e.seal.write(path, head, data)
	}
	if err != nil {
		e.options.Log.Warn("cannot cache what was prepared", "path", path, "error", err)
	}
}

// untrusted is the error for a cache to which other users could add code. To change the
// modes would not help: the code of others may lie in it already.
func untrusted(dir, path, reason string) error {
	return fmt.Errorf("cannot use the cache directory %s: %s %s, but rlm runs the code in it: "+
		"name an empty directory of your own", dir, path, reason)
}
