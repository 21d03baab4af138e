package wasm

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"

	"github.com/rlmhq/rlm/internal/machine/aot"
	"github.com/rlmhq/rlm/internal/machine/codecache"
	"github.com/rlmhq/rlm/internal/machine/cpython"
)

// cachedImage describes the image in a file of the cache.
type cachedImage struct {
	// Size is the size of the image. Shown is the part of the image that the file contains; the
	// rest is zeros.
	Size   uint64
	Shown  span
	Layout layout
}

func (e *engine) imagePath(key string) string {
	return filepath.Join(e.options.CacheDir, codecache.ImageDir, key[:32])
}

// codeSum identifies the machine code of this program.
func codeSum() string { return cpython.MachineCode().Code[runtime.GOARCH].SHA256 }

// codePath returns the path of the machine code in the cache. wazero's code is stored under other
// names.
func (o Options) codePath() string {
	return filepath.Join(o.CacheDir, codecache.CodeDir, "aot-"+codeSum()[:min(32, len(codeSum()))])
}

var errNotCached = errors.New("the machine code is not in the cache")

// cachedCode maps the machine code in the cache, and then verifies it.
func (o Options) cachedCode() (code *aot.Program, err error) {
	if o.CacheDir == "" {
		return nil, errNotCached
	}
	cache, err := codecache.Look(o.CacheDir, o.Log)
	if err != nil {
		return nil, err
	}

	isFound := cache.Fetch(o.codePath(), codeSum(), func(f *codecache.File) error {
		file, offset := f.Take()
		defer file.Close()
		program, err := aot.LoadFile(f.Head.About, file, offset, f.Head.Length)
		if err != nil {
			return err
		}
		_, data, err := program.Parts()
		if err == nil {
			err = f.Verify(data)
		}
		if err != nil {
			return errors.Join(err, program.Close())
		}
		code = program
		return nil
	})
	if !isFound {
		_ = os.Remove(o.codePath()) // if it is damaged, keepCode rewrites it
		return nil, errNotCached
	}
	return code, nil
}

// keepCode caches the machine code for the next process, if it was unpacked.
func (e *engine) keepCode() {
	if e.name != engineAOT || e.cache.Has(e.options.codePath()) {
		return
	}
	code, err := machineCode(e.options)
	var head, data []byte
	if err == nil {
		head, data, err = code.Parts()
	}
	if err != nil {
		return // loadProgram reported the error
	}
	e.cache.Store(e.options.codePath(), codecache.Head{Key: codeSum(), About: head}, data)
}

// nonzero returns the part of an image between its first and its last nonzero page.
func nonzero(image []byte) span {
	runs := dirtyRuns(image)
	if len(runs) == 0 {
		return span{}
	}
	return span{runs[0].Start, runs[len(runs)-1].End}
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
		if about.Shown.Start%pageSize != 0 || about.Shown.Start > about.Shown.End || about.Shown.End > about.Size {
			return errors.New("its image is of another version")
		}
		img, err := imageInCache(about.Size, about.Shown, f)
		if err != nil {
			return err
		}
		e.image, e.layout = img, about.Layout
		e.image.hot = e.layout.Hot

		return nil
	})
}

// keepImage caches the image for the next process.
func (e *engine) keepImage(key string) {
	view := e.image.view
	shown := nonzero(view)
	about, err := json.Marshal(cachedImage{e.image.size, shown, e.layout})
	if err != nil {
		e.options.Log.Warn("cannot cache the image", "error", err)
		return
	}
	e.cache.Store(e.imagePath(key), codecache.Head{Key: key, About: about}, view[shown.Start:shown.End])
}
