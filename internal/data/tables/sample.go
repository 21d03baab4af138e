package tables

import (
	"bytes"
)

// These bounds apply to the sample from which the layout is chosen.
const (
	sampleSize = 64 << 10 // bytes
	sampleRows = 50
)

// newReader returns a reader of the sample.
func (f *finder) newReader(d Dialect) *sampleReader {
	size := min(len(f.data)-f.at, sampleSize)
	if f.hasBackslash() {
		size = min(len(f.data)-f.at, 16*sampleSize)
	}
	sample := f.data[f.at : f.at+size]
	return &sampleReader{
		rowReader: rowReader{Dialect: d, data: sample, line: f.line}, isCut: f.at+size < len(f.data),
		most: max(sampleRows, size/(sampleSize/sampleRows)),
	}
}

// hasBackslash reports whether a backslash precedes a quote in the beginning of the text.
func (f *finder) hasBackslash() bool {
	return bytes.Contains(f.data[f.at:min(len(f.data), f.at+16*sampleSize)], []byte(`\"`))
}

// sampleReader reads the rows of a sample, and omits the last one if it may be cut.
type sampleReader struct {
	rowReader

	isCut bool
	most  int
	rows  int
}

// next returns the next row that is not empty, and reports whether there is one.
func (r *sampleReader) next() bool {
	for r.rows < r.most {
		isRow, err := r.rowReader.next()
		if err != nil || !isRow || r.isCut && r.at == len(r.data) && r.rows > 0 {
			return false
		}
		if len(r.fields) > 0 {
			r.rows++
			return true
		}
	}
	return false
}

// shape describes the rows of the sample, read with a dialect.
type shape struct {
	Dialect

	counts []int // the fields of each row
	mode   int   // the most frequent number of fields
	same   int   // the rows with that number
	torn   int   // rows in which text follows a closing quote
	isOpen bool  // a quote never ends
}

// look reads the sample with a dialect.
func (f *finder) look(d Dialect) shape {
	s, r := shape{Dialect: d}, f.newReader(d)
	numbers := map[int]int{}
	for r.next() {
		n := len(r.fields)
		s.counts = append(s.counts, n)
		if numbers[n]++; numbers[n] > s.same || numbers[n] == s.same && n > s.mode {
			s.mode, s.same = n, numbers[n]
		}
		if r.isTorn {
			s.torn++
		}
		s.isOpen = s.isOpen || r.open > 0 && !r.isCut
	}
	return s
}

// share returns the fraction of the rows that have the most frequent number of fields.
func (s *shape) share() float64 { return float64(s.same) / float64(max(1, len(s.counts))) }

// isBetter reports whether a shape is more likely than another one.
func (s *shape) isBetter(other *shape) bool {
	return s.mode > 1 && (other.mode < 2 || s.share() > other.share())
}
