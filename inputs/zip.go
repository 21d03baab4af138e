package inputs

import (
	"archive/zip"
	"compress/bzip2"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/klauspost/compress/zstd"
	"github.com/mikelolasagasti/xz"

	"github.com/rlmhq/rlm/internal/data/bigtext"
)

// maxDirectory is the maximum size of a zip archive's table of contents, in bytes. The host uses
// about ten times as much memory.
const maxDirectory = 64 << 20

// readZip lists the members of a zip archive.
func (a *archive) readZip(ctx context.Context, r *reader) error {
	limited := &limitedReaderAt{source: a.text, left: maxDirectory}
	files, err := zip.NewReader(limited, a.text.Size())

	switch {
	case limited.left < 0:
		return fmt.Errorf("%w: its table of contents has more than %d bytes", bigtext.ErrTooLarge, maxDirectory)
	case err != nil && !errors.Is(err, zip.ErrInsecurePath):
		return err
	}
	limited.isOff = true // from now on, members are read

	for method, open := range zipMethods {
		files.RegisterDecompressor(method, open)
	}

	var sum int64

	for _, f := range files.File {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := a.addZip(f); err != nil {
			return err
		}
	}

	if err := a.addUnnamed(); err != nil {
		return err
	}
	for _, m := range a.members {
		if m.size > r.MaxUnpacked-sum {
			sum = r.MaxUnpacked + 1
			break
		}
		sum += m.size
	}
	return r.checkUnpacked(sum, a.text.Size())
}

// zipMethods contains the compression methods that package zip lacks.
var zipMethods = map[uint16]zip.Decompressor{
	12: func(r io.Reader) io.ReadCloser { return io.NopCloser(bzip2.NewReader(r)) },
	zstd.ZipMethodWinZip: zstd.ZipDecompressor(
		zstd.WithDecoderMaxWindow(maxWindow), zstd.WithDecoderLowmem(true), zstd.WithDecoderConcurrency(1)),
	95: func(r io.Reader) io.ReadCloser {
		x, err := xz.NewReader(r, maxWindow)
		if err != nil {
			return io.NopCloser(failingReader{err})
		}
		return io.NopCloser(x)
	},
}

func (a *archive) addZip(f *zip.File) error {
	const isEncrypted = 1
	_, known := zipMethods[f.Method]

	switch {
	case strings.HasSuffix(f.Name, "/") || f.Mode().IsDir():
		return nil
	case !f.Mode().IsRegular():
		a.leftOut[bigtext.LinksAndSpecial]++
		return nil
	case f.Flags&isEncrypted != 0:
		a.leftOut[encrypted]++
		return nil
	case f.Method != zip.Store && f.Method != zip.Deflate && !known:
		a.leftOut[unsupported]++
		return nil
	case f.UncompressedSize64 > 1<<62:
		return errors.New("it is damaged: a member is impossibly large")
	}
	name := f.Name
	if better := unicodePath(name, f.Extra); better != "" {
		name = better
	}
	return a.add(name, member{size: int64(f.UncompressedSize64), open: f.Open})
}

// documentKind returns the kind of a document that is internally a zip archive, empty for any
// other archive.
func (a *archive) documentKind(head []byte) bigtext.Kind {
	_, isOffice := a.members["[Content_Types].xml"]
	_, hasType := a.members["mimetype"]
	if !isOffice && !hasType {
		return ""
	}
	if kind := findKind(head); kind != "zip" {
		return kind
	}

	for folder, kind := range map[string]bigtext.Kind{
		"word/document.xml": "docx", "ppt/presentation.xml": "pptx",
		"xl/workbook.xml": "xlsx", "xl/workbook.bin": "xlsb",
	} {
		if _, ok := a.members[folder]; ok {
			return kind
		}
	}
	return ""
}

// limitedReaderAt fails once more than left bytes have been read.
type limitedReaderAt struct {
	source io.ReaderAt
	left   int64
	isOff  bool
}

// ReadAt implements io.ReaderAt.
func (l *limitedReaderAt) ReadAt(p []byte, off int64) (int, error) {
	if !l.isOff {
		if l.left -= int64(len(p)); l.left < 0 {
			return 0, bigtext.ErrTooLarge
		}
	}
	return l.source.ReadAt(p, off)
}

// failingReader is a reader that always fails.
type failingReader struct{ err error }

// Read implements io.Reader.
func (f failingReader) Read([]byte) (int, error) { return 0, f.err }
