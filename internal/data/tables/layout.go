package tables

import (
	"bytes"
	"errors"
	"fmt"
)

// Layout is the table layout of a CSV text.
type Layout struct {
	Dialect
	// Columns are the names of the first row. They are unique and not empty.
	Columns [][]byte
	// First is the offset of the first row of data, in bytes, and Line the number of its line.
	First int
	Line  int64
}

// The sample from which the delimiter is chosen.
const (
	sampleSize = 64 << 10 // bytes
	sampleRows = 50
)

// FindLayout reads the first row of a CSV text that begins at the byte from. A byte order mark is
// not part of the first name. FindLayout chooses the delimiter, unless one is given.
func FindLayout(data []byte, from int, delimiter byte) (Layout, error) {
	if from == 0 && bytes.HasPrefix(data, byteOrderMark) {
		from = len(byteOrderMark)
	}
	if delimiter == 0 {
		delimiter = chooseDelimiter(data[from:])
	}
	dialect := Dialect{delimiter, '"', maxRow}
	if err := dialect.Check(); err != nil {
		return Layout{}, err
	}

	r := &rowReader{Dialect: dialect, data: data, at: from, line: 1}
	for {
		isRow, err := r.next()
		switch {
		case err != nil:
			return Layout{}, fmt.Errorf("the first row has more than %d bytes or %d columns", maxRow, MaxFields)
		case !isRow:
			return Layout{}, errors.New("the table has no rows, so its columns have no names")
		case r.at-from > maxRow:
			return Layout{}, fmt.Errorf("the table begins with more than %d bytes of blank lines", maxRow)
		case len(r.fields) > 0:
			return Layout{r.Dialect, nameColumns(r.fields), r.at, r.line}, nil
		}
	}
}

// chooseDelimiter returns the delimiter with which most rows of the beginning have as many fields
// as the first one, and at least two.
func chooseDelimiter(data []byte) byte {
	sample := data[:min(len(data), sampleSize)]
	best, bestShare := byte(','), 0.0
	for _, delimiter := range []byte(",\t;|") {
		r := &rowReader{Dialect: Dialect{delimiter, '"', maxRow}, data: sample}
		first, rows, same := 0, 0, 0

		for rows < sampleRows {
			if isRow, err := r.next(); err != nil || !isRow {
				break
			}
			if r.at == len(sample) && len(sample) < len(data) && rows > 0 {
				break // the row may be cut
			}
			switch n := len(r.fields); {
			case n == 0:
				continue
			case rows == 0:
				first = n
			}
			rows++
			if len(r.fields) == first {
				same++
			}
		}

		if share := float64(same) / float64(max(1, rows)); first > 1 && share > bestShare {
			best, bestShare = delimiter, share
		}
	}
	return best
}

// nameColumns makes names unique: a repeated name is numbered, and a missing name is made from the
// position.
func nameColumns(fields [][]byte) [][]byte {
	names := make([][]byte, len(fields))
	taken := make(map[string]bool, len(fields))
	for _, field := range fields {
		taken[string(field)] = true
	}

	given, count := make(map[string]bool, len(fields)), make(map[string]int)
	for i, field := range fields {
		name := string(field)
		if name == "" {
			name = fmt.Sprintf("column_%d", i+1)
		}
		for base := name; given[name] || name != string(field) && taken[name]; {
			count[base]++
			name = fmt.Sprintf("%s_%d", base, count[base]+1)
		}

		given[name] = true
		names[i] = []byte(name)
	}
	return names
}

// Encode returns the layout for a guest, in the format of marshal: the delimiter, the names, the
// number of the line and, in the guest's units, the offset of the first row of data.
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
	w.endList(whole, 4)
	return w.out
}
