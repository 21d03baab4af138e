package sqlitestore

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/klauspost/compress/zstd"

	"github.com/rlmhq/rlm/internal/keep/objects"
	"github.com/rlmhq/rlm/internal/keep/store"
	"github.com/rlmhq/rlm/internal/machine/flush"
)

// A blob is a file with compressed content, named after the SHA-256 of the content. It is on the
// disk before any entry that refers to it.
const blobFolder = "blobs"

func (f *Store) blobPath(digest string) string {
	return filepath.Join(f.dir, blobFolder, digest[:2], digest)
}

var encoder = sync.OnceValues(func() (*zstd.Encoder, error) {
	return zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest))
})

// writeBlob writes content to its blob, unless the blob exists.
func (f *Store) writeBlob(content []byte) (digest string, err error) {
	if f.readOnly {
		return "", store.ErrReadOnly
	}

	sum := sha256.Sum256(content)
	digest = hex.EncodeToString(sum[:])
	path := f.blobPath(digest)
	if _, err := os.Stat(path); err == nil {
		return digest, nil
	}

	compress, err := encoder()
	if err != nil {
		return "", err
	}
	if err := f.writeFile(path, compress.EncodeAll(content, nil)); err != nil {
		return "", fmt.Errorf("cannot write to the store: %w", err)
	}
	return digest, nil
}

// writeFile writes a file that appears atomically and is then on the disk.
func (f *Store) writeFile(path string, data []byte) (err error) {
	dir := filepath.Dir(path)
	if err := f.makeFolder(dir); err != nil {
		return err
	}
	temp, err := os.CreateTemp(dir, ".new-*") // with mode 0600
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			_ = os.Remove(temp.Name())
		}
	}()

	_, err = temp.Write(data)
	if err == nil {
		err = temp.Sync()
	}
	if err := errors.Join(err, temp.Close()); err != nil {
		return err
	}
	if err := os.Rename(temp.Name(), path); err != nil {
		return err
	}
	return flush.Folder(dir)
}

// makeFolder creates a folder and makes its name durable. Another process may have just created it,
// so each process flushes it once.
func (f *Store) makeFolder(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}

	if _, is := f.lasting.Load(dir); is {
		return nil
	}
	if err := flush.Folder(filepath.Dir(dir)); err != nil {
		return err
	}
	f.lasting.Store(dir, true)
	return nil
}

// keepBlob ensures that the blob of an entry exists while the entry is added: Collect may have
// deleted it in the meantime. No other change runs during the call.
func (f *Store) keepBlob(e *store.Entry) error {
	_, err := os.Stat(f.blobPath(e.Digest))
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if len(e.Blob) == 0 {
		return fmt.Errorf("content %s: %w", e.Digest[:12], store.ErrNotFound)
	}
	_, err = f.writeBlob(e.Blob)
	return err
}

// Blob implements [store.Store].
func (f *Store) Blob(ctx context.Context, digest string) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if !objects.IsDigest(digest) {
		return nil, fmt.Errorf("%.80q is not the SHA-256 of a content", digest)
	}

	content, err := readBlob(f.blobPath(digest))
	if err != nil {
		return nil, fmt.Errorf("%w: content %s: %w", store.ErrDamaged, digest[:12], err)
	}
	if sum := sha256.Sum256(content); hex.EncodeToString(sum[:]) != digest {
		return nil, fmt.Errorf("%w: content %s is not what was written", store.ErrDamaged, digest[:12])
	}
	return content, nil
}

// readBlob reads the content of a file, up to MaxBlob bytes.
func readBlob(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()

	expand, err := zstd.NewReader(file, zstd.WithDecoderMaxWindow(64<<20), zstd.WithDecoderConcurrency(1))
	if err != nil {
		return nil, err
	}
	defer expand.Close()

	var content bytes.Buffer
	n, err := io.Copy(&content, io.LimitReader(expand, store.MaxBlob+1))
	if err == nil && n > store.MaxBlob {
		err = fmt.Errorf("it has more than %d bytes", store.MaxBlob)
	}
	return content.Bytes(), err
}

// leftOver is the age from which a file is assumed to have no writer.
const leftOver = 24 * time.Hour

// Collect implements [store.Store].
func (f *Store) Collect(ctx context.Context) (collected store.Collected, err error) {
	err = f.change(ctx, write{clean: func(c *conn) error {
		digests, err := readDigests(c, "SELECT DISTINCT digest FROM entries WHERE digest <> ''")
		if err != nil {
			return err
		}
		used := make(map[string]bool, len(digests))
		for _, digest := range digests {
			used[digest] = true
		}
		collected, err = f.deleteUnused(used)
		return err
	}})
	return collected, err
}

// deleteUnreferenced deletes those of the given blobs to which no entry refers. After an error,
// Collect deletes the remaining ones. No change runs during the call.
func (f *Store) deleteUnreferenced(c *conn, digests []string) {
	for _, digest := range digests {
		used, err := readDigests(c, "SELECT digest FROM entries WHERE digest = ? AND digest <> '' LIMIT 1", digest)
		if err == nil && len(used) == 0 && objects.IsDigest(digest) {
			_ = os.Remove(f.blobPath(digest))
		}
	}
}

// deleteUnused deletes unused blobs and the remains of writers. No change runs during the call.
func (f *Store) deleteUnused(used map[string]bool) (collected store.Collected, err error) {
	root := filepath.Join(f.dir, blobFolder)
	err = filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		info, err := entry.Info()
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}

		isOld := strings.HasPrefix(entry.Name(), ".new-") && time.Since(info.ModTime()) > leftOver
		isUnused := objects.IsDigest(entry.Name()) && !used[entry.Name()]
		if !isOld && !isUnused {
			return nil
		}

		collected.Blobs++
		collected.Bytes += info.Size()
		return os.Remove(path)
	})
	return collected, err
}
