package objects

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
)

// CheckDigest returns an error if a string cannot name an object. A store calls it before it makes
// a path or a key of the string.
func CheckDigest(digest string) error {
	if !IsDigest(digest) {
		return fmt.Errorf("%.80q is not a SHA-256 in lower-case hexadecimal", digest)
	}
	return nil
}

// Copy copies a stream, and returns the digest and the size in bytes of what it copied. Between two
// reads, it ends with the cause of an ended context. It does not interrupt a blocked Read.
func Copy(ctx context.Context, to io.Writer, from io.Reader) (Object, error) {
	sum := sha256.New()
	size, err := io.Copy(io.MultiWriter(sum, to), &contextReader{ctx, from})
	if err != nil {
		return Object{}, err
	}
	return Object{Digest: hex.EncodeToString(sum.Sum(nil)), Size: size}, nil
}

// contextReader is a reader that ends with its context.
type contextReader struct {
	ctx  context.Context //nolint:containedctx // the context of the call that reads
	from io.Reader
}

// Read implements io.Reader. It marks the errors of the source, so that no error of a store seems
// to be one.
func (r *contextReader) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	n, err := r.from.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		err = fmt.Errorf("cannot read the bytes to store: %w", err)
	}
	return n, err
}

// Verify returns a reader for the bytes of an object. It ends with [ErrDamaged] instead of io.EOF
// if their digest or size, in bytes, is another. It does not check a negative size.
func Verify(from io.Reader, o Object) io.Reader {
	return &verifier{from: from, want: o, sum: sha256.New()}
}

// verifier is a reader that verifies what it reads.
type verifier struct {
	from io.Reader
	want Object
	sum  hash.Hash
	size int64
	end  error // what all further calls return
}

// Read implements io.Reader.
func (v *verifier) Read(p []byte) (int, error) {
	if v.end != nil {
		return 0, v.end
	}

	n, err := v.from.Read(p)
	v.sum.Write(p[:n])
	v.size += int64(n)
	switch {
	case v.want.Size >= 0 && v.size > v.want.Size: // at once, because the source may never end
		v.end = fmt.Errorf("%w: it has more than %d bytes", ErrDamaged, v.want.Size)
		n = 0
	case errors.Is(err, io.EOF):
		v.end = v.check()
	case err != nil:
		v.end = err
	}

	if n > 0 {
		return n, nil
	}
	return 0, v.end
}

// check returns io.EOF if the bytes are those that were stored.
func (v *verifier) check() error {
	if v.want.Size >= 0 && v.size != v.want.Size {
		return fmt.Errorf("%w: it has %d of %d bytes", ErrDamaged, v.size, v.want.Size)
	}
	if got := hex.EncodeToString(v.sum.Sum(nil)); got != v.want.Digest {
		return fmt.Errorf("%w: its bytes have the SHA-256 %s", ErrDamaged, got)
	}
	return io.EOF
}
