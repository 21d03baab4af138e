package tables

import (
	"bytes"
	"fmt"
)

// Layout is the table layout of a CSV text.
type Layout struct {
	Dialect
	// Columns are the names of the columns. They are unique, not empty and without NUL.
	Columns [][]byte
	// First is the offset of the first row of data, in bytes, and Line the number of its line.
	First int
	Line  int64
	// Values states how the values are written, as given in the options.
	Values Values
	// Notes are sentences about assumptions, and about anything that a reader may not expect.
	Notes []string
}

// FindLayout detects the layout of the CSV text that begins at the byte from, except for what the
// options specify. A byte order mark is not part of the first name.
func FindLayout(data []byte, from int, o Options) (Layout, error) {
	if err := o.Check(); err != nil {
		return Layout{}, err
	}
	start := from
	if start == 0 && bytes.HasPrefix(data, byteOrderMark) {
		start = len(byteOrderMark)
	}
	f := &finder{Options: o, data: data, at: start, line: 1}
	f.skipLines()
	if !o.HasSkip {
		f.takeSeparator()
	}

	dialect := f.chooseDialect()
	if err := dialect.Check(); err != nil {
		return Layout{}, err
	}
	f.skipPreamble(&dialect)

	return f.readHeader(dialect)
}

// finder finds a layout. Its position is after everything that precedes the table.
type finder struct {
	Options

	data  []byte
	at    int
	line  int64
	notes []string
}

func (f *finder) note(format string, args ...any) {
	f.notes = append(f.notes, fmt.Sprintf(format, args...))
}

// skipLines skips the number of lines that the options specify.
func (f *finder) skipLines() {
	for range f.Skip {
		if f.at == len(f.data) {
			return
		}
		f.skipLine()
	}
}

func (f *finder) skipLine() {
	i := bytes.IndexAny(f.data[f.at:], "\r\n")
	if i < 0 {
		f.at = len(f.data)
	} else {
		f.at = skipLineEnd(f.data, f.at+i)
	}
	f.line++
}

// takeSeparator reads the delimiter from a first line such as sep=; which Excel writes.
func (f *finder) takeSeparator() {
	line := f.data[f.at:min(len(f.data), f.at+16)]
	i := bytes.IndexAny(line, "\r\n")
	if i < 0 {
		return
	}
	line = bytes.Trim(line[:i], `"`)
	if len(line) != len("sep=;") || !bytes.EqualFold(line[:4], []byte("sep=")) {
		return
	}
	if f.Delimiter == 0 {
		f.Delimiter = line[4]
	}
	f.skipLine()
}

// Encode returns the layout for a guest, in the format of marshal: the delimiter, the names, the
// number of the line and, in characters, the offset of the first row of data; then the rest
// of the dialect, see [Dialect.Special]; the strings that represent missing values; the separators
// of fractions and of thousands, or empty strings.
func (l Layout) Encode(first int64) []byte {
	w := &writer{}
	whole := w.beginList()
	w.text([]byte{l.Delimiter}, 0)
	names := w.beginList()
	for _, name := range l.Columns {
		w.text(name, 0)
	}
	w.endList(names, len(l.Columns))
	w.int(l.Line)
	w.int(first)
	w.text(l.Special(), 0)
	nulls := w.beginList()
	for _, null := range l.Values.Nulls {
		w.text([]byte(null), 0)
	}
	w.endList(nulls, len(l.Values.Nulls))
	for _, c := range []byte{l.Values.Decimal, l.Values.Thousands} {
		w.text(bytes.TrimLeft([]byte{c}, "\x00"), 0)
	}
	w.endList(whole, 8)
	return w.out
}
