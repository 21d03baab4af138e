//go:build !linux

package wasm

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/rlmhq/rlm/internal/machine/codecache"
)

const pageSize = 4096

// image is the memory of a prepared guest. On systems other than Linux, a sandbox starts as a
// plain copy of it.
type image struct {
	view []byte
	size uint64
	hot  []span
}

// newImage makes an image of size bytes from the bytes of its runs, one after another.
func newImage(size uint64, runs []span, source io.WriterTo) (*image, error) {
	var data bytes.Buffer
	if _, err := source.WriteTo(&data); err != nil {
		return nil, fmt.Errorf("cannot fill the image's memory: %w", err)
	}
	img := &image{view: make([]byte, size), size: size}
	unpack(img.view, data.Bytes(), runs)

	return img, nil
}

// fillImage makes an image of size bytes; fill writes it into zeroed memory.
func fillImage(size uint64, fill func(memory []byte) error) (*image, error) {
	img := &image{view: make([]byte, size), size: size}
	if err := fill(img.view); err != nil {
		return nil, fmt.Errorf("cannot fill the image's memory: %w", err)
	}
	return img, nil
}

func imageInFile(*os.File, int64, span, uint64) (*image, error) {
	return nil, errors.ErrUnsupported
}

func imageInCache(size uint64, shown span, f *codecache.File) (*image, error) {
	return newImage(size, []span{shown}, f)
}

func (img *image) close() error { return nil }

// mapping is a sandbox's linear memory, a Go slice that moves when it grows.
type mapping struct {
	img   *image
	data  []byte
	used  uint64
	limit uint64
	watch *memoryWatch
}

func (m *mapping) expect(uint64) (end func()) { return func() {} }

func (img *image) allocate(
	size, limit, _, _ uint64, watch *memoryWatch,
) (linearMemory, error) {
	used := max(size, img.size)
	m := &mapping{
		img:   img,
		data:  make([]byte, used),
		used:  used,
		limit: max(limit, used),
		watch: watch,
	}

	copy(m.data, img.view)
	return m, nil
}

// Reallocate grows the memory to size bytes for wazero. It returns nil beyond the limit.
func (m *mapping) Reallocate(size uint64) []byte {
	if size > m.limit {
		m.watch.refused = true
		return nil
	}
	if size > uint64(len(m.data)) {
		grown := make([]byte, min(m.limit, max(size, uint64(len(m.data))*5/4)))
		copy(grown, m.data)
		m.data = grown
	}

	m.used = max(m.used, size)
	m.watch.peak = max(m.watch.peak, m.used)
	return m.data[:m.used]
}

func (m *mapping) bytes() []byte { return m.data }

func (m *mapping) own() uint64 { return m.used }

func (m *mapping) addText(span) error { return errors.ErrUnsupported }

func (m *mapping) mapText(span, *os.File, int64) error { return errors.ErrUnsupported }

// reset restores the image's bytes and reports whether that succeeded.
func (m *mapping) reset(watch *memoryWatch) bool {
	if m.used != m.img.size {
		return false
	}
	copy(m.data, m.img.view)
	m.watch = watch
	return true
}

func (m *mapping) prefault() {}

// Free drops the memory.
func (m *mapping) Free() { m.data = nil }

func (m *mapping) dirty() []span { return []span{{0, m.used}} }

func (img *image) original(start, end uint64) []byte {
	if end > img.size {
		return nil
	}
	return img.view[start:end]
}

// buffer is a slice of exactly the required size.
type buffer struct{ data []byte }

// resize changes the buffer's size and keeps its bytes, up to the new size.
func (b *buffer) resize(size uint64) error {
	if size != uint64(len(b.data)) {
		data := make([]byte, size)
		copy(data, b.data)
		b.data = data
	}
	return nil
}

func (b *buffer) free() { b.data = nil }
