//go:build unix

package inputs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rlmhq/rlm/internal/bigtext"
)

// readPipe copies what a named pipe, or the pipe of a process substitution, gives. It waits for
// a writer, and ends with ctx.
func (r *reader) readPipe(ctx context.Context, path string) (*bigtext.Text, error) {
	pipe, err := openPipe(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("cannot open the pipe: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = pipe.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()

	text, err := bigtext.Spooled(ctx, path, pipe, r.MaxUnpacked, pipe.Close)
	if ctx.Err() != nil && err != nil {
		return nil, context.Cause(ctx)
	}
	return text, err
}

// openPipe opens a pipe once a writer has it. The end of ctx releases the open by a writer that
// writes nothing.
func openPipe(ctx context.Context, path string) (*os.File, error) {
	type opened struct {
		file *os.File
		err  error
	}
	done := make(chan opened, 1)
	go func() {
		file, err := os.Open(path)
		done <- opened{file, err}
	}()

	select {
	case o := <-done:
		return o.file, o.err
	case <-ctx.Done():
	}

	for {
		if writer, err := os.OpenFile(path, os.O_WRONLY|unix.O_NONBLOCK, 0); err == nil {
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
	}
}
