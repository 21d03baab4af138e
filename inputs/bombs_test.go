package inputs_test

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/rlmhq/rlm/inputs"
)

// zeros is a stream without end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

// TestCompressedBombsEndInErrors opens small files that stand for very much, alone and in layers.
func TestCompressedBombsEndInErrors(t *testing.T) {
	const unpacked = 300 << 20
	var inGzip, inZstd, layers bytes.Buffer
	g := gzip.NewWriter(&inGzip)
	pack(t, g, io.LimitReader(zeros{}, unpacked))
	z, err := zstd.NewWriter(&inZstd)
	if err != nil {
		t.Fatal(err)
	}
	pack(t, z, io.LimitReader(zeros{}, unpacked))
	pack(t, gzip.NewWriter(&layers), bytes.NewReader(inGzip.Bytes()))

	dir := t.TempDir()
	for name, data := range map[string][]byte{
		"a.gz": inGzip.Bytes(), "a.zst": inZstd.Bytes(), "a.gz.gz": layers.Bytes(),
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(dir, name)
			if err := os.WriteFile(path, data, 0o600); err != nil {
				t.Fatal(err)
			}
			in, err := inputs.Open(t.Context(), inputs.Options{}, path)
			if err == nil {
				_ = inputs.Close(in)
			}
			if err == nil || !strings.Contains(err.Error(), "raise --max-ratio") {
				t.Errorf("%d bytes: %v", len(data), err)
			}
		})
	}
}

func pack(t *testing.T, w io.WriteCloser, r io.Reader) {
	t.Helper()
	if _, err := io.Copy(w, r); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
}
