package documents

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/rlmhq/rlm/internal/machine/rustmodule"
)

// The bounds of the cache are in bytes: of one text, of all texts, and of the texts that remain
// after a sweep.
const (
	maxCached  = 16 << 20
	maxCache   = 512 << 20
	leftCached = 384 << 20
)

// cacheMark starts each file of the cache. The length of the answer, the answer and the text
// follow.
const cacheMark = "rlm document 1\n"

// cacheFile returns the path of a document's cached text, or an empty string without a cache. It
// depends on the document and on the module.
func cacheFile(ctx context.Context, o Options, kind Kind, document io.Reader) (string, error) {
	if o.TextDir == "" {
		return "", nil
	}
	var m rustmodule.Manifest
	if err := json.Unmarshal(manifestFile, &m); err != nil {
		return "", err
	}
	digest := sha256.New()
	fmt.Fprintf(digest, "%s %s\n", m.Module.SHA256, kind)
	if _, err := io.Copy(digest, contextReader{ctx, document}); err != nil {
		return "", err
	}
	return filepath.Join(o.TextDir, hex.EncodeToString(digest.Sum(nil))), nil
}

// contextReader fails once its context ends.
type contextReader struct {
	ctx context.Context
	io.Reader
}

// Read implements io.Reader.
func (r contextReader) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.Reader.Read(p)
}

// fetch writes a cached text; it returns nil if the text is missing or damaged.
func fetch(path string, text io.Writer) (*Description, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, nil //nolint:nilnil // then the document is converted
	}
	defer f.Close()
	r := bufio.NewReader(f)
	about := readHead(f, r)
	if about == nil {
		return nil, nil //nolint:nilnil // as above
	}

	now := time.Now()
	_ = os.Chtimes(path, now, now) // on failure, the text is only removed earlier
	_, err = io.Copy(text, r)
	return about, err
}

// readHead reads the part of a file before its text; it returns nil if the file is damaged.
func readHead(f *os.File, r io.Reader) *Description {
	info, err := f.Stat()
	if err != nil {
		return nil
	}
	head := make([]byte, len(cacheMark)+4)
	if _, err := io.ReadFull(r, head); err != nil || string(head[:len(cacheMark)]) != cacheMark {
		return nil
	}

	length := int64(binary.LittleEndian.Uint32(head[len(cacheMark):]))
	size := info.Size() - int64(len(head)) - length
	if size < 0 || length > maxAnswer {
		return nil
	}

	answer := make([]byte, length)
	if _, err := io.ReadFull(r, answer); err != nil {
		return nil
	}
	about, err := decode(answer, size)
	if err != nil {
		return nil
	}
	return about
}

// store caches a text. A failure only costs time when the document is converted again.
func store(path string, answer, text []byte) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(dir, "new-")
	if err != nil {
		return err
	}

	head := binary.LittleEndian.AppendUint32([]byte(cacheMark), uint32(len(answer)))
	for _, part := range [][]byte{head, answer, text} {
		if err == nil {
			_, err = f.Write(part)
		}
	}
	if err = errors.Join(err, f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return sweep(dir)
}

// sweep removes the least recently used texts if there are too many.
func sweep(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return err
	}

	var all []fs.FileInfo
	sum := int64(0)
	for _, entry := range entries {
		if info, err := entry.Info(); err == nil && info.Mode().IsRegular() {
			all = append(all, info)
			sum += info.Size()
		}
	}
	if sum <= maxCache {
		return nil
	}

	slices.SortFunc(all, func(a, b fs.FileInfo) int { return a.ModTime().Compare(b.ModTime()) })
	for _, info := range all {
		if sum <= leftCached {
			break
		}
		if err := os.Remove(filepath.Join(dir, info.Name())); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		sum -= info.Size()
	}
	return nil
}
