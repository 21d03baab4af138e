package wheels

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"time"
)

// stalled is the time without new bytes after which a download is ended.
const stalled = time.Minute

// fetch returns the path of the wheel with the given digest, which is in the cache or downloaded
// from its address.
func (r *resolver) fetch(ctx context.Context, base string, from *url.URL, sum string) (string, error) {
	name := filepath.Join(r.CacheDir, sum+".whl")
	if isWhole(name, sum) {
		return name, nil
	}
	if err := os.MkdirAll(r.CacheDir, 0o700); err != nil {
		return "", fmt.Errorf("cannot keep packages: %w", err)
	}

	r.say("fetching %s", base)
	if err := r.download(ctx, name, from, sum); err != nil {
		return "", fmt.Errorf("cannot fetch %s: %w", base, err)
	}
	return name, nil
}

// isWhole reports whether the content of a file matches a digest. A cache can be damaged, and each
// file is read only once in a run.
func isWhole(name, sum string) bool {
	f, err := os.Open(name)
	if err != nil {
		return false
	}
	defer f.Close()
	hash := sha256.New()
	_, err = io.Copy(hash, io.LimitReader(f, maxWheel+1))
	return err == nil && hex.EncodeToString(hash.Sum(nil)) == sum
}

// download writes a file if it matches the digest. Other processes find the whole file or no file.
func (r *resolver) download(ctx context.Context, name string, from *url.URL, sum string) (err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := time.AfterFunc(stalled, func() {
		cancel(fmt.Errorf("%s has sent nothing for %s", from.Host, stalled))
	})
	defer watch.Stop()

	body, err := r.index.get(ctx, from, "")
	if err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	defer body.Close()

	to, err := os.CreateTemp(filepath.Dir(name), "fetch-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, to.Close(), removeLeft(to.Name())) }()

	hash := sha256.New()
	in := readerFunc(func(b []byte) (int, error) {
		watch.Reset(stalled)
		return body.Read(b)
	})

	n, err := io.Copy(io.MultiWriter(to, hash), io.LimitReader(in, maxWheel+1))
	switch {
	case err != nil:
		return errors.Join(err, context.Cause(ctx))
	case n > maxWheel:
		return fmt.Errorf("it has more than %d MiB", maxWheel>>20)
	case hex.EncodeToString(hash.Sum(nil)) != sum:
		return fmt.Errorf("its SHA-256 is %x, not %s", hash.Sum(nil), sum)
	}
	return os.Rename(to.Name(), name)
}

// removeLeft removes a temporary file that was not renamed.
func removeLeft(name string) error {
	if err := os.Remove(name); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// readerFunc is a function that implements io.Reader.
type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }
