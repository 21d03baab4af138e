// Package pageimages draws pages of PDF files as pictures, for models that accept images.
//
// The drawer runs inside WebAssembly, with a separate instance for each page: without files and
// network access, within bounds of memory, fuel and time. A hostile document harms only its own
// picture.
package pageimages

import (
	"bytes"
	"context"
	_ "embed" // the module
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/rlmhq/rlm/internal/machine/rustmodule"
)

// `make pageimages` builds the module. The manifest describes it.

//go:embed engine/engine.wasm.zst
var codeFile []byte

//go:embed engine/data.zst
var dataFile []byte

//go:embed engine/manifest.json
var manifestFile []byte

var files = rustmodule.Link(rustmodule.Files{Manifest: manifestFile, Code: codeFile, Data: dataFile})

var engine = rustmodule.Engine{Files: files, Name: "the drawer of pages"}

// These bounds apply to the resolution, in dots per inch. The module bounds the picture's size.
const (
	MinDPI = 36
	MaxDPI = 300
)

// MaxPNG bounds a picture, in bytes. Models accept no more.
const MaxPNG = 8 << 20

// These bounds apply to one picture.
const (
	timeout     = 30 * time.Second
	memory      = 512 << 20
	baseFuel    = 20_000_000_000
	fuelPerByte = 1_000
	maxReason   = 1 << 10
)

// ErrNotDrawn reports a page that cannot be drawn.
var ErrNotDrawn = errors.New("the page cannot be drawn")

// Picture is a drawn page.
type Picture struct {
	PNG []byte
	// Lacks lists, in words, the things on the page that could not be drawn; it is empty if
	// everything was drawn.
	Lacks string
}

// lacks contains the meaning of each bit of an answer.
var lacks = []string{
	"text whose font is missing", "a picture that cannot be decoded", "an annotation that cannot be drawn",
}

// Draw draws a page of a PDF, counted from 0, at a resolution in dots per inch. The error is
// [ErrNotDrawn] for a document or a page that cannot be drawn, or that exceeds a bound.
func Draw(
	ctx context.Context, start rustmodule.Start, document *io.SectionReader, page, dpi int,
) (*Picture, error) {
	if dpi < MinDPI || dpi > MaxDPI {
		return nil, fmt.Errorf("%w: dpi is %d, and must be from %d to %d", ErrNotDrawn, dpi, MinDPI, MaxDPI)
	}
	answer, err := call(ctx, start, document, page, dpi, MaxPNG)
	if err != nil {
		return nil, err
	}
	return decode(answer)
}

// call calls the module for a document.
func call(
	ctx context.Context, start rustmodule.Start, document *io.SectionReader, operands ...int,
) ([]byte, error) {
	size := uint64(document.Size())
	if size > memory {
		return nil, fmt.Errorf("%w: the document has %d bytes, more than the memory for it", ErrNotDrawn, size)
	}
	if _, err := document.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}

	request := binary.LittleEndian.AppendUint64(nil, size)
	for _, operand := range operands {
		request = binary.LittleEndian.AppendUint32(request, uint32(operand))
	}
	answer, err := engine.Call(ctx, start, rustmodule.Job{
		Request:   request,
		Input:     document,
		Timeout:   timeout,
		Memory:    memory,
		Fuel:      baseFuel + fuelPerByte*size,
		MaxAnswer: MaxPNG + maxReason,
	})
	return answer, explain(err)
}

// explain converts the error of a call.
func explain(err error) error {
	_, hasFailed := errors.AsType[*rustmodule.FailureError](err)
	_, isLimit := errors.AsType[*rustmodule.LimitError](err)

	switch {
	case hasFailed:
		return fmt.Errorf("%w: the drawer failed", ErrNotDrawn)
	case isLimit, errors.Is(err, rustmodule.ErrTooDeep):
		return fmt.Errorf("%w: %w", ErrNotDrawn, err)
	}
	return err
}

// pngMark is the beginning of each PNG.
var pngMark = []byte("\x89PNG\r\n\x1a\n")

// decode decodes an answer, which is not trusted: 0, what the picture lacks, and the picture; or 1
// and a reason.
func decode(answer []byte) (*Picture, error) {
	if err := decodeProblem(answer); err != nil {
		return nil, err
	}
	if len(answer) < 2 || answer[0] != 0 || !bytes.HasPrefix(answer[2:], pngMark) || len(answer)-2 > MaxPNG {
		return nil, rustmodule.ErrMalformed
	}

	var missing []string
	for bit, what := range lacks {
		if answer[1]&(1<<bit) != 0 {
			missing = append(missing, what)
		}
	}
	return &Picture{answer[2:], strings.Join(missing, ", ")}, nil
}

// decodeProblem returns the reason in an answer that begins with 1.
func decodeProblem(answer []byte) error {
	a := rustmodule.NewAnswer(answer)
	if a.Byte() != 1 {
		return nil
	}
	reason := a.Text(maxReason)
	if err := a.End(); err != nil {
		return err
	}
	return fmt.Errorf("%w: %s", ErrNotDrawn, reason)
}
