package tables

import (
	"bytes"
	"fmt"
)

// The bounds of a batch are in bytes of text.
const (
	batchSize = 256 << 10
	// maxRow is the longest row, in bytes, that the host decodes.
	maxRow = 8 << 20
	// maxLine is the longest line, in bytes, that the guest decodes.
	maxLine = 64 << 20
)

// Batch is a list of five items for the guest, in the format of marshal.
//
//   - the rows;
//   - the number of the next line;
//   - the text that the host has left to the guest, or None;
//   - whether the next row is too long for a batch;
//   - the offset at which the rest begins.
type Batch struct {
	// Next is the offset of the rest, in bytes, and Line the number of its line.
	Next int
	Line int64
	// Stuck reports that the next row is too long for a batch.
	Stuck bool

	writer
	whole, list int // positions of the two lists
	seen        *repeats
	era         uint32 // of the strings in seen: earlier output may have been cut off
}

// begin starts the list of rows, with capacity for room bytes.
func (b *Batch) begin(room int) {
	b.out = make([]byte, 0, room)
	b.whole = b.beginList()
	b.list = b.beginList()
}

// Encode completes the batch and returns it in the format of marshal. Next is the offset of the
// first row that is not in it, in characters.
func (b *Batch) Encode(next int64) []byte {
	b.bool(b.Stuck)
	b.int(next)
	b.endList(b.whole, 5)
	return b.out
}

// JSONLines decodes the next lines of data, which begin at the byte from. The guest must decode
// some of the lines; for each of these, it receives a list of the row's index, the line's number,
// and the line itself. Lines of white space are not rows. The first line has the number line.
func JSONLines(data []byte, from int, line int64) (*Batch, error) {
	d := &jsonDecoder{keys: map[string]int{}}
	d.begin(2 * batchSize)
	var odd []oddLine
	rows, at := 0, from

	for at < len(data) && at-from < batchSize {
		end := min(len(data), at+maxLine+1)
		switch i := bytes.IndexByte(data[at:end], '\n'); {
		case i >= 0:
			end = at + i
		case end < len(data): // returned before the end of the line is found
			return nil, fmt.Errorf("line %d has more than the %d bytes that a row may have: use "+
				"context.lines()", line, maxLine)
		}
		text := data[at:end]
		if at == 0 {
			text = bytes.TrimPrefix(text, byteOrderMark)
		}
		text = bytes.Trim(text, " \t\r")

		switch {
		case len(text) == 0:
			rows-- // not a row
		case len(text) > maxRow || !d.decode(text):
			odd = append(odd, oddLine{rows, line, text})
			d.mark(typeNone)
		}
		rows, at, line = rows+1, end+1, line+1
	}

	d.endList(d.list, rows)
	d.int(line)
	d.writeOdd(odd)
	d.Next, d.Line = min(at, len(data)), line
	return &d.Batch, nil
}

var byteOrderMark = []byte("\uFEFF")

// oddLine is a line for the guest to decode.
type oddLine struct {
	row  int
	line int64
	text []byte
}

func (w *writer) writeOdd(odd []oddLine) {
	list := w.beginList()
	for _, o := range odd {
		one := w.beginList()
		w.int(int64(o.row))
		w.int(o.line)
		w.text(o.text, 0)
		w.endList(one, 3)
	}
	w.endList(list, len(odd))
}
