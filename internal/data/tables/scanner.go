package tables

import (
	"bytes"
	"errors"
	"fmt"
	"io"
)

// Scanner reads the rows of a text of any size from the beginning, in constant memory. Its results
// are valid until the next call.
type Scanner struct {
	source io.ReaderAt
	size   int64

	rows rowReader // over the bytes of the text in memory
	at   int64     // offset of these bytes
	buf  []byte
}

// scanSize is the number of bytes that a Scanner reads in one step.
const scanSize = 256 << 10

// NewScanner returns a scanner of a text of size bytes. Its first row begins at the byte from, in
// the line numbered line.
func NewScanner(source io.ReaderAt, size, from, line int64, d Dialect) *Scanner {
	return &Scanner{source: source, size: size, at: from, rows: rowReader{Dialect: d, line: line}}
}

// Line returns the number of the line in which the next row begins.
func (s *Scanner) Line() int64 { return s.rows.line }

// Offset returns the byte offset at which the next row begins.
func (s *Scanner) Offset() int64 { return s.at + int64(s.rows.at) }

// Restart continues with the row that begins at the byte from, in the line numbered line.
func (s *Scanner) Restart(from, line int64) {
	s.at, s.rows.line = from, line
	s.rows.data, s.rows.at = nil, 0
}

// NextFields reads the next CSV row that is not a blank line. It returns io.EOF after the last one.
func (s *Scanner) NextFields() ([][]byte, error) {
	for {
		before, line := s.rows.at, s.rows.line
		isRow, err := s.rows.next()
		if isLast := s.at+int64(len(s.rows.data)) == s.size; !isLast &&
			(err != nil || !isRow || s.rows.at == len(s.rows.data)) {
			s.rows.at, s.rows.line = before, line // the row may continue
			if len(s.rows.data)-before > maxRow {
				return nil, s.tooLong()
			}
			if err := s.readMore(); err != nil {
				return nil, err
			}
			continue
		}

		switch {
		case err != nil:
			return nil, s.tooLong()
		case !isRow:
			return nil, io.EOF
		case s.rows.open > 0:
			return nil, unclosed(s.rows.open)
		case s.rows.isEscaped:
			return nil, fmt.Errorf("line %d has a quote after a backslash within a quoted field: if the backslash "+
				`escapes it, set the option escape=\`, line)
		case len(s.rows.fields) > 0:
			return s.rows.fields, nil
		}
	}
}

// unclosed returns the error for a quote that makes all further rows part of its field.
func unclosed(line int64) error {
	return fmt.Errorf("the quote in line %d never ends, so that all further lines are one field: "+
		"close it, or double each quote within a quoted field", line)
}

// NextLine reads the next line that is not only white space. It returns io.EOF after the last one.
func (s *Scanner) NextLine() ([]byte, error) {
	for {
		rest := s.rows.data[s.rows.at:]
		i := bytes.IndexByte(rest, '\n')
		isLast := s.at+int64(len(s.rows.data)) == s.size
		switch {
		case i < 0 && !isLast && len(rest) > maxRow:
			return nil, s.tooLong()
		case i < 0 && !isLast:
			if err := s.readMore(); err != nil {
				return nil, err
			}
			continue
		case i < 0 && len(rest) == 0:
			return nil, io.EOF
		case i < 0:
			i = len(rest)
		}

		line := rest[:i]
		if s.Offset() == 0 {
			line = bytes.TrimPrefix(line, byteOrderMark)
		}
		s.rows.at = min(s.rows.at+i+1, len(s.rows.data))
		s.rows.line++
		if line = bytes.Trim(line, " \t\r"); len(line) > 0 {
			return line, nil
		}
	}
}

func (s *Scanner) tooLong() error {
	return fmt.Errorf("the row in line %d has more than %d bytes or %d fields", s.rows.line, maxRow, MaxFields)
}

// readMore keeps the bytes of the next row that are in memory, and reads more.
func (s *Scanner) readMore() error {
	rest := s.rows.data[s.rows.at:]
	s.at += int64(s.rows.at)

	want := int64(max(scanSize, 2*len(rest)))
	want = min(want, s.size-s.at)

	if int64(cap(s.buf)) < want {
		s.buf = append(make([]byte, 0, want), rest...)
	} else {
		s.buf = append(s.buf[:0], rest...)
	}

	s.buf = s.buf[:want]
	n, err := s.source.ReadAt(s.buf[len(rest):], s.at+int64(len(rest)))
	if err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	if n < len(s.buf)-len(rest) {
		return io.ErrUnexpectedEOF
	}
	s.rows.data, s.rows.at = s.buf, 0
	return nil
}
