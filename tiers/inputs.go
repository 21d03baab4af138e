package tiers

import (
	"io"
	"io/fs"
)

// Text is a text of any size, as bytes that are usually UTF-8. It must not change while in use, and
// its methods may be called concurrently. [*strings.Reader] and [*io.SectionReader] implement it.
//
// A Text that is mapped from a host file also has the method File() *os.File, so that a tier can
// show the file to its guest instead of copying it. A Text may have the method Name() string;
// the extension of the name indicates the format.
type Text interface {
	io.ReaderAt
	// Size returns the number of bytes.
	Size() int64
}

// Dir is a directory of texts. Its methods may be called concurrently.
type Dir interface {
	// Names returns the paths of the texts: relative, with slashes, sorted. Do not modify the
	// slice.
	Names() []string
	// Size returns the number of bytes in one of Names.
	Size(name string) (int64, error)
	// Open opens one of Names for reading.
	Open(name string) (fs.File, error)
}
