package s3

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/rlmhq/rlm/internal/keep/objects"
)

const (
	// partSize is the size of a part of an upload, and of what Put keeps in memory, in bytes.
	partSize = 8 << 20
	// uploadsAtOnce bounds the parts of an object that are sent at once, each from memory.
	uploadsAtOnce = 3
	// maxParts bounds the parts of an upload. The limit of the protocol is 10,000.
	maxParts = 9_000
	// maxCopy is the largest object that the protocol copies in one request, in bytes.
	maxCopy = 5 << 30
	// digestMetadata names the digest in the metadata of an object.
	digestMetadata = "Sha256"
	contentType    = "application/octet-stream"
)

// Put implements [objects.Store]. It keeps the bytes until it knows their digest: up to 8 MiB in
// memory, and more in a file of [Options.SpoolDir].
func (s *Store) Put(ctx context.Context, from io.Reader) (objects.Object, error) {
	spool := &spool{dir: s.options.SpoolDir}
	defer spool.close()
	o, err := objects.Copy(ctx, spool, from)
	if err != nil {
		return objects.Object{}, fmt.Errorf("cannot store an object in s3://%s/%s: %w",
			s.bucket, s.prefix, err)
	}

	ctx, call := s.begin(ctx)
	defer call.end()
	stored, err := s.put(ctx, call, o, spool)
	if err != nil {
		return objects.Object{}, s.explain(ctx, "store", o.Digest, err)
	}
	return stored, nil
}

// put renews or uploads an object, and returns how the store describes it.
func (s *Store) put(
	ctx context.Context, call *call, o objects.Object, spool *spool,
) (objects.Object, error) {
	isRenewed, err := s.renew(ctx, o)
	if err == nil && !isRenewed {
		call.progress()
		err = s.upload(ctx, o, spool)
	}
	if err != nil {
		return objects.Object{}, err
	}

	call.progress()
	info, err := s.client.StatObject(ctx, s.bucket, s.key(o.Digest), minio.StatObjectOptions{})
	if err != nil {
		return objects.Object{}, err
	}
	if info.Size != o.Size {
		return objects.Object{}, fmt.Errorf("the store keeps %d of %d bytes: check its disks",
			info.Size, o.Size)
	}
	return objects.Object{Digest: o.Digest, Size: o.Size, Stored: info.LastModified}, nil
}

// renew copies an object onto itself, which renews its time. It reports whether the object existed
// as Put leaves it, and its time has become later.
func (s *Store) renew(ctx context.Context, o objects.Object) (bool, error) {
	key := s.key(o.Digest)
	info, err := s.client.StatObject(ctx, s.bucket, key, minio.StatObjectOptions{})
	if minio.ToErrorResponse(err).StatusCode == http.StatusNotFound {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if info.Size != o.Size || info.UserMetadata[digestMetadata] != o.Digest || o.Size > maxCopy {
		return false, nil
	}

	copied, err := s.client.CopyObject(ctx, minio.CopyDestOptions{
		Bucket: s.bucket, Object: key, ContentType: contentType, ReplaceMetadata: true,
		UserMetadata: map[string]string{digestMetadata: o.Digest},
	}, minio.CopySrcOptions{Bucket: s.bucket, Object: key})
	if isUnable(err) {
		return false, nil
	}
	// A description has whole seconds, and the answer to a copy may have more of the same time.
	isLater := copied.LastModified.Truncate(time.Second).After(info.LastModified)
	return err == nil && isLater, err
}

// isUnable reports whether a store refuses a copy but may accept an upload: it knows no copies, or
// forbids them, or the object was removed in the meantime.
func isUnable(err error) bool {
	status := minio.ToErrorResponse(err).StatusCode
	isRefused := status >= http.StatusBadRequest && status < http.StatusInternalServerError
	return status == http.StatusNotImplemented || isRefused && status != http.StatusTooManyRequests
}

// upload sends an object, in parts if it is larger than one. The store compares the MD5 of each.
func (s *Store) upload(ctx context.Context, o objects.Object, spool *spool) error {
	from, err := spool.rewind()
	if err != nil {
		return err
	}
	_, err = s.client.PutObject(ctx, s.bucket, s.key(o.Digest), from, o.Size, minio.PutObjectOptions{
		ContentType: contentType, UserMetadata: map[string]string{digestMetadata: o.Digest},
		SendContentMd5: true, NumThreads: uploadsAtOnce, ConcurrentStreamParts: true,
		// Without TLS, the library signs a body in chunks, and promises 0 bytes if it is empty.
		DisableContentSha256: o.Size == 0,
		PartSize:             uint64((o.Size/maxParts/partSize + 1) * partSize),
	})
	if minio.ToErrorResponse(err).Code == minio.NoSuchUpload {
		return nil // an attempt whose answer was lost has completed it, as the description will show
	}
	return err
}

// spool keeps the bytes of an object: in memory, or in a file if there are many.
type spool struct {
	dir    string
	memory bytes.Buffer
	file   *os.File // nil: memory has all bytes
}

// Write implements io.Writer.
func (s *spool) Write(p []byte) (int, error) {
	if s.file == nil && s.memory.Len()+len(p) <= partSize {
		return s.memory.Write(p)
	}
	if s.file == nil {
		file, err := os.CreateTemp(s.dir, "rlm-object-*") // with mode 0600
		if err != nil {
			return 0, err
		}
		_ = os.Remove(file.Name()) // where the system can, so that a crash leaves nothing
		s.file = file

		if _, err := s.memory.WriteTo(file); err != nil {
			return 0, err
		}
		s.memory = bytes.Buffer{}
	}
	return s.file.Write(p)
}

// rewind returns the bytes. They can be read again, for another attempt.
func (s *spool) rewind() (io.Reader, error) {
	if s.file == nil {
		return bytes.NewReader(s.memory.Bytes()), nil
	}
	if _, err := s.file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	return s.file, nil
}

// close frees the bytes.
func (s *spool) close() {
	if s.file != nil {
		_ = s.file.Close()
		_ = os.Remove(s.file.Name()) // on most systems, it is removed already
	}
}
