package tables

// maxBatch bounds a batch of rows, in bytes. With many names, a short row becomes a long one.
const maxBatch = 4 << 20

// CSVRows reads the next rows of data, which begin at the byte from, in the line numbered line.
// With names, a row is a dict as made by csv.DictReader; otherwise it is a list. It reads up to
// most rows. The guest receives the number of the last line of each row, unless each row is one
// line.
func CSVRows(data []byte, from int, line int64, d Dialect, names [][]byte, most int) *Batch {
	r := &rowReader{Dialect: d, data: data, at: from, line: line}
	w := &rowWriter{names: names}
	w.begin(2 * batchSize)
	var ends []int64
	rows, isSimple := 0, true

	for rows < most && r.at-from < batchSize && len(w.out) < maxBatch {
		isRow, err := r.next()
		if w.Stuck = err != nil; w.Stuck || !isRow {
			break
		}
		if len(r.fields) == 0 && names != nil {
			continue // like csv.DictReader
		}

		w.row(r.fields)
		rows++
		ends = append(ends, r.line-1)
		isSimple = isSimple && r.line == line+int64(rows)
	}

	w.endList(w.list, rows)
	w.int(r.line)
	w.lines(ends, isSimple)
	w.Next, w.Line = r.at, r.line
	return &w.Batch
}

// rowWriter writes CSV rows.
type rowWriter struct {
	Batch

	names [][]byte // nil for rows that are lists
	keys  []uint32 // references to the names already written
}

func (w *rowWriter) row(fields [][]byte) {
	if w.names == nil {
		w.fields(fields)
		return
	}

	w.mark(typeDict)
	for i, name := range w.names {
		if i < len(w.keys) {
			w.ref(w.keys[i])
		} else {
			w.keys = append(w.keys, w.shared(name))
		}
		if i < len(fields) {
			w.value(fields[i])
		} else {
			w.mark(typeNone)
		}
	}

	if len(fields) > len(w.names) {
		w.mark(typeNone)
		w.fields(fields[len(w.names):])
	}
	w.mark(typeEnd)
}

func (w *rowWriter) fields(fields [][]byte) {
	list := w.beginList()
	for _, field := range fields {
		w.value(field)
	}
	w.endList(list, len(fields))
}

func (w *rowWriter) lines(ends []int64, isSimple bool) {
	if isSimple {
		w.mark(typeNone)
		return
	}

	list := w.beginList()
	for _, line := range ends {
		w.int(line)
	}
	w.endList(list, len(ends))
}
