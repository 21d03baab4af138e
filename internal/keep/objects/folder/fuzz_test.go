package folder

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/rlmhq/rlm/internal/keep/objects"
)

// FuzzFile puts any bytes in the place of an object. The reader must end with the bytes of the
// object or with an error. With a repaired header, more of the bytes reach the decoder.
func FuzzFile(f *testing.F) {
	const text = "line one\nline two\nline two\n"
	sum := sha256.Sum256([]byte(text))
	digest := hex.EncodeToString(sum[:])
	stored := packText(f, text)

	f.Add(stored, false, int64(0))
	f.Add(stored[headerSize:], true, int64(len(text)))
	f.Add(stored[headerSize:len(stored)-1], true, int64(len(text)))
	f.Add(append(stored[headerSize:len(stored):len(stored)], stored[headerSize:]...), true, int64(2*len(text)))
	f.Add([]byte{}, true, int64(0))
	f.Add([]byte{}, false, int64(0))
	for _, hard := range []string{
		"\x28\xb5\x2f\xfd\x00\xf8\x01\x00\x00",                             // a window that is too large
		"\x28\xb5\x2f\xfd\xe0\xff\xff\xff\xff\xff\xff\xff\x7f\x01\x00\x00", // an impossible size of the content
		"\x28\xb5\x2f\xfd\x04\x00\xfa\xff\xff\x00",                         // a block of one byte, many times
		"\x50\x2a\x4d\x18\xff\xff\xff\xff",                                 // a frame to skip that does not end
	} {
		f.Add([]byte(hard), true, int64(1<<40))
	}

	f.Fuzz(func(t *testing.T, data []byte, isRepaired bool, size int64) {
		if isRepaired {
			header := makeHeader(objects.Object{Digest: digest, Size: size}, int64(len(data)))
			data = append(header, data...)
		}
		s := &Store{dir: t.TempDir()}
		if err := os.Mkdir(s.shard(digest), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(s.path(digest), data, 0o600); err != nil {
			t.Fatal(err)
		}

		got, err := readText(t.Context(), s, digest)
		if err == nil && got != text {
			t.Errorf("the reader ended with %q", got)
		}
		if err != nil && !errors.Is(err, objects.ErrDamaged) && !strings.Contains(err.Error(), "has the format") {
			t.Errorf("it is not reported as damage: %v", err)
		}
	})
}

// packText returns the file of an object with a text.
func packText(f *testing.F, text string) []byte {
	f.Helper()
	file, err := os.Create(filepath.Join(f.TempDir(), "file"))
	if err != nil {
		f.Fatal(err)
	}
	defer file.Close()
	if _, err := pack(f.Context(), file, strings.NewReader(text)); err != nil {
		f.Fatal(err)
	}
	data, err := os.ReadFile(file.Name())
	if err != nil {
		f.Fatal(err)
	}
	return data
}

// readText reads an object of at most 1 MiB. A longer one is not what was stored.
func readText(ctx context.Context, s *Store, digest string) (string, error) {
	r, err := s.Open(ctx, digest)
	if err != nil {
		return "", err
	}
	defer r.Close()
	data, err := io.ReadAll(io.LimitReader(r, 1<<20))
	if err == nil && len(data) == 1<<20 {
		err = objects.ErrDamaged
	}
	return string(data), err
}

// A window that is larger than the bound must not be allocated.
func TestALargeWindowIsDamage(t *testing.T) {
	var packed strings.Builder
	w, err := zstd.NewWriter(&packed, zstd.WithWindowSize(4*maxWindow), zstd.WithEncoderLevel(zstd.SpeedFastest))
	if err != nil {
		t.Fatal(err)
	}
	size, err := io.Copy(w, io.LimitReader(zeroReader{}, 5*maxWindow))
	if err != nil || w.Close() != nil {
		t.Fatal(err)
	}
	digest := strings.Repeat("ab", 32)
	header := makeHeader(objects.Object{Digest: digest, Size: size}, int64(packed.Len()))
	s := &Store{dir: t.TempDir()}
	if err := os.Mkdir(s.shard(digest), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(s.path(digest), append(header, packed.String()...), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := readText(t.Context(), s, digest); !errors.Is(err, objects.ErrDamaged) ||
		!errors.Is(err, zstd.ErrWindowSizeExceeded) {
		t.Error(err)
	}
}

type zeroReader struct{}

// Read implements io.Reader.
func (zeroReader) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}
