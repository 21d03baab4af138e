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

// maxFile bounds one file of an image, in bytes; the largest known has 40 MB.
const maxFile = 1 << 30

// epoch is the time of every file, so that images of equal packages are equal.
var epoch = time.Unix(1_700_000_000, 0)

// layer writes the files of an image. A name that has been written stays as it is.
type layer struct {
	to   *tar.Writer
	seen map[string]bool
}

func newLayer(to io.Writer) *layer { return &layer{tar.NewWriter(to), map[string]bool{}} }

// addFiles copies the files of a tar stream that wanted accepts. Owners, times and what
// lets a program change its user are removed.
func (l *layer) addFiles(from io.Reader, wanted func(name string) bool) error {
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
		out, ok := plainHeader(head, name)
		if !ok {
			continue
		}
		l.seen[name] = true
		if err := l.copyFile(out, in); err != nil {
			return fmt.Errorf("cannot write %s into an image: %w", name, err)
		}
	}
}

// copyFile writes one file.
func (l *layer) copyFile(head *tar.Header, from io.Reader) error {
	if err := l.to.WriteHeader(head); err != nil {
		return err
	}
	if head.Size > maxFile {
		return fmt.Errorf("the file has %d bytes, more than %d", head.Size, maxFile)
	}
	_, err := io.CopyN(l.to, from, head.Size)
	return err
}

// plainHeader is a header without what differs from build to build, or lets a program
// change its user. It is not ok for devices and the like, which an image must not have.
func plainHeader(head *tar.Header, name string) (out *tar.Header, ok bool) {
	out = &tar.Header{Name: name, Typeflag: head.Typeflag, ModTime: epoch, Format: tar.FormatPAX}
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
		out.Linkname = strings.TrimPrefix(path.Clean("/"+head.Linkname), "/")
		out.Mode = 0o644
	default:
		return nil, false
	}
	return out, true
}

// addExtras writes files that no package has.
func (l *layer) addExtras(list []extra) error {
	for _, e := range list {
		l.seen[e.name] = true
		if err := l.to.WriteHeader(e.header()); err != nil {
			return err
		}
		if _, err := io.WriteString(l.to, e.text); err != nil {
			return err
		}
	}
	return nil
}

// extra is a file that no package has.
type extra struct {
	name, link, text string
	dir              bool
}

// header describes the file.
func (e extra) header() *tar.Header {
	head := &tar.Header{
		Name: e.name, Typeflag: tar.TypeReg, Mode: 0o644, Size: int64(len(e.text)),
		ModTime: epoch, Format: tar.FormatPAX,
	}
	switch {
	case e.dir:
		head.Name, head.Typeflag, head.Mode = e.name+"/", tar.TypeDir, 0o755
	case e.link != "":
		head.Typeflag, head.Linkname, head.Mode = tar.TypeSymlink, e.link, 0o777
	}
	return head
}
