package wasm

import (
	"encoding/json"
	"path/filepath"

	"github.com/rlmhq/rlm/internal/machine/codecache"
	"github.com/rlmhq/rlm/internal/machine/cpython"
)

// cachedImage describes the image in a file of the cache.
type cachedImage struct {
	// Size is the image's, Runs are its nonzero parts, one after another in the file.
	Size   uint64
	Runs   []span
	Layout layout
}

func (e *engine) imagePath(key string) string {
	return filepath.Join(e.options.CacheDir, codecache.ImageDir, key[:32])
}

// codeID identifies the interpreter's code.
func codeID() string { return imageFormat + cpython.Manifest().Module.SHA256 }

// adopt loads the cached image into the engine, if there is one and it is unchanged.
func (e *engine) adopt(key string) {
	_ = e.cache.Fetch(e.imagePath(key), key, func(f *codecache.File) error {
		var about cachedImage
		if err := json.Unmarshal(f.Head.About, &about); err != nil {
			return err
		}
		img, err := newImage(about.Size, about.Runs, f)
		if err != nil {
			return err
		}
		e.image, e.layout = img, about.Layout
		e.image.hot = e.layout.Hot

		return nil
	})
}

// keep caches the image for the next process.
func (e *engine) keep(key string, prepared []byte) error {
	runs := dirtyRuns(prepared)
	about, err := json.Marshal(cachedImage{uint64(len(prepared)), runs, e.layout})
	if err != nil {
		return err
	}
	e.cache.Store(e.imagePath(key), codecache.Head{Key: key, About: about}, packed(prepared, runs))
	return nil
}
