package wasm

import (
	"bytes"
	"os"
)

// span is a run of bytes [start, end).
type span struct{ Start, End uint64 }

// linearMemory is a guest's memory, for its machine and for checkpoints.
type linearMemory interface {
	// Reallocate changes the size to at least size bytes, or returns nil beyond the limit. Free
	// frees the memory. Engines call both.
	Reallocate(size uint64) []byte
	Free()
	// bytes returns the mapped memory, used or not. Unused parts may fault.
	bytes() []byte
	// dirty lists the parts that may differ from the image.
	dirty() []span
	// addText adds a text, which does not count towards the limit, to the memory.
	addText(text span) error
	// mapText shows the first size bytes of a file at the beginning of such a text. The rest
	// is zeros.
	mapText(text span, file *os.File, size int64) error
	// own returns the number of bytes in use, without texts.
	own() uint64
	// reset restores the image's bytes, or returns false if the memory has grown.
	reset(watch *memoryWatch) bool
	// prefault prepares the pages that every snippet writes.
	prefault()
	// expect prepares the memory to grow by the given number of bytes, until end is called.
	expect(bytes uint64) (end func())
}

// memoryWatch records the growth of a sandbox's memory.
type memoryWatch struct {
	peak    uint64
	refused bool
}

var zeroPage [pageSize]byte

func isZero(page []byte) bool { return bytes.Equal(page, zeroPage[:len(page)]) }

// dirtyRuns lists the runs of nonzero pages in data.
func dirtyRuns(data []byte) []span {
	var runs []span
	for at := uint64(0); at < uint64(len(data)); at += pageSize {
		if !isZero(data[at:min(at+pageSize, uint64(len(data)))]) {
			runs = appendPage(runs, at)
		}
	}
	return runs
}

// appendPage adds the page at offset at, joining it to the last run if possible.
func appendPage(runs []span, at uint64) []span {
	if n := len(runs); n > 0 && runs[n-1].End == at {
		runs[n-1].End += pageSize
		return runs
	}
	return append(runs, span{at, at + pageSize})
}

// length returns the number of bytes in runs.
func length(runs []span) (n uint64) {
	for _, run := range runs {
		n += run.End - run.Start
	}
	return n
}

// pack copies the runs of memory, one after another.
func pack(into, memory []byte, runs []span) {
	for _, run := range runs {
		n := copy(into, memory[run.Start:run.End])
		into = into[n:]
	}
}

// unpack undoes pack.
func unpack(memory, from []byte, runs []span) {
	for _, run := range runs {
		n := copy(memory[run.Start:run.End], from)
		from = from[n:]
	}
}
