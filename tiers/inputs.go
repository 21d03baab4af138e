package tiers

import (
	"io"
	"io/fs"
)

// Text is a text of any size, in bytes that are usually UTF-8. It does not change while
// it is used, and its methods may be called concurrently. [*strings.Reader] and
// [*io.SectionReader] are texts.
//
// A Text that is mapped from a file of the host also has the method File() *os.File, so
// that a tier can show the file to its guest instead of copying it. A Text may have the
// method Name() string, whose extension says what the text is.
type Text interface {
	io.ReaderAt
	// Size is the number of bytes.
	Size() int64
}

// Dir is a directory of texts. Its methods may be called concurrently.
type Dir interface {
	// Names returns the paths of the texts, relative, with slashes, sorted. Do not
	// write to the slice.
	Names() []string
	// Size is the number of bytes of one of Names.
	Size(name string) (int64, error)
	// Open opens one of Names for reading.
	Open(name string) (fs.File, error)
}
