package images

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"path"
	"strings"
	"time"
)

// maxFile bounds one file of an image; the largest known has 40 MB.
const maxFile = 1 << 30

// epoch is the time of every file, so that images of equal packages are equal.
var epoch = time.Unix(1_700_000_000, 0)

// layer writes the files of an image. A name that has been written stays as it is.
type layer struct {
	to   *tar.Writer
	seen map[string]bool
}

func newLayer(to io.Writer) *layer { return &layer{tar.NewWriter(to), map[string]bool{}} }

// add copies the files of a tar stream that wanted accepts. Owners, times and what
// lets a program change its user are taken away.
func (l *layer) add(from io.Reader, wanted func(name string) bool) error {
	in := tar.NewReader(from)
	for {
		head, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("cannot read the files of an image: %w", err)
		}
		name := strings.TrimPrefix(path.Clean("/"+head.Name), "/")
		if name == "" || l.seen[name] || !wanted(name) {
			continue
		}
		out, ok := plain(head, name)
		if !ok {
			continue
		}
		l.seen[name] = true
		if err := l.to.WriteHeader(out); err != nil {
			return fmt.Errorf("cannot write %s into an image: %w", name, err)
		}
		if out.Size > maxFile {
			return fmt.Errorf("cannot write %s into an image: it has %d bytes, at most %d", name, out.Size, maxFile)
		}
		if _, err := io.CopyN(l.to, in, out.Size); err != nil {
			return fmt.Errorf("cannot write %s into an image: %w", name, err)
		}
	}
}

// plain is a header without what differs from build to build, or lets a program
// become somebody else. Devices and the like have no place in an image.
func plain(head *tar.Header, name string) (*tar.Header, bool) {
	out := &tar.Header{Name: name, Typeflag: head.Typeflag, ModTime: epoch, Format: tar.FormatPAX}
	switch head.Typeflag {
	case tar.TypeReg:
		out.Size, out.Mode = head.Size, 0o644
		if head.Mode&0o111 != 0 {
			out.Mode = 0o755
		}
	case tar.TypeDir:
		out.Name += "/"
		out.Mode = 0o755
	case tar.TypeSymlink:
		out.Linkname, out.Mode = head.Linkname, 0o777
	case tar.TypeLink:
		out.Linkname, out.Mode = strings.TrimPrefix(path.Clean("/"+head.Linkname), "/"), 0o644
	default:
		return nil, false
	}
	return out, true
}

func (l *layer) extras(list []extra) error {
	for _, e := range list {
		l.seen[e.name] = true
		head := &tar.Header{Name: e.name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(e.text)), ModTime: epoch, Format: tar.FormatPAX}
		switch {
		case e.dir:
			head.Name, head.Typeflag, head.Mode = e.name+"/", tar.TypeDir, 0o755
		case e.link != "":
			head.Typeflag, head.Linkname, head.Mode = tar.TypeSymlink, e.link, 0o777
		}
		if err := l.to.WriteHeader(head); err != nil {
			return err
		}
		if _, err := io.WriteString(l.to, e.text); err != nil {
			return err
		}
	}
	return nil
}
