package wasm

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// cacheHead is the size of a cached image's head in bytes: a JSON object, padded with spaces.
const cacheHead = 16 << 10

// cachedHead describes a cached image.
type cachedHead struct {
	Key    string
	Size   uint64
	Layout layout
	// Runs are the nonzero parts of the image.
	Runs []span
}

// cachedImage is an open cached image of this program.
type cachedImage struct {
	head cachedHead
	file *os.File
}

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

	f, err := os.CreateTemp(dir, "new-")
	if err != nil {
		return fmt.Errorf("cannot use the cache directory: %w", err)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

func (e *engine) imagePath(key string) string {
	return filepath.Join(e.options.CacheDir, imageDir, key[:32])
}

// lookup opens the cached image with that key. It returns nil if there is none or the file is
// incomplete.
func (e *engine) lookup(key string) *cachedImage {
	if e.options.CacheDir == "" {
		return nil
	}
	path := e.imagePath(key)
	if info, err := os.Lstat(path); err != nil || !info.Mode().IsRegular() {
		return nil // opening a FIFO would wait for a writer
	}

	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	head, err := readHead(f, key)
	if err != nil {
		e.options.Log.Debug("cached image ignored", "error", err)
		_ = f.Close() // only read
		return nil
	}

	return &cachedImage{head, f}
}

func readHead(f *os.File, key string) (cachedHead, error) {
	var head cachedHead
	raw := make([]byte, cacheHead)
	if _, err := io.ReadFull(f, raw); err != nil {
		return head, err
	}
	if err := json.Unmarshal(raw, &head); err != nil {
		return head, err
	}

	info, err := f.Stat()
	if err != nil {
		return head, err
	}
	if head.Key != key || head.Size == 0 || head.Size > 1<<30 || head.Size%pageSize != 0 ||
		info.Size() != cacheHead+int64(head.Size) {
		return head, errors.New("it was made by another version of the program, or is incomplete")
	}

	for _, run := range append(head.Runs, head.Layout.Hot...) {
		if run.Start > run.End || run.End > head.Size {
			return head, errors.New("its pages are out of range")
		}
	}
	return head, nil
}

// adopt loads the cached image into the engine.
func (e *engine) adopt(c *cachedImage) error {
	defer c.file.Close()
	img, err := newImage(
		io.NewSectionReader(c.file, cacheHead, int64(c.head.Size)), c.head.Size, c.head.Runs,
	)
	if err != nil {
		return fmt.Errorf("cannot read the cached image %s: %w", c.file.Name(), err)
	}

	e.image, e.layout = img, c.head.Layout
	e.image.hot = e.layout.Hot
	return nil
}

// store caches the image for the next process. A failure is only logged: the next process
// then prepares the image again.
func (e *engine) store(key string, data []byte) {
	if e.options.CacheDir == "" {
		return
	}
	if err := e.write(key, data); err != nil {
		e.options.Log.Warn("cannot cache the prepared image", "error", err)
	}
}

func (e *engine) write(key string, data []byte) error {
	runs := dirtyRuns(data)
	head, err := json.Marshal(cachedHead{key, uint64(len(data)), e.layout, runs})
	if err != nil {
		return err
	}
	if len(head) > cacheHead {
		return errors.New("the image's header is too long")
	}

	path := e.imagePath(key)
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), "new-")
	if err != nil {
		return err
	}

	err = errors.Join(writeImage(f, head, data, runs), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}

	return nil
}

// writeImage writes the runs of an image. The rest of the file stays a hole.
func writeImage(f *os.File, head, data []byte, runs []span) error {
	padded := make([]byte, cacheHead)
	for i := copy(padded, head); i < cacheHead; i++ {
		padded[i] = ' '
	}
	if _, err := f.WriteAt(padded, 0); err != nil {
		return err
	}

	for _, run := range runs {
		if _, err := f.WriteAt(data[run.Start:run.End], cacheHead+int64(run.Start)); err != nil {
			return err
		}
	}
	return f.Truncate(cacheHead + int64(len(data)))
}
