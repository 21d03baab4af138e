package inputs

import (
	"bufio"
	"context"
	"fmt"
	"io"
)

// newBlockReader returns a reader of r with a buffer of size bytes.
func newBlockReader(r io.Reader, size int) io.Reader { return bufio.NewReaderSize(r, size) }

// readAhead returns a reader of the bytes that a goroutine reads from r in advance, so that
// unpacking and writing run in parallel. Call wait once the reader is no longer used and ctx is
// done.
func readAhead(ctx context.Context, r io.Reader) (ahead io.Reader, wait func()) {
	const blocks, size = 4, 1 << 20
	a := &aheadReader{full: make(chan block, blocks), empty: make(chan []byte, blocks)}

	for range blocks {
		a.empty <- make([]byte, size)
	}

	done := make(chan struct{})
	go func() {
		defer close(done)
		a.fill(ctx, r)
	}()
	return a, func() { <-done }
}

// block is the result of one or more reads.
type block struct {
	data []byte
	err  error
}

type aheadReader struct {
	full  chan block
	empty chan []byte
	now   block
	rest  []byte // the unread bytes of the current block
}

// fill reads blocks until r ends, fails, or ctx ends.
func (a *aheadReader) fill(ctx context.Context, r io.Reader) {
	defer close(a.full)
	for {
		var buffer []byte
		select {
		case buffer = <-a.empty:
		case <-ctx.Done():
			return
		}

		n, err := readBlock(r, buffer[:cap(buffer)])
		select {
		case a.full <- block{buffer[:n], err}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// readBlock fills a buffer with as much as r provides. A decompressor that panics on hostile bytes
// must not end this process.
func readBlock(r io.Reader, buffer []byte) (n int, err error) {
	defer func() {
		if failure := recover(); failure != nil {
			n, err = 0, fmt.Errorf("the decompressor failed: %v", failure)
		}
	}()

	for empty := 0; n < len(buffer) && err == nil; {
		var more int
		more, err = r.Read(buffer[n:])
		n += more
		if empty++; more > 0 {
			empty = 0
		} else if empty > 100 {
			return n, io.ErrNoProgress
		}
	}
	return n, err
}

// Read implements io.Reader.
func (a *aheadReader) Read(p []byte) (int, error) {
	for len(a.rest) == 0 {
		if a.now.err != nil {
			return 0, a.now.err
		}
		if a.now.data != nil {
			a.empty <- a.now.data
		}

		next, ok := <-a.full
		if !ok {
			return 0, context.Canceled
		}
		a.now, a.rest = next, next.data
	}
	n := copy(p, a.rest)
	a.rest = a.rest[n:]
	return n, nil
}
