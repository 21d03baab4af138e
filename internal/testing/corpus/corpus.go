// Package corpus writes a text in many languages, of any size, for
// demonstrations, benchmarks and tests.
//
// The text is the archive of a fictional library's help desk: records separated by blank lines. The
// first line of a record has five fields separated by " | ", and its body follows on one or more
// lines:
//
//	LIB-000000042 | 2024-03-17 | Lisboa | pt | ERROR
//	Existem 7 reservas para «Sal e cobre» e um só exemplar em toda a região.
//
// The fields are the ticket's number (records count from 1), the date, the
// branch, the language and the severity INFO, WARN or ERROR. The language is a
// code such as "en", or "zxx" for bodies of emoji.
//
// The text depends only on seed and size. It is valid UTF-8 up to its last byte, because the space
// after the last complete record is filled with spaces and a newline.
package corpus

import (
	"bytes"
	"fmt"
	"io"
)

const (
	// blockSize is the size of one write, in bytes.
	blockSize = 1 << 20
	// maxRecord exceeds the size of any record, in bytes, so a block never grows.
	maxRecord = 16 << 10
)

// Write writes exactly size bytes of the text for seed. If progress is not nil, it is called after
// each block with the number of bytes written.
func Write(w io.Writer, size int64, seed uint64, progress func(done int64)) error {
	if size < 0 {
		return fmt.Errorf("cannot write a text of %d bytes", size)
	}
	shared, err := parsed()
	if err != nil {
		return err
	}

	s := &scribe{
		archive: shared,
		dice:    newDice(seed),
		buf:     make([]byte, 0, blockSize+maxRecord),
	}
	for done := int64(0); done < size; {
		block := s.block(size - done)
		if _, err := w.Write(block); err != nil {
			return fmt.Errorf("cannot write the text after %d bytes: %w", done, err)
		}

		done += int64(len(block))
		if progress != nil {
			progress(done)
		}
	}

	return nil
}

// scribe writes one record after another.
type scribe struct {
	*archive
	dice    dice
	buf     []byte
	records int
}

// block returns the next block of at most limit bytes, which is valid until the next call. The last
// block is padded to limit.
func (s *scribe) block(limit int64) []byte {
	s.buf = s.buf[:0]
	for len(s.buf) < blockSize {
		whole := len(s.buf)
		s.record()
		if int64(len(s.buf)) > limit {
			return pad(s.buf[:whole], int(limit))
		}
	}
	return s.buf
}

// pad pads b to size with spaces and one newline.
func pad(b []byte, size int) []byte {
	missing := size - len(b)
	if missing == 0 {
		return b
	}
	b = append(b, bytes.Repeat([]byte{' '}, missing-1)...)
	return append(b, '\n')
}

// record appends one record and the blank line after it.
func (s *scribe) record() {
	l := &s.languages[s.dice.below(len(s.languages))]
	s.records++
	s.header(l)
	which := s.dice.below(len(l.sentences))
	for left := s.dice.between(2, 8); left > 0; left-- {
		s.sentence(l, l.sentences[which])
		which = (which + s.dice.between(1, 3)) % len(l.sentences) // never the same twice in a row

		if left == 1 || s.dice.below(4) == 0 {
			s.add("\n")
		} else {
			s.add(l.join)
		}
	}

	s.add("\n")
}

// header appends the first line of a record.
func (s *scribe) header(l *language) {
	s.add("LIB-")
	s.number(s.records, 9)
	s.add(" | ")
	s.buf = s.dice.appendDate(s.buf)

	for _, field := range []string{s.dice.pick(s.branches), l.code, s.severity()} {
		s.add(" | ")
		s.add(field)
	}

	s.add("\n")
}

// severity returns INFO for about 70 of 100 records, WARN for 22, ERROR for 8.
func (s *scribe) severity() string {
	switch n := s.dice.below(100); {
	case n < 70:
		return "INFO"
	case n < 92:
		return "WARN"
	}
	return "ERROR"
}

// sentence appends a sentence with its slots filled.
func (s *scribe) sentence(l *language, text sentence) {
	for _, p := range text {
		s.add(p.literal)
		if p.fill != nil {
			p.fill(s, l)
		}
	}
}
