package graphtruth

import (
	"archive/tar"
	"errors"
	"io"
	"os"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// readSuite returns the files of an archive in testdata, by name. The script
// scripts/graph/suites.sh creates the archives.
func readSuite(t *testing.T, name string) map[string][]byte {
	t.Helper()
	archive, err := os.Open("testdata/" + name + ".tar.zst")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = archive.Close() }()
	decoder, err := zstd.NewReader(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer decoder.Close()

	files := map[string][]byte{}
	reader := tar.NewReader(decoder)
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return files
		}
		if err != nil {
			t.Fatal(err)
		}
		if header.Typeflag == tar.TypeReg {
			if files[header.Name], err = io.ReadAll(reader); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// result is the ending of one test of a suite.
type result struct {
	suite string // a line of the tally
	name  string
	// failure is the reason why the test failed, or an empty string.
	failure string
}
