package bigtext

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"runtime"
	"sync/atomic"
	"unicode/utf8"
	"unsafe"
)

// Characters is a text in the form in which CPython stores the characters of a str: each occupies
// Width bytes.
type Characters struct {
	// File contains the characters, little-endian, from its beginning, followed by a NUL character.
	// It is a copy without a name, so no one else can write to it or shorten it: see
	// LinkCharacters. It is closed when nothing refers to it.
	File *os.File
	// Length is the number of characters.
	Length int64
	// Width is the number of bytes per character: 1, 2 or 4, the smallest that suffices for all.
	Width int64
	// ASCII reports whether every character is ASCII.
	ASCII bool
}

// Size returns the number of bytes, excluding the NUL character.
func (c *Characters) Size() int64 { return c.Length * c.Width }

// Characters returns the text in CPython's form. The first call writes the copy, and later ones
// return it. The error wraps [ErrTooLarge] if the copy would exceed limit bytes.
func (t *Text) Characters(ctx context.Context, limit int64) (c *Characters, err error) {
	err = t.withIndex(ctx, func(x *index) error {
		if err := t.lock(ctx); err != nil {
			return err
		}
		defer t.unlock()

		if c = t.characters; c != nil {
			return c.check(limit)
		}
		c, err = t.makeCharacters(ctx, x, limit)
		if err == nil {
			t.characters = c
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	return c, nil
}

// LinkCharacters is like Characters, for a guest that opens the file by name. The file has this
// name until the caller removes it, and anyone who can reach the folder may read it. The folder
// must be in the same file system as os.TempDir.
func (t *Text) LinkCharacters(
	ctx context.Context, limit int64, name string,
) (*Characters, error) {
	c, err := t.Characters(ctx, limit)
	if err != nil {
		return nil, err
	}

	err = c.link(name)
	if errors.Is(err, fs.ErrNotExist) { // the kernel gives no new name to a file that lost its last one
		if err := t.forgetCharacters(ctx, c); err != nil {
			return nil, err
		}
		if c, err = t.Characters(ctx, limit); err != nil {
			return nil, err
		}
		err = c.link(name)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot show the characters of %q to a sandbox: %w", t.name, err)
	}
	return c, nil
}

// forgetCharacters makes the next call to Characters write a new copy. Guests that have mapped the
// old copy keep it.
func (t *Text) forgetCharacters(ctx context.Context, c *Characters) error {
	if err := t.lock(ctx); err != nil {
		return err
	}
	defer t.unlock()
	if t.characters == c {
		t.characters = nil
	}
	return nil
}

func (c *Characters) check(limit int64) error {
	if size := c.Size(); size > limit {
		return fmt.Errorf("cannot keep %d characters of %d bytes: %w: they have more than %d bytes",
			c.Length, c.Width, ErrTooLarge, limit)
	}
	return nil
}

func (t *Text) makeCharacters(ctx context.Context, x *index, limit int64) (*Characters, error) {
	c := &Characters{Length: x.chars, Width: 1, ASCII: x.ascii()}
	if !c.ASCII {
		var err error
		if c.Width, err = t.findWidth(ctx); err != nil {
			return nil, err
		}
	}
	if err := c.check(limit); err != nil {
		return nil, err
	}

	makeFile := charactersFile
	if makeCopy != nil {
		makeFile = nameless
	}
	f, remove, err := makeFile()
	if err != nil {
		return nil, fmt.Errorf("cannot keep a text in a temporary file: %w", err)
	}
	c.File = f
	err = t.writeCharacters(ctx, x, c)
	if err != nil {
		err = fmt.Errorf("cannot keep %q in a temporary file: %w", t.name, err)
	} else if t.file != nil { // a text that changed during the copy is a mixture of old and new
		var now fs.FileInfo
		if now, err = t.file.Stat(); err == nil {
			err = t.compare(now)
		}
	}
	if err != nil {
		return nil, errors.Join(err, f.Close(), remove())
	}

	kept.Add(c.fileSize())
	runtime.AddCleanup(c, func(size int64) { kept.Add(-size) }, c.fileSize())
	return c, nil
}

// kept is the total size of this process's copies, in bytes. In a directory with many files, each
// copy is small, but together they may fill a disk.
var kept atomic.Int64

func (c *Characters) fileSize() int64 { return c.Size() + c.Width }

// findWidth returns the width of the widest character.
func (t *Text) findWidth(ctx context.Context) (int64, error) {
	var width atomic.Int64
	width.Store(1)
	err := t.each(ctx, 0, t.Size(), func(_, lo, hi int64) error {
		if width.Load() == 4 || t.inHole(lo, hi) || isASCII(t.data[lo:hi]) {
			return nil
		}
		found := widthOf(t.data[nextBoundary(t.data, lo):nextBoundary(t.data, hi)])
		for {
			known := width.Load()
			if found <= known || width.CompareAndSwap(known, found) {
				return nil
			}
		}
	})
	return width.Load(), err
}

// widthOf returns the width of the widest character of b.
func widthOf(b []byte) int64 {
	width := int64(1)
	for p := 0; p < len(b); {
		switch c := b[p]; {
		case c < utf8.RuneSelf:
			p++
			continue
		case c < 0xC4 && width > 1: // at most U+00FF if it is valid, and no change if not
			p++
			continue
		}

		r, w := decodeEscaped(b[p:])
		switch p += w; {
		case r > 0xFFFF:
			return 4
		case r > 0xFF:
			width = 2
		}
	}
	return width
}

// decodeEscaped returns the first character of b as in Python, and its length in bytes.
func decodeEscaped(b []byte) (r rune, width int) {
	r, width = utf8.DecodeRune(b)
	if r == utf8.RuneError && width == 1 {
		return 0xDC00 + rune(b[0]), 1 // surrogateescape
	}
	return r, width
}

// writeCharacters writes the file of c.
func (t *Text) writeCharacters(ctx context.Context, x *index, c *Characters) error {
	if err := c.reserve(); err != nil {
		return err
	}
	return t.each(ctx, 0, t.Size(), func(_, lo, hi int64) error {
		if t.inHole(lo, hi) {
			return nil // the file already consists of NUL characters
		}
		lo, hi = nextBoundary(t.data, lo), nextBoundary(t.data, hi)
		at := x.charOf(t.data, lo) * c.Width

		buffer := make([]byte, piece*c.Width)
		for lo < hi {
			end := nextBoundary(t.data, min(lo+piece, hi))
			// Even bytes that need no encoding are copied first: if the file was truncated, the copy
			// faults, which becomes ErrChanged. A write from the mapping would return an
			// uninformative error.
			n := encodeCharacters(buffer, t.data[lo:end], c)
			if _, err := c.File.WriteAt(buffer[:n], at); err != nil {
				return err
			}
			lo, at = end, at+n
		}
		return nil
	})
}

// reserve allocates space for the file.
func (c *Characters) reserve() error {
	if makeCopy != nil { // in memory, within the bounds of the process
		return c.File.Truncate(c.fileSize())
	}
	if err := CheckSpace(c.File, c.fileSize(), kept.Load()); err != nil {
		return err
	}
	return reserve(c.File, c.fileSize())
}

// piece is the number of bytes that are encoded in one step: together with their characters, they
// fit into a processor's cache.
const piece = 64 << 10

// encodeCharacters writes the characters of b to out and returns their length in bytes.
func encodeCharacters(out, b []byte, c *Characters) int64 {
	switch {
	case c.ASCII:
		return int64(copy(out, b))
	case c.Width == 1:
		return int64(spread(out, b))
	case c.Width == 2:
		wide := unsafe.Slice((*uint16)(unsafe.Pointer(unsafe.SliceData(out))), len(out)/2)
		return 2 * int64(spread(wide, b))
	}
	wide := unsafe.Slice((*uint32)(unsafe.Pointer(unsafe.SliceData(out))), len(out)/4)
	return 4 * int64(spread(wide, b))
}

// spread writes the characters of b to out, which must have room for len(b), and returns their
// number.
func spread[T uint8 | uint16 | uint32](out []T, b []byte) (n int) {
	for p := 0; p < len(b); n++ {
		first := b[p]
		if first < utf8.RuneSelf {
			out[n] = T(first)
			p++
			continue
		}

		width := 0
		if p+4 <= len(b) {
			width = wideLen(binary.LittleEndian.Uint32(b[p:]))
		}
		switch width {
		case 2:
			out[n] = T(uint32(first&0x1F)<<6 | uint32(b[p+1]&0x3F))
			p += 2
		case 3:
			out[n] = T(uint32(first&0xF)<<12 | uint32(b[p+1]&0x3F)<<6 | uint32(b[p+2]&0x3F))
			p += 3
		default: // four bytes, the end of b, or an invalid sequence
			r, w := decodeEscaped(b[p:])
			out[n] = T(r)
			p += w
		}
	}
	return n
}
