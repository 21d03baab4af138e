//go:build unix

package openfile

import (
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// withoutWaiting is the flag with which an open does not wait for a writer.
const withoutWaiting = unix.O_NONBLOCK

// Pipe opens a named pipe, or the pipe of a process substitution, once it has a writer. The end of
// the context ends the wait, and each later read.
func Pipe(ctx context.Context, path string) (*os.File, error) {
	type opened struct {
		file *os.File
		err  error
	}
	done := make(chan opened, 1)
	go func() {
		file, err := os.Open(path)
		done <- opened{file, err}
	}()

	for {
		select {
		case o := <-done:
			if o.err == nil {
				endWith(ctx, o.file)
			}
			return o.file, o.err
		case <-ctx.Done():
		}

		// Opening the pipe for writing unblocks an open that has begun.
		writer, err := os.OpenFile(path, os.O_WRONLY|unix.O_NONBLOCK, 0)
		if err == nil {
			_ = writer.Close() // nothing was written
		}
		select {
		case o := <-done:
			if o.file != nil {
				o.err = o.file.Close()
			}
			return nil, errors.Join(context.Cause(ctx), o.err)
		case <-time.After(10 * time.Millisecond):
		}
		if err != nil && !errors.Is(err, unix.ENXIO) {
			return nil, context.Cause(ctx) // the pipe is gone: nothing can unblock the open
		}
	}
}

// endWith ends the reads of a pipe when the context ends.
func endWith(ctx context.Context, pipe *os.File) {
	context.AfterFunc(ctx, func() { _ = pipe.SetReadDeadline(time.Unix(1, 0)) }) // unless it is closed
}
