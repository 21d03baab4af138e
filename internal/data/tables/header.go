package tables

import (
	"bytes"
	"errors"
	"fmt"
	"slices"
)

// maxPreamble bounds the rows before a table.
const maxPreamble = 20

// skipPreamble skips lines before the column names: lines without a delimiter, and lines that a
// blank line separates from a table with more columns.
func (f *finder) skipPreamble(d *Dialect) {
	s := f.look(*d)
	start := slices.Index(s.counts, s.mode)
	isFew := s.same < 2 || s.same*4 < 3*(len(s.counts)-start)
	if f.HasSkip || s.mode < 2 || start < 1 || start > maxPreamble || isFew {
		return
	}

	r := f.newReader(*d)
	var places []int
	var lines []int64
	for range start + 1 {
		before, line := r.at, r.line
		if !r.next() {
			return
		}
		places, lines = append(places, before), append(lines, line)
	}
	isBlank := isLineEnd(r.data[places[start]]) // a blank line before the row with the names
	for _, n := range s.counts[:start] {
		if n > 1 && !isBlank {
			return // a header with fewer names than columns
		}
	}
	f.at, f.line = f.at+places[start], lines[start]
	for isLineEnd(f.data[f.at]) { // the row with the names follows
		f.skipLine()
	}
	f.note("the table begins in line %d: what is before it is not part of it (skip=%d)", f.line, f.line-1)
}

// readHeader reads the names of the columns, or generates names if the text has none.
func (f *finder) readHeader(d Dialect) (Layout, error) {
	r := &rowReader{Dialect: d, data: f.data, at: f.at, line: f.line}
	for {
		before, line := r.at, r.line
		isRow, err := r.next()
		switch {
		case err != nil:
			return Layout{}, fmt.Errorf("the first row has more than %d bytes or %d columns", maxRow, MaxFields)
		case !isRow:
			return Layout{}, errors.New("the table has no rows, so its columns have no names")
		case r.at-f.at > maxRow:
			return Layout{}, fmt.Errorf("the table begins with more than %d bytes of blank lines", maxRow)
		case r.open > 0:
			return Layout{}, unclosed(r.open)
		case len(r.fields) == 0:
			continue
		}

		l := Layout{Dialect: d, First: r.at, Line: r.line, Values: f.Values}
		names := slices.Clone(r.fields)
		if f.hasHeader(d, names) {
			l.Columns = nameColumns(names)
		} else {
			l.Columns = nameColumns(make([][]byte, f.countColumns(d, len(names))))
			l.First, l.Line = before, line
		}
		f.noteWidth(d, len(l.Columns))
		l.Notes = f.notes
		return l, nil
	}
}

// hasHeader reports whether the first row contains the names of the columns.
func (f *finder) hasHeader(d Dialect, first [][]byte) bool {
	if f.Header != HeaderUnknown {
		return f.Header == HeaderFirst
	}

	switch f.judgeHeader(d, first) {
	case isData:
		f.note("the first row has values and no names, so the columns are named column_1 and so on " +
			"(header=true takes the names from it)")
		return false
	case isDoubtful:
		f.note("the first row gives the names of the columns, but it may be a row of values (header=false)")
	case isNames:
	}
	return true
}

// judgement states whether the first row seems to contain names or data.
type judgement int

const (
	isNames judgement = iota
	isDoubtful
	isData
)

// judgeHeader compares the first row with the others. A row of values has only numbers or dates in
// the columns where all other rows have them. Years and steps such as 30, 60, 90 may be names.
func (f *finder) judgeHeader(d Dialect, first [][]byte) judgement {
	if len(bytes.TrimSpace(first[0])) == 0 || !slices.ContainsFunc(first, looksTyped) {
		return isNames
	}

	below := make([]struct{ typed, other bool }, len(first))
	r := f.newReader(d)
	for r.next() {
		for i := range min(len(first), len(r.fields)) {
			if field := bytes.TrimSpace(r.fields[i]); len(field) > 0 && r.rows > 1 {
				below[i].typed = below[i].typed || looksTyped(field)
				below[i].other = below[i].other || !looksTyped(field)
			}
		}
	}

	var numbers [][]byte
	for i, column := range below {
		isTyped := column.typed && !column.other
		switch {
		case isTyped && looksTyped(first[i]):
			numbers = append(numbers, first[i])
		case isTyped && len(bytes.TrimSpace(first[i])) > 0:
			return isNames
		}
	}
	switch {
	case r.rows < 2:
		return isDoubtful
	case len(numbers) == 0:
		return isNames
	case (!looksTyped(first[0]) || areYears(numbers)) && areSteps(numbers):
		return isDoubtful
	}
	return isData
}

