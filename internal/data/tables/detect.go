package tables

import (
	"bytes"
	"slices"

	"github.com/rlmhq/rlm/internal/text/lazyregexp"
)

// These bounds apply to the names in a text whose file name does not mark it as CSV.
const (
	longName  = 64 // bytes
	mostWords = 6
	fewRows   = 3 // for tables of at least three columns
	someRows  = 5 // for tables of two columns

	searchedRows = 20 // for typed values
)

// IsCSV reports whether the beginning of a text is CSV beyond doubt: all of its rows have the same
// number of fields, the first row has short names, and rows with commas have typed values. isCut
// reports whether the text continues.
func IsCSV(data []byte, isCut bool) bool {
	if isCut {
		data = data[:1+bytes.LastIndexAny(data, "\r\n")]
	}
	data = bytes.TrimPrefix(data, byteOrderMark)
	f := &finder{data: data, line: 1}
	f.takeSeparator()
	isTold := f.Delimiter != 0
	s := f.look(f.chooseDialect())

	least := fewRows
	switch s.mode {
	case 0, 1:
		return false
	case 2:
		least = someRows
	}
	if isTold {
		least = 1
	}
	if s.torn > 0 || s.isOpen || s.same < len(s.counts) || s.same < least {
		return false
	}
	r := f.newReader(s.Dialect)
	if !r.next() || !areNames(r.fields) || stamp.Match(data) {
		return false
	}
	return isTold || s.Delimiter != ',' || hasTyped(r)
}

// hasTyped reports whether one of the next rows has a number or another typed value. Words between
// commas may be prose.
func hasTyped(r *sampleReader) bool {
	for range searchedRows {
		if !r.next() {
			return false
		}
		if slices.ContainsFunc(r.fields, looksTyped) {
			return true
		}
	}
	return false
}

// stamp matches the time at the beginning of a log, whose milliseconds follow a comma.
var stamp = lazyregexp.New(`^[^,\n]*\d:\d\d:\d\d,\d{3}\b`)

// areNames reports whether fields may be the names of columns, or the short values of a row.
func areNames(fields [][]byte) bool {
	seen := map[string]bool{}
	for _, field := range fields {
		isShort := len(field) <= longName && len(bytes.Fields(field)) <= mostWords
		isEmpty := len(bytes.TrimSpace(field)) == 0
		if isEmpty || !isShort || seen[string(field)] && !looksTyped(field) {
			return false
		}
		seen[string(field)] = true
	}
	return !slices.ContainsFunc(fields, func(b []byte) bool { return bytes.ContainsAny(b, "{}<>") })
}
