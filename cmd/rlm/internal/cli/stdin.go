package cli

import (
	"context"
	"fmt"
	"io"
	"os"
	"sync"
	"sync/atomic"

	"github.com/rlmhq/rlm/internal/data/openfile"
)

// MakeInterruptible returns a reader whose Read ends with the context. A Read of stdin itself
// cannot be interrupted, so its goroutine remains until the process ends.
func MakeInterruptible(ctx context.Context, r io.Reader) io.Reader {
	return &interruptReader{ctx: ctx, source: r}
}

type interruptReader struct {
	ctx    context.Context //nolint:containedctx // Read has no parameter for it
	source io.Reader
	begin  sync.Once
	begun  atomic.Bool
	pipe   *io.PipeReader
}

// Read starts to read the source on the first call, so that nothing is read from unused stdin.
func (r *interruptReader) Read(p []byte) (int, error) {
	r.begin.Do(func() {
		r.begun.Store(true)
		reader, writer := io.Pipe()
		r.pipe = reader
		go func() {
			_, err := io.CopyBuffer(writer, r.source, make([]byte, 1<<20))
			_ = writer.CloseWithError(err) // its error is always nil
		}()
		context.AfterFunc(r.ctx, func() { _ = writer.CloseWithError(r.ctx.Err()) })
	})

	return r.pipe.Read(p)
}

// ReadFile reads a file of bounded length, or stdin if the name is "-".
func ReadFile(e *Env, name string, limit int64, what string) (string, error) {
	if name == "-" {
		return ReadAll(e.Stdin, limit, what)
	}
	file, err := e.Open(name)
	if err != nil {
		return "", fmt.Errorf("cannot read %s: %w", what, err)
	}
	defer file.Close()

	return ReadAll(file, limit, what+" "+name)
}

// Open opens a file that the command line names. Open waits for the writer of a pipe; an interrupt
// ends the wait.
func (e *Env) Open(name string) (*os.File, error) {
	if IsPipe(name) {
		return openfile.Pipe(e.Life, name)
	}
	return os.Open(name)
}

// IsPipe reports whether a path names a pipe.
func IsPipe(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode()&os.ModeNamedPipe != 0
}

// ReadAll reads to the end of r, and refuses more than limit bytes.
func ReadAll(r io.Reader, limit int64, what string) (string, error) {
	data, err := io.ReadAll(io.LimitReader(r, limit+1))
	if err != nil {
		return "", fmt.Errorf("cannot read %s: %w", what, err)
	}
	if int64(len(data)) > limit {
		return "", fmt.Errorf("%s is longer than %d bytes", what, limit)
	}

	return string(data), nil
}
