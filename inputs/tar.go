package inputs

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"strings"

	"github.com/rlmhq/rlm/internal/data/bigtext"
)

// readTar lists the members of a tar archive. Their bytes are in its text.
func (a *archive) readTar(ctx context.Context) error {
	section := io.NewSectionReader(a.text, 0, a.text.Size())
	headers := tar.NewReader(section)
	for {
		if err := ctx.Err(); err != nil {
			return err
		}
		header, err := headers.Next()
		switch {
		case errors.Is(err, io.EOF):
			return a.addUnnamed()
		case err != nil && !errors.Is(err, tar.ErrInsecurePath):
			return err
		}
		start, err := section.Seek(0, io.SeekCurrent) // where its content begins
		if err != nil {
			return err
		}
		if err := a.addTar(header, start); err != nil {
			return err
		}
	}
}

func (a *archive) addTar(header *tar.Header, start int64) error {
	switch {
	case header.Typeflag == tar.TypeDir:
		return nil
	case header.Typeflag == tar.TypeGNUSparse || isSparse(header):
		a.leftOut[sparse]++
		return nil
	case header.Typeflag != tar.TypeReg:
		a.leftOut[bigtext.LinksAndSpecial]++
		return nil
	case header.Size > a.text.Size()-start:
		return io.ErrUnexpectedEOF
	}

	content := func() (io.ReadCloser, error) {
		return io.NopCloser(io.NewSectionReader(a.text, start, header.Size)), nil
	}
	return a.add(header.Name, member{size: header.Size, open: content})
}

func isSparse(header *tar.Header) bool {
	for name := range header.PAXRecords {
		if strings.HasPrefix(name, "GNU.sparse.") {
			return true
		}
	}
	return false
}
