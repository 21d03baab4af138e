// Package documents converts documents to Markdown: PDF, Word, Excel, PowerPoint, OpenDocument,
// EPUB, RTF, mail, HTML and notebooks.
//
// Document parsers are a classic target of attacks. These parsers run inside WebAssembly, with a
// separate instance for each document: without files and network access, within bounds of memory,
// fuel and time. A hostile document harms only its own conversion.
package documents

import (
	"bytes"
	"context"
	_ "embed" // the module
	"encoding/binary"
	"errors"
	"io"
	"time"

	"github.com/rlmhq/rlm/internal/machine/rustmodule"
)

// `make documents` builds the module. The manifest describes it.

//go:embed engine/engine.wasm.zst
var codeFile []byte

//go:embed engine/data.zst
var dataFile []byte

//go:embed engine/manifest.json
var manifestFile []byte

var files = rustmodule.Link(rustmodule.Files{Manifest: manifestFile, Code: codeFile, Data: dataFile})

// Kind is the format of a document.
type Kind string

// These are the kinds. Zip and OLE are containers: their content determines the format.
const (
	PDF      Kind = "pdf"
	Zip      Kind = "zip"
	OLE      Kind = "ole"
	RTF      Kind = "rtf"
	Mail     Kind = "eml"
	Mailbox  Kind = "mbox"
	HTML     Kind = "html"
	Notebook Kind = "ipynb"
	// SpreadsheetXML is a workbook of Excel 2003 in a single XML file.
	SpreadsheetXML Kind = "spreadsheetml"
)

// Options configure where caches are and how slow work is reported.
type Options struct {
	// CacheDir is the folder of compiled code, or empty for none. The value in a process's first
	// call applies to all calls.
	CacheDir string
	// TextDir is the folder of the texts of documents that took long to convert, or empty for none.
	TextDir string
	// Bounds limit the cost of a document.
	Bounds rustmodule.Bounds
	// Progress, if set, is called before work that takes seconds.
	Progress func(what string)
}

// These bounds apply to one conversion. Work and time suit a large document, and grow with the
// document's size.
const (
	baseTime    = 2 * time.Minute
	timePerMiB  = 5 * time.Second
	baseFuel    = 20_000_000_000
	fuelPerByte = 1_000
	maxAnswer   = 64 << 20
)

// worthCaching is the shortest duration of a conversion whose text is cached.
const worthCaching = 50 * time.Millisecond

var engine = rustmodule.Engine{Files: files, Name: "the reader of documents"}

// Convert writes the text of a document, in Markdown and UTF-8. The error is a [ProblemError] for a
// document without text, and a [rustmodule.LimitError] or [rustmodule.ErrTooDeep] for one that
// exceeds a bound.
func Convert(
	ctx context.Context, o Options, kind Kind, document *io.SectionReader, text io.Writer,
) (*Description, error) {
	path, err := cacheFile(ctx, o, kind, document)
	if err != nil {
		return nil, err
	}
	if about, err := fetch(path, text); about != nil || err != nil {
		return about, err
	}
	if _, err := document.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}

	begun := time.Now()
	w := &writer{text: text}
	size := document.Size()
	answer, err := engine.Call(ctx, rustmodule.Start{CacheDir: o.CacheDir, Progress: o.Progress}, rustmodule.Job{
		Request:   encode(size, o.Bounds.Unpacked(size), kind),
		Input:     document,
		Output:    w,
		Timeout:   baseTime + timePerMiB*time.Duration(size>>20),
		Memory:    o.Bounds.Memory(size),
		Fuel:      baseFuel + fuelPerByte*uint64(size),
		MaxAnswer: maxAnswer,
	})
	if _, ok := errors.AsType[*rustmodule.FailureError](err); ok {
		return nil, &ProblemError{Kind: Damaged, Detail: "its parser failed"}
	}
	if err != nil {
		return nil, err
	}

	about, err := decode(answer, w.count)
	if err == nil && path != "" && time.Since(begun) > worthCaching && w.count <= maxCached {
		_ = store(path, answer, w.copy.Bytes()) // otherwise it is converted again
	}
	return about, err
}

// encode encodes a request for a document of a given size, of which the given number of bytes may
// be unpacked.
func encode(size, unpacked int64, kind Kind) []byte {
	request := binary.LittleEndian.AppendUint64(nil, uint64(size))
	return append(binary.LittleEndian.AppendUint64(request, uint64(unpacked)), kind...)
}

// writer counts the bytes of a text, and keeps a copy of a short one.
type writer struct {
	text  io.Writer
	count int64
	copy  bytes.Buffer
}

// Write implements io.Writer.
func (w *writer) Write(p []byte) (int, error) {
	n, err := w.text.Write(p)
	if w.count += int64(n); w.count <= maxCached {
		w.copy.Write(p[:n])
	}
	return n, err
}
