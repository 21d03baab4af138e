package wasm

import (
	"bytes"
	"context"

	"github.com/tetratelabs/wazero/experimental"
)

// span is a run of bytes [start, end).
type span struct{ Start, End uint64 }

// linearMemory is a guest's memory, as wazero and the checkpoints see it.
type linearMemory interface {
	experimental.LinearMemory
	// bytes is all of the memory that is mapped, used or not.
	bytes() []byte
	// dirty lists what may differ from the image.
	dirty() []span
	// reset makes memory that has not grown new again, and reports whether it
	// did.
	reset(watch *memoryWatch) bool
	// prefault readies the pages that every snippet writes.
	prefault()
}

// memoryWatch is told what happens to a sandbox's memory.
type memoryWatch struct {
	peak    uint64
	refused bool
}

// allocator hands wazero the memory that was made for an instance. It is made
// before, because wazero has no way to hear of an error.
type allocator struct{ memory linearMemory }

func withAllocator(ctx context.Context, m linearMemory) context.Context {
	return experimental.WithMemoryAllocator(ctx, allocator{m})
}

// Allocate is called by wazero once, during instantiation.
func (a allocator) Allocate(_, _ uint64) experimental.LinearMemory { return a.memory }

var zeroPage [pageSize]byte

func isZero(page []byte) bool { return bytes.Equal(page, zeroPage[:len(page)]) }

// dirtyRuns lists the runs of pages of data that are not zero.
func dirtyRuns(data []byte) []span {
	var runs []span
	for at := uint64(0); at < uint64(len(data)); at += pageSize {
		if !isZero(data[at:min(at+pageSize, uint64(len(data)))]) {
			runs = appendPage(runs, at)
		}
	}
	return runs
}

// appendPage adds the page at offset at, joining it to the last run if it can.
func appendPage(runs []span, at uint64) []span {
	if n := len(runs); n > 0 && runs[n-1].End == at {
		runs[n-1].End += pageSize
		return runs
	}
	return append(runs, span{at, at + pageSize})
}
