package tables

import (
	"bytes"
	"errors"
	"fmt"
	"unicode/utf8"
)

// Dialect describes how the rows of a text are written.
type Dialect struct {
	Delimiter, Quote byte // ASCII
	// Escape makes the next quote, or the next Escape, part of a quoted field. 0 is none.
	Escape byte
	// Comment begins lines that are not rows. 0 is none.
	Comment byte
	// SkipSpace drops spaces after a delimiter, and those between a quote and a delimiter.
	SkipSpace bool
	// Limit bounds a field, in characters.
	Limit int
}

// Check returns an error for an impossible dialect.
func (d Dialect) Check() error {
	for _, c := range []byte{d.Delimiter, d.Quote} {
		if c >= utf8.RuneSelf || c == 0 || c == '\r' || c == '\n' {
			return fmt.Errorf("%q cannot separate or quote fields", c)
		}
	}
	if d.Delimiter == d.Quote {
		return fmt.Errorf("%q cannot both separate and quote fields", d.Quote)
	}
	for _, c := range []byte{d.Escape, d.Comment} {
		if c >= utf8.RuneSelf || c == '\r' || c == '\n' || c == ' ' || c == d.Delimiter {
			return fmt.Errorf("%q cannot escape quotes or begin a comment", c)
		}
	}
	return nil
}

// MaxFields is the largest number of fields in a row that the host accepts.
const MaxFields = 100_000

// errLong reports that a row or one of its fields is too long.
var errLong = errors.New("a row is too long")

// rowReader reads rows like CPython's csv.reader over a file opened with newline="".
type rowReader struct {
	Dialect

	data []byte
	at   int   // where the next row begins
	line int64 // the number of its first line

	// open is the number of the line with a quote that never ends, in the last row read, or 0.
	open int64
	// isTorn reports that text follows a closing quote in the last row read. isEscaped reports that
	// a backslash precedes such a quote.
	isTorn, isEscaped bool

	fields [][]byte // the row's fields, valid until the next row is read
	joined []byte   // the bytes of fields that contain a quote
}

// next reads a row and reports whether there was one. A blank line is a row without fields. After
// an error, the position does not change.
func (r *rowReader) next() (isRow bool, err error) {
	if r.at >= len(r.data) {
		return false, nil
	}
	r.fields, r.joined, r.open = r.fields[:0], r.joined[:0], 0
	r.isTorn, r.isEscaped = false, false
	if r.Comment != 0 && r.data[r.at] == r.Comment {
		return true, r.skipComment()
	}
	if isLineEnd(r.data[r.at]) {
		r.at, r.line = skipLineEnd(r.data, r.at), r.line+1
		return true, nil
	}

	end := min(len(r.data), r.at+maxRow)
	lines := int64(1)
	for at := r.at; ; at++ {
		var field []byte
		if r.SkipSpace {
			at = skipSpaces(r.data, at, end)
		}
		if at < end && r.data[at] == r.Quote {
			var more int
			field, at, more = r.readQuoted(at, end)
			if r.open < 0 {
				r.open = r.line + lines - 1
			}
			lines += int64(more)
		} else {
			from := at
			at = r.skipPlain(at, end)
			field = r.data[from:at]
		}

		switch err := r.add(field, at, end); {
		case err != nil:
			return false, err
		case at == len(r.data):
			if isLineEnd(r.data[at-1]) { // within an unclosed quote: no further line begins
				lines--
			}
			r.at, r.line = at, r.line+lines
			return true, nil
		case r.data[at] != r.Delimiter:
			r.at, r.line = skipLineEnd(r.data, at), r.line+lines
			return true, nil
		}
	}
}

// add adds a field to the row. The position of the field's end must be within the bound.
func (r *rowReader) add(field []byte, at, end int) error {
	if at == end && end < len(r.data) || len(r.fields) == MaxFields ||
		len(field) > r.Limit && utf8.RuneCount(field) > r.Limit {
		return errLong
	}
	r.fields = append(r.fields, field)
	return nil
}

