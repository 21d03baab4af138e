package tables

import "bytes"

// Lines reads the next lines of data, which begin at the byte from, in the line numbered line. A
// line ends with \n or \r\n, which is not part of the result. The guest handles lines that are too
// long for a batch.
func Lines(data []byte, from int, line int64) *Batch {
	b := &Batch{}
	b.begin(batchSize + batchSize/4)
	lines, at := 0, from

	for at < len(data) && at-from < batchSize {
		end := min(len(data), at+maxRow+1)
		text, next := data[at:end], end
		if i := bytes.IndexByte(text, '\n'); i >= 0 {
			text, next = bytes.TrimSuffix(text[:i], []byte{'\r'}), at+i+1
		} else if b.Stuck = end < len(data); b.Stuck {
			break
		}

		b.text(text, 0)
		lines, at = lines+1, next
	}

	b.endList(b.list, lines)
	b.Next, b.Line = at, line+int64(lines)
	b.int(b.Line)
	b.mark(typeNone)
	return b
}
