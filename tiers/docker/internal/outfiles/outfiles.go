// Package outfiles writes files that come out of a sandbox into a folder of the
// host.
//
// They come as a tar stream that hostile code has written. Only regular files and
// folders are taken, only below the folder, only under names that lead nowhere
// else, and only so many of them. A file is made, never opened or overwritten, and
// all through os.Root, so that no link, whoever makes it, leads out.
package outfiles

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rlmhq/rlm/tiers"
)

// Limits bound what is taken. What is beyond them ends the collecting.
type Limits struct {
	// Bytes of all files together.
	Bytes int64
	// Entries of the stream, and as many folders, those too that only the names of
	// files speak of.
	Entries int
}

// maxDepth is how many folders may be in one another; maxName bounds a path.
const (
	maxDepth   = 32
	maxName    = 1000
	maxRefused = 100
)

// ErrFlood says that the stream holds more than the limits allow.
var ErrFlood = errors.New("the sandbox gives more files than are allowed")

// Unpack writes the files of a tar stream into dir, which is made if it is not
// there and must be empty. What was written before an error stays.
func Unpack(stream io.Reader, dir string, limits Limits) (tiers.Collected, error) {
	var got tiers.Collected
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // results are for whoever may see the folder
		return got, fmt.Errorf("cannot make the folder for files: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return got, fmt.Errorf("cannot open the folder for files: %w", err)
	}
	defer func() { _ = root.Close() }() // nothing is written by it
	if err := empty(root, dir); err != nil {
		return got, err
	}
	u := unpacking{root: root, limits: limits, made: map[string]struct{}{}}
	in := tar.NewReader(stream)
	for entries := 0; ; entries++ {
		head, err := in.Next()
		if errors.Is(err, io.EOF) {
			return u.got, nil
		}
		if err != nil {
			return u.got, fmt.Errorf("cannot read the sandbox's files: %w", err)
		}
		if entries >= limits.Entries {
			return u.got, fmt.Errorf("%w: more than %d entries", ErrFlood, limits.Entries)
		}
		if err := u.take(in, head); err != nil {
			return u.got, err
		}
	}
}

func empty(root *os.Root, dir string) error {
	folder, err := root.Open(".")
	if err != nil {
		return fmt.Errorf("cannot read the folder for files: %w", err)
	}
	names, err := folder.Readdirnames(1)
	_ = folder.Close() // it was read only
	if len(names) > 0 {
		return fmt.Errorf("cannot put files into %s: it is not empty", dir)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("cannot read the folder for files: %w", err)
	}
	return nil
}

// unpacking is a stream on its way into a folder.
type unpacking struct {
	root   *os.Root
	limits Limits
	made   map[string]struct{} // folders
	got    tiers.Collected
}

// take writes one entry, or notes why not.
func (u *unpacking) take(in io.Reader, head *tar.Header) error {
	refuse := func(why string) {
		if len(u.got.Refused) < maxRefused {
			u.got.Refused = append(u.got.Refused, fmt.Sprintf("%.100q: %s", head.Name, why))
		}
	}
	name, why := plainName(head.Name)
	switch {
	case why != "":
		refuse(why)
		return nil
	case head.Typeflag == tar.TypeDir:
		return u.folder(name, refuse)
	case head.Typeflag != tar.TypeReg:
		refuse("it is no regular file")
		return nil
	case head.Size < 0 || head.Size > u.limits.Bytes-u.got.Bytes: // no sum, which could be too large for its type
		return fmt.Errorf("%w: more than %d bytes", ErrFlood, u.limits.Bytes)
	}
	if err := u.folder(path.Dir(name), func(string) {}); err != nil {
		return err
	}
	file, err := u.root.OpenFile(filepath.FromSlash(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		refuse(err.Error())
		return nil
	}
	n, err := io.CopyN(file, in, head.Size)
	u.got.Bytes += n
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("cannot write %s: %w", name, err)
	}
	u.got.Files++
	return nil
}

// folder makes a folder and those that it lies in, or refuses one that it cannot make.
func (u *unpacking) folder(name string, refuse func(why string)) error {
	for end := 0; end < len(name) && name != "."; {
		if end++; end < len(name) && name[end] != '/' {
			continue
		}
		part := name[:end]
		if _, there := u.made[part]; there {
			continue
		}
		if len(u.made) >= u.limits.Entries {
			return fmt.Errorf("%w: more than %d folders", ErrFlood, u.limits.Entries)
		}
		if err := u.root.Mkdir(filepath.FromSlash(part), 0o755); err != nil {
			refuse(err.Error())
			return nil
		}
		u.made[part] = struct{}{}
	}
	return nil
}

// plainName returns a name without "." parts, or why it is refused.
func plainName(name string) (plain, why string) {
	if len(name) > maxName {
		return "", "its name is too long"
	}
	if !utf8.ValidString(name) || strings.ContainsFunc(name, deceives) {
		return "", "its name has characters that mean something elsewhere"
	}
	if strings.HasPrefix(name, "/") {
		return "", "its name is absolute"
	}
	plain = path.Clean(name)
	if plain == "." {
		return plain, ""
	}
	if !filepath.IsLocal(filepath.FromSlash(plain)) {
		return "", "its name leads out of the folder"
	}
	if strings.Count(plain, "/") >= maxDepth {
		return "", "it lies too deep"
	}
	return plain, ""
}

// deceives reports whether a character is a separator on another system, a control of
// a terminal, or makes a name look like another one: lines that end, text that runs
// backwards.
func deceives(r rune) bool {
	return r == '\\' || r == ':' || unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Bidi_Control)
}