// skipPlain returns the position of the next delimiter or line end.
func (r *rowReader) skipPlain(at, end int) int {
	for at < end {
		if c := r.data[at]; c == r.Delimiter || c == '\n' || c == '\r' {
			break
		}
		at++
	}
	return at
}

// skipComment skips the line of a comment, which becomes a row without fields.
func (r *rowReader) skipComment() error {
	at := bytes.IndexAny(r.data[r.at:min(len(r.data), r.at+maxRow)], "\r\n")
	switch {
	case at >= 0:
		r.at = skipLineEnd(r.data, r.at+at)
	case len(r.data)-r.at > maxRow:
		return errLong
	default:
		r.at = len(r.data)
	}
	r.line++
	return nil
}

// skipSpaces returns the position after spaces.
func skipSpaces(data []byte, at, end int) int {
	for at < end && data[at] == ' ' {
		at++
	}
	return at
}

// readQuoted reads a field that begins with a quote. It returns the position after the field, and
// the number of line ends in the field. If the quote is not closed, open becomes negative.
func (r *rowReader) readQuoted(at, end int) (field []byte, next, lines int) {
	from := at + 1
	var joined []byte // the part of the field before from
	for {
		if r.Escape != 0 {
			joined, from = r.joinEscaped(joined, from, end)
		}
		i := bytes.IndexByte(r.data[from:end], r.Quote)
		if i < 0 { // the quote is not closed
			field, next, r.open = r.join(joined, r.data[from:end]), end, -1
			break
		}

		closing := from + i
		next = closing + 1
		if next < end && r.data[next] == r.Quote {
			joined = r.join(joined, r.data[from:next])
			from = next + 1
			continue
		}

		field = r.join(joined, r.data[from:closing])
		if r.SkipSpace {
			next = r.skipTrailing(next, end)
		}
		if rest := r.skipPlain(next, end); rest > next { // more text after the quote
			field, next = r.join(field, r.data[next:rest]), rest
			r.isTorn, r.isEscaped = true, r.isEscaped || r.data[closing-1] == '\\'
		}
		break
	}
	return field, next, countLineEnds(field)
}

// joinEscaped appends the part of a quoted field that ends with the last escaped character before
// the next unescaped quote, without the escapes. An Escape before any other character is part of
// the field.
func (r *rowReader) joinEscaped(joined []byte, from, end int) ([]byte, int) {
	for at := from; at < end && r.data[at] != r.Quote; at++ {
		if r.data[at] != r.Escape || at+1 == end {
			continue
		}
		if c := r.data[at+1]; c == r.Quote || c == r.Escape {
			joined = r.join(r.join(joined, r.data[from:at]), r.data[at+1:at+2])
			from = at + 2
			at++
		}
	}
	return joined, from
}

// skipTrailing returns the position of the delimiter or line end that follows spaces, or its
// argument if other text follows.
func (r *rowReader) skipTrailing(at, end int) int {
	next := skipSpaces(r.data, at, end)
	if next == end || r.data[next] == r.Delimiter || isLineEnd(r.data[next]) {
		return next
	}
	return at
}

// join joins two parts of a field. The first is nil, or the last result of join, or a part of the
// data.
func (r *rowReader) join(first, second []byte) []byte {
	if first == nil {
		return second
	}

	start := len(r.joined)
	if n := len(first); n > 0 && start >= n && &r.joined[start-n] == &first[0] {
		start -= n
	} else {
		r.joined = append(r.joined, first...)
	}
	r.joined = append(r.joined, second...)
	return r.joined[start:]
}

func isLineEnd(c byte) bool { return c == '\n' || c == '\r' }

// skipLineEnd returns the position after the line end at a position.
func skipLineEnd(data []byte, at int) int {
	if data[at] == '\r' && at+1 < len(data) && data[at+1] == '\n' {
		return at + 2
	}
	return at + 1
}

// countLineEnds counts the line ends in a field: \n, \r, and \r\n as one.
func countLineEnds(field []byte) int {
	n := bytes.Count(field, []byte{'\n'})
	if bytes.IndexByte(field, '\r') >= 0 {
		n += bytes.Count(field, []byte{'\r'}) - bytes.Count(field, []byte("\r\n"))
	}
	return n
}
