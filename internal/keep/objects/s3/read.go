package s3

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/minio/minio-go/v7"

	"github.com/rlmhq/rlm/internal/keep/objects"
)

// object is the reader of an object.
type object struct {
	source *source
	digest string
	bytes  io.Reader
	closed bool
}

// Read implements io.Reader. Only while it runs must the store make progress.
func (o *object) Read(p []byte) (int, error) {
	ctx := o.source.ctx
	switch {
	case o.closed:
		return 0, os.ErrClosed
	case ctx.Err() != nil: // although some bytes may have arrived
		return 0, o.source.store.explain(ctx, "read", o.digest, context.Cause(ctx))
	}

	o.source.call.progress()
	n, err := o.bytes.Read(p)
	o.source.call.pause()
	if err == nil || err == io.EOF { // only io.EOF itself is an end
		return n, err
	}
	return n, o.source.store.explain(ctx, "read", o.digest, err)
}

// Close implements io.Closer.
func (o *object) Close() error {
	o.closed = true
	err := o.source.body.Close()
	o.source.call.end()
	return err
}

// source reads the bytes that a store returns for a key. It resumes after a broken connection: an
// object never changes, and a verifier reads the source.
type source struct {
	ctx   context.Context //nolint:containedctx // the context of its reads, as in a request
	store *Store
	call  *call
	key   string

	body     io.ReadCloser
	at       int64
	attempts int // without a byte
}

// open requests the bytes from the current place to the end, and returns their number, or -1.
func (s *source) open() (int64, error) {
	var o minio.GetObjectOptions
	if s.at > 0 {
		if err := o.SetRange(s.at, 0); err != nil {
			return 0, err
		}
	}
	core := minio.Core{Client: s.store.client}
	body, info, _, err := core.GetObject(s.ctx, s.store.bucket, s.key, o)
	if err != nil {
		return 0, err
	}
	s.body = body
	return info.Size, nil
}

// Read implements io.Reader.
func (s *source) Read(p []byte) (int, error) {
	for {
		n, err := s.body.Read(p)
		s.at += int64(n)
		if n > 0 {
			s.attempts = 0
			s.call.progress()
			return n, nil // the next call gets the error again, or resumes
		}
		if err == nil || err == io.EOF { // only io.EOF itself is an end
			return 0, err
		}

		s.attempts++
		if s.ctx.Err() != nil || s.attempts >= maxAttempts {
			return 0, err
		}
		_ = s.body.Close() // the connection is broken
		if err := s.reopen(); err != nil {
			return 0, err
		}
	}
}

// reopen resumes. If the object has no more bytes, it ends before what was promised.
func (s *source) reopen() error {
	s.body = io.NopCloser(eofReader{})
	_, err := s.open()
	if minio.ToErrorResponse(err).Code == minio.InvalidRange {
		return fmt.Errorf("%w: it has %d bytes, fewer than the store promised",
			objects.ErrDamaged, s.at)
	}
	return err
}

// eofReader is what remains of a connection that cannot be resumed.
type eofReader struct{}

// Read implements io.Reader.
func (eofReader) Read([]byte) (int, error) { return 0, io.ErrUnexpectedEOF }
