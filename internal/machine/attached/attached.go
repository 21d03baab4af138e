// Package attached reads parts that were appended to this program's own file after it was built.
// Each part begins at a page, so it can be mapped directly. A program without parts, such as one
// built by `go install`, prepares their contents itself.
package attached

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"sync"
)

// PageSize divides the offset of each part. It is in bytes.
const PageSize = 4096

// The file ends with the table of its parts in JSON, the length of the table, and the magic number.
const (
	magic       = "rlm parts 1\n"
	trailerSize = 4 + len(magic)
	maxTable    = 1 << 20
)

// Part is a part of a program's file.
type Part struct {
	Name string
	// Offset and Size are the part's position in the file, in bytes.
	Offset, Size int64
	// About is the writer's description of the part.
	About json.RawMessage
}

// Find opens the program's file if it contains a part with that name, and decodes the part's
// description into about. The caller closes the file.
func Find(name string, about any) (*os.File, Part, error) {
	where := own()
	for _, part := range where.parts {
		if part.Name != name {
			continue
		}
		if err := json.Unmarshal(part.About, about); err != nil {
			return nil, part, fmt.Errorf("%w: %w", errTable, err)
		}
		file, err := where.open()
		return file, part, err
	}
	return nil, Part{}, fs.ErrNotExist
}

// Has reports whether the program's file contains a part with that name.
func Has(name string) bool {
	return slices.ContainsFunc(own().parts, func(p Part) bool { return p.Name == name })
}

// ownPath names the file of this process, even if the file has been moved.
const ownPath = "/proc/self/exe"

// source is a file with parts.
type source struct {
	parts []Part
	open  func() (*os.File, error)
}

// own returns this program, or the file set by Use.
func own() source {
	if given.open != nil {
		return given
	}
	return program()
}

// program returns this program, without parts if none were appended or they are unreadable.
var program = sync.OnceValue(func() source {
	own := source{open: func() (*os.File, error) { return os.Open(ownPath) }}
	file, err := own.open()
	if err != nil {
		return own
	}
	defer file.Close()

	own.parts, _ = Read(file)

	return own
})

// given is the file set by Use.
var given source

// Use reads the parts from a file instead of the program's own. It is for a process that cannot
// open its own file. Call it before anything looks for a part. The function open returns additional
// descriptors of the file.
func Use(file *os.File, open func() (*os.File, error)) (err error) {
	given = source{open: open}

	given.parts, err = Read(file)
	return err
}

var errTable = errors.New("the table of the attached parts is damaged")

// Read reads the table of a file's parts. A file without a table has no parts.
func Read(file *os.File) ([]Part, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	trailer := make([]byte, trailerSize)
	at := info.Size() - int64(trailerSize)
	if at < 0 {
		return nil, nil
	}
	if _, err := file.ReadAt(trailer, at); err != nil {
		return nil, err
	}
	if string(trailer[4:]) != magic {
		return nil, nil
	}

	size := int64(binary.LittleEndian.Uint32(trailer))
	if size > min(maxTable, at) {
		return nil, errTable
	}
	table := make([]byte, size)
	if _, err := file.ReadAt(table, at-size); err != nil {
		return nil, err
	}
	var parts []Part
	if err := json.Unmarshal(table, &parts); err != nil {
		return nil, fmt.Errorf("%w: %w", errTable, err)
	}
	end := int64(0)
	for _, part := range parts {
		if part.Offset < end || part.Offset%PageSize != 0 || part.Size < 0 || part.Size > at-size-part.Offset {
			return nil, errTable
		}
		end = part.Offset + part.Size
	}
	return parts, nil
}

// These are the names of rlm's parts.
const (
	CodePart  = "code"  // the machine code of package cpython
	ImagePart = "image" // the prepared image of tier wasm
)

// Code describes the machine code. SHA256 is the hash of the blob, Header is its header.
type Code struct {
	SHA256 string
	Header json.RawMessage
}

// Image describes the prepared image, without the zeros before Start. Key and Cached are defined by
// tier wasm.
type Image struct {
	Key    string
	Start  uint64
	Cached json.RawMessage
}

// New is a part to write.
type New struct {
	Name  string
	About any
	Data  []byte
}

// Write copies a program, without its parts, and appends new parts.
func Write(to io.Writer, program *os.File, parts ...New) error {
	end, err := sizeAlone(program)
	if err != nil {
		return err
	}
	if _, err := io.Copy(to, io.NewSectionReader(program, 0, end)); err != nil {
		return err
	}

	table := make([]Part, len(parts))
	for i, part := range parts {
		padding := -end & (PageSize - 1)
		table[i] = Part{Name: part.Name, Offset: end + padding, Size: int64(len(part.Data))}
		if table[i].About, err = json.Marshal(part.About); err != nil {
			return err
		}
		for _, data := range [][]byte{make([]byte, padding), part.Data} {
			if _, err := to.Write(data); err != nil {
				return err
			}
		}
		end = table[i].Offset + table[i].Size
	}

	encoded, err := json.Marshal(table)
	if err != nil {
		return err
	}
	if len(encoded) > maxTable {
		return errors.New("the table of the attached parts is too long")
	}
	_, err = to.Write(append(binary.LittleEndian.AppendUint32(encoded, uint32(len(encoded))), magic...))
	return err
}

// sizeAlone returns the size of a program in bytes without its parts, and without the padding
// before them if its size is known.
func sizeAlone(program *os.File) (int64, error) {
	parts, err := Read(program)
	if err != nil {
		return 0, err
	}
	if len(parts) > 0 {
		return parts[0].Offset, nil
	}

	info, err := program.Stat()
	if err != nil {
		return 0, err
	}
	return info.Size(), nil
}
