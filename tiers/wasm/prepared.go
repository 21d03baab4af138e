package wasm

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	_ "embed" // the difference
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"sync/atomic"

	"github.com/rlmhq/rlm/internal/machine/artefact"
	"github.com/rlmhq/rlm/internal/machine/codecache"
	"github.com/rlmhq/rlm/internal/machine/cpython"
	"github.com/rlmhq/rlm/internal/python/pykernel"
)

// The part of the prepared image that the shipped one lacks is embedded in the program. A change
// of the Python runtime makes it stale: the first start on a machine then prepares the image, as
// derive does, until `make image` has updated the files.

//go:embed prepared.json
var preparedAbout []byte

//go:embed prepared.zst
var preparedData []byte

// difference describes the file prepared.zst.
type difference struct {
	// Key is the result of sourcesKey.
	Key   string
	Image cachedImage
	// Changed lists the pages that differ from the shipped image. The file contains them one after
	// another, each byte XORed with the shipped one.
	Changed []span
	File    artefact.Artefact
}

var errStale = errors.New("the program has no image of this version of the Python runtime")

// adoptPrepared builds the image from the shipped one and the difference, or takes the image
// that unpackAhead built.
func (e *engine) adoptPrepared() error {
	unpacked := ahead.Swap(nil)
	if unpacked == nil || unpacked.key != e.options.sourcesKey() {
		drop(unpacked)
		unpacked = e.options.unpack()
	}
	<-unpacked.done
	if unpacked.err != nil {
		return unpacked.err
	}

	e.image, e.layout = unpacked.image, unpacked.layout
	e.image.hot = e.layout.Hot
	return nil
}

// unpacking is an image under construction.
type unpacking struct {
	key    string
	done   chan struct{}
	image  *image
	layout layout
	err    error
}

// ahead is the image that unpackAhead started to build, until an engine takes it.
var ahead atomic.Pointer[unpacking]

// drop closes an image that no engine takes, once it is built.
func drop(u *unpacking) {
	if u == nil {
		return
	}
	go func() {
		if <-u.done; u.image != nil {
			_ = u.image.close() // the image was never used
		}
	}()
}

// unpackAhead starts to unpack the image while this goroutine unpacks the machine code.
func (o Options) unpackAhead() { drop(ahead.Swap(o.unpack())) }

// unpack starts to unpack the image.
func (o Options) unpack() *unpacking {
	u := &unpacking{key: o.sourcesKey(), done: make(chan struct{})}
	go func() {
		defer close(u.done)
		var d difference
		if u.err = json.Unmarshal(preparedAbout, &d); u.err != nil {
			return
		}
		if d.Key != u.key {
			u.err = errStale
			return
		}
		u.image, u.err = fillImage(d.Image.Size, d.fill)
		u.layout = d.Image.Layout
	}()
	return u
}

// fill writes the image into zeroed memory.
func (d *difference) fill(memory []byte) error {
	type unpacked struct {
		data []byte
		err  error
	}
	changes := make(chan unpacked, 1)
	go func() {
		data, err := d.File.Decompress(preparedData)
		changes <- unpacked{data, err}
	}()

	err := cpython.ImageInto(memory)
	change := <-changes
	if err := errors.Join(err, change.err); err != nil {
		return err
	}
	if uint64(len(change.data)) != length(d.Changed) {
		return errors.New("prepared.json does not describe prepared.zst")
	}
	for _, run := range d.Changed {
		page := memory[run.Start:run.End]
		change.data = change.data[subtle.XORBytes(page, page, change.data):]
	}
	return nil
}

// sourcesKey hashes the sources of the prepared image; it is the same on all machines.
func (o Options) sourcesKey() string {
	h := sha256.New()
	m := cpython.Manifest()
	_, _ = io.WriteString(h, imageFormat+m.Module.SHA256+m.Image.SHA256)
	pykernel.HashSources(h)
	_, _ = io.WriteString(h, "\x00"+o.Preload)
	if o.isCounted {
		_, _ = io.WriteString(h, "\x00counted")
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Difference prepares the image again, and returns the contents of the files prepared.json and
// prepared.zst.
func (t *tier) Difference(ctx context.Context) (about, data []byte, err error) {
	e := &engine{options: t.options, idle: newIdleList(), cache: &codecache.Cache{Log: t.options.Log}}
	e.name, _ = t.options.engine()
	if e.program, err = e.loadProgram(ctx); err == nil {
		err = e.derive(ctx)
	}
	defer func() { err = errors.Join(err, e.close()) }()
	if err != nil {
		return nil, nil, err
	}

	view := e.image.view
	shipped := make([]byte, len(view))
	if err := cpython.ImageInto(shipped); err != nil {
		return nil, nil, err
	}
	subtle.XORBytes(shipped, shipped, view)
	d := difference{
		Key: t.options.sourcesKey(), Image: cachedImage{e.image.size, nonzero(view), e.layout},
		Changed: dirtyRuns(shipped),
	}
	if d.File, data, err = artefact.Compress("prepared.zst", packed(shipped, d.Changed)); err != nil {
		return nil, nil, err
	}

	about, err = json.MarshalIndent(d, "", "\t")
	return append(about, '\n'), data, err
}
