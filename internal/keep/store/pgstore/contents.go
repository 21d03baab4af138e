package pgstore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"

	"github.com/jackc/pgx/v5"

	"github.com/rlmhq/rlm/internal/keep/objects"
	"github.com/rlmhq/rlm/internal/keep/store"
)

// storeObject stores a large content. Its row comes first: Collect spares what has a new row, and
// locks the row while it deletes the object, so that none is deleted behind this call.
func (s *Store) storeObject(ctx context.Context, digest, content []byte) error {
	var isNew bool
	err := s.scan(ctx, `INSERT INTO @contents AS k (digest, size, stored) VALUES ($1, $2, clock_timestamp())
		ON CONFLICT (digest) DO UPDATE SET stored = excluded.stored RETURNING xmax = 0`,
		[]any{digest, len(content)}, &isNew)
	if err != nil {
		return err
	}

	name := hex.EncodeToString(digest)
	if !isNew { // equal content is not sent again, unless the process that added the row has ended early
		known, err := s.objects.Stat(ctx, name)
		if err == nil && known.Size == int64(len(content)) {
			return nil
		}
		if err != nil && !errors.Is(err, objects.ErrNotFound) {
			return fmt.Errorf("cannot store content %s: %w", name[:12], err)
		}
	}

	kept, err := s.objects.Put(ctx, bytes.NewReader(content))
	if err == nil && kept.Digest != name {
		err = fmt.Errorf("the object store has named it %.64q", kept.Digest)
	}
	if err != nil {
		return fmt.Errorf("cannot store content %s: %w", name[:12], err)
	}
	return nil
}

// findContent checks that a content exists, and keeps it from Collect until its entry is added.
func (s *Store) findContent(ctx context.Context, name string) (digest []byte, err error) {
	digest = parseDigest(name)
	var isObject bool
	err = s.scan(ctx, "UPDATE @contents SET stored = clock_timestamp() WHERE digest = $1 RETURNING bytes IS NULL",
		[]any{digest}, &isObject)
	if errors.Is(err, pgx.ErrNoRows) {
		err = store.ErrNotFound
	}
	if err == nil && isObject {
		_, err = s.objects.Stat(ctx, name)
		if errors.Is(err, objects.ErrNotFound) {
			err = store.ErrNotFound
		}
	}
	if err != nil {
		return nil, fmt.Errorf("content %s: %w", name[:12], err)
	}
	return digest, nil
}

// Blob implements [store.Store].
func (s *Store) Blob(ctx context.Context, digest string) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !objects.IsDigest(digest) {
		return nil, fmt.Errorf("%.80q is not the SHA-256 of a content", digest)
	}
	return s.readContent(ctx, parseDigest(digest), store.MaxBlob)
}

// readContent returns a content of at most so many bytes.
func (s *Store) readContent(ctx context.Context, digest []byte, most int64) (content []byte, err error) {
	name := hex.EncodeToString(digest)

	err = s.scan(ctx, "SELECT bytes FROM @contents WHERE digest = $1", []any{digest}, &content)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return nil, fmt.Errorf("content %s: %w", name[:12], store.ErrNotFound)
	case err != nil:
		return nil, err
	case content == nil:
		content, err = s.readObject(ctx, name, most)
	}
	if errors.Is(err, objects.ErrNotFound) || errors.Is(err, objects.ErrDamaged) {
		return nil, fmt.Errorf("%w: content %s: %w", store.ErrDamaged, name[:12], err)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read content %s: %w", name[:12], err)
	}

	if sum := sha256.Sum256(content); !bytes.Equal(sum[:], digest) {
		return nil, fmt.Errorf("%w: content %s is not what was written", store.ErrDamaged, name[:12])
	}
	return content, nil
}

// readObject returns the bytes of an object, and refuses one that is too large.
func (s *Store) readObject(ctx context.Context, name string, most int64) ([]byte, error) {
	from, err := s.objects.Open(ctx, name)
	if err != nil {
		return nil, err
	}
	defer from.Close()

	content, err := io.ReadAll(io.LimitReader(from, most+1))
	if err == nil && int64(len(content)) > most {
		err = fmt.Errorf("it has more than %d bytes", most)
	}
	return content, err
}
