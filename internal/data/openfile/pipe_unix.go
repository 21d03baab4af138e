//go:build unix

package openfile

import (
	"context"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// withoutWaiting is a flag of opens that do not wait for a writer.
const withoutWaiting = unix.O_NONBLOCK

// Pipe opens a named pipe, or the pipe of a process substitution, once a writer has it. The end of
// the context ends the wait, and each read afterwards.
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

		// A writer that writes nothing releases the open, once that has begun.
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
			return nil, context.Cause(ctx) // the pipe has gone: nothing releases the open any more
		}
	}
}

// endWith ends the reads of a pipe with the context.
func endWith(ctx context.Context, pipe *os.File) {
	context.AfterFunc(ctx, func() { _ = pipe.SetReadDeadline(time.Unix(1, 0)) }) // or it is closed
}