// looksTyped reports whether a value is a number or a date.
func looksTyped(field []byte) bool {
	field = bytes.TrimSpace(field)
	if len(field) == 0 || len(field) > 40 {
		return false
	}
	digits := 0
	for _, c := range field {
		switch {
		case '0' <= c && c <= '9':
			digits++
		case bytes.IndexByte([]byte("+-.:/eETZ "), c) < 0:
			return false
		}
	}
	isStart := '0' <= field[0] && field[0] <= '9' ||
		len(field) > 1 && bytes.IndexByte([]byte("+-."), field[0]) >= 0
	return digits > 0 && isStart
}

// areYears reports whether all numbers are years.
func areYears(numbers [][]byte) bool {
	for _, number := range numbers {
		if n, isNumber := smallNumber(number); !isNumber || n < 1900 || n > 2100 {
			return false
		}
	}
	return true
}

// areSteps reports whether numbers grow by the same step, or are years.
func areSteps(numbers [][]byte) bool {
	if areYears(numbers) {
		return true
	}
	var before, step int
	for i, number := range numbers {
		n, isNumber := smallNumber(number)
		switch {
		case !isNumber:
			return false
		case i == 1:
			step = n - before
		case i > 1 && n-before != step:
			return false
		}
		before = n
	}
	return len(numbers) > 1 && step > 0
}

func smallNumber(field []byte) (n int, isNumber bool) {
	field = bytes.TrimSpace(field)
	if len(field) == 0 || len(field) > 9 {
		return 0, false
	}
	for _, c := range field {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = 10*n + int(c-'0')
	}
	return n, true
}

// countColumns returns the largest number of fields in the sample, or least if that is larger.
func (f *finder) countColumns(d Dialect, least int) int {
	for _, n := range f.look(d).counts {
		least = max(least, n)
	}
	return least
}

// noteWidth adds a note about rows of the sample that have more values than there are columns.
func (f *finder) noteWidth(d Dialect, columns int) {
	isFilled := func(field []byte) bool { return len(field) > 0 }
	longer, first := 0, int64(0)
	for r := f.newReader(d); r.next(); {
		if len(r.fields) > columns && slices.ContainsFunc(r.fields[columns:], isFilled) {
			if longer++; longer == 1 {
				first = r.line - 1
			}
		}
	}
	if longer > 0 {
		f.note("%d of the first rows have more values than the header has names (%d), the first in line %d: "+
			"rows have them under the key None, SQL in further columns", longer, columns, first)
	}
}

// nameColumns makes names unique: a repeated name is numbered, and a missing name is made from the
// position. The names contain no NUL, because a NUL separates them when they are sent to a guest.
func nameColumns(fields [][]byte) [][]byte {
	names := make([][]byte, len(fields))
	taken := make(map[string]bool, len(fields))
	fields = slices.Clone(fields)
	for i, field := range fields {
		if bytes.IndexByte(field, 0) >= 0 {
			fields[i] = bytes.ReplaceAll(field, []byte{0}, nil)
		}
		taken[string(fields[i])] = true
	}

	given, count := make(map[string]bool, len(fields)), make(map[string]int)
	for i, field := range fields {
		name := string(field)
		if name == "" {
			name = ColumnName(i)
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

// ColumnName returns the name of a column without one, by its index.
func ColumnName(i int) string { return fmt.Sprintf("column_%d", i+1) }
