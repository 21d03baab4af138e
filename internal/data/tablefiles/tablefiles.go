package tablefiles

import (
	"context"
	_ "embed" // the module
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/internal/machine/rustmodule"
)

// `make tables` builds the module. The manifest describes it.

//go:embed engine/engine.wasm.zst
var codeFile []byte

//go:embed engine/data.zst
var dataFile []byte

//go:embed engine/manifest.json
var manifestFile []byte

var files = rustmodule.Link(rustmodule.Files{Manifest: manifestFile, Code: codeFile, Data: dataFile})

var engine = rustmodule.Engine{Files: files, Name: "the reader of tables"}

// Kind is the format of a file.
type Kind string

// These are the kinds. A Workbook is a spreadsheet of Excel or OpenDocument, of any version;
// Feather files are Arrow files, too.
const (
	Parquet  Kind = "parquet"
	Arrow    Kind = "arrow"
	Workbook Kind = "workbook"
	// SpreadsheetXML is a workbook of Excel 2003 in a single XML file.
	SpreadsheetXML Kind = "spreadsheetml"
)

// These are the operations of the module.
const (
	opList = iota
	opRows
)

// These bounds apply to one call. Work and time grow with the file's size; a small Parquet file may
// represent very many rows.
const (
	baseTime    = 2 * time.Minute
	timePerMiB  = 5 * time.Second
	baseFuel    = 20_000_000_000
	fuelPerByte = 10_000
	maxAnswer   = 64 << 20
)

// ErrUnreadable reports a file whose tables cannot be read.
var ErrUnreadable = errors.New("its tables cannot be read")

// Options configure how files are read.
type Options struct {
	rustmodule.Start
	// Bounds limit the cost of a file.
	Bounds rustmodule.Bounds
}

// List returns the tables in a file: their names, columns and, for Parquet, numbers of rows. The
// error is [ErrUnreadable] for a file that cannot be read, or that exceeds a bound.
func List(ctx context.Context, o Options, kind Kind, file *io.SectionReader) ([]bigtext.Table, error) {
	answer, err := call(ctx, o, opList, kind, 0, file, io.Discard)
	if err != nil {
		return nil, err
	}
	return decode(answer)
}

// Rows writes the rows of the table with the given number, as JSON objects, one per line. Each has
// all columns that List returns.
func Rows(
	ctx context.Context, o Options, kind Kind, number int, file *io.SectionReader, lines io.Writer,
) error {
	answer, err := call(ctx, o, opRows, kind, number, file, lines)
	if err != nil {
		return err
	}
	return decodeEmpty(answer)
}

func call(
	ctx context.Context, o Options, operation uint32, kind Kind, number int,
	file *io.SectionReader, out io.Writer,
) ([]byte, error) {
	size := file.Size()
	request := binary.LittleEndian.AppendUint64(nil, uint64(size))
	request = binary.LittleEndian.AppendUint32(request, uint32(number))
	answer, err := engine.Call(ctx, o.Start, rustmodule.Job{
		Operation: operation,
		Request:   append(request, kind...),
		Input:     file,
		Output:    out,
		Timeout:   baseTime + timePerMiB*time.Duration(size>>20),
		Memory:    o.Bounds.Memory(size),
		Fuel:      baseFuel + fuelPerByte*uint64(size),
		MaxAnswer: maxAnswer,
	})

	_, hasFailed := errors.AsType[*rustmodule.FailureError](err)
	_, isLimit := errors.AsType[*rustmodule.LimitError](err)
	switch {
	case hasFailed:
		return nil, fmt.Errorf("%w: its parser failed", ErrUnreadable)
	case isLimit, errors.Is(err, rustmodule.ErrTooDeep):
		return nil, fmt.Errorf("%w: %w", ErrUnreadable, err)
	}
	return answer, err
}
