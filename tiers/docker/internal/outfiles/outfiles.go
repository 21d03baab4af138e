// Package outfiles writes files from a sandbox into a folder of the host.
//
// Hostile code wrote the tar stream that contains them. Unpack takes regular files and
// folders only, up to a limit, and only under names that stay below the folder. It creates
// each file and never opens or overwrites one. All access goes through os.Root, so no link
// leads out of the folder.
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

// Limits bound a collection. The first entry beyond them ends it with ErrFlood.
type Limits struct {
	// Bytes of all files together.
	Bytes int64
	// Entries of the stream. As many folders are made, including those that only occur
	// in the names of files.
	Entries int
}

const (
	maxDepth   = 32   // folders inside one another
	maxName    = 1000 // bytes of a path
	maxRefused = 100  // refusals that are reported
)

// ErrFlood reports a stream beyond the limits.
var ErrFlood = errors.New("the sandbox's files exceed a limit")

// Unpack writes the files of a tar stream into dir, which is created if it does not exist
// and must be empty. After an error, the files written so far stay.
func Unpack(stream io.Reader, dir string, limits Limits) (tiers.Collected, error) {
	root, err := openEmpty(dir)
	if err != nil {
		return tiers.Collected{}, err
	}
	defer func() { _ = root.Close() }() // nothing is written by it

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
		if err := u.takeEntry(in, head); err != nil {
			return u.got, err
		}
	}
}

// openEmpty opens a folder, which it creates if necessary, and checks that it is empty.
func openEmpty(dir string) (*os.Root, error) {
	//nolint:gosec // the folder's own rights decide who sees results
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("cannot make the folder for files: %w", err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot open the folder for files: %w", err)
	}
	if err := checkEmpty(root, dir); err != nil {
		_ = root.Close() // nothing was written by it
		return nil, err
	}
	return root, nil
}

// checkEmpty returns an error for a folder that is not empty.
func checkEmpty(root *os.Root, dir string) error {
	folder, err := root.Open(".")
	if err != nil {
		return fmt.Errorf("cannot read the folder for files: %w", err)
	}
	names, err := folder.Readdirnames(1)
	_ = folder.Close() // it was only read

	if len(names) > 0 {
		return fmt.Errorf("cannot put files into %s: it is not empty", dir)
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return fmt.Errorf("cannot read the folder for files: %w", err)
	}
	return nil
}

// unpacking is the state of one Unpack.
type unpacking struct {
	root   *os.Root
	limits Limits
	made   map[string]struct{} // folders
	got    tiers.Collected
}

// refuse notes why an entry is not taken.
func (u *unpacking) refuse(name, why string) {
	if len(u.got.Refused) < maxRefused {
		u.got.Refused = append(u.got.Refused, fmt.Sprintf("%.100q: %s", name, why))
	}
}

// takeEntry writes one entry, or notes why not.
func (u *unpacking) takeEntry(in io.Reader, head *tar.Header) error {
	name, why := plainName(head.Name)
	switch {
	case why != "":
		u.refuse(head.Name, why)
		return nil
	case head.Typeflag == tar.TypeDir:
		refused, err := u.makeFolder(name)
		if refused != nil {
			u.refuse(head.Name, refused.Error())
		}
		return err
	case head.Typeflag != tar.TypeReg:
		u.refuse(head.Name, "it is not a regular file")
		return nil
	case head.Size < 0 || head.Size > u.limits.Bytes-u.got.Bytes: // a sum could overflow
		return fmt.Errorf("%w: more than %d bytes", ErrFlood, u.limits.Bytes)
	}
	return u.takeFile(in, head, name)
}

// takeFile writes one file, or notes why not.
func (u *unpacking) takeFile(in io.Reader, head *tar.Header, name string) error {
	// If a folder is refused, the file is, too.
	if _, err := u.makeFolder(path.Dir(name)); err != nil {
		return err
	}
	file, err := u.root.OpenFile(filepath.FromSlash(name), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if err != nil {
		u.refuse(head.Name, err.Error())
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

// makeFolder makes a folder and its parents. It returns as refused why one of them cannot
// be made.
func (u *unpacking) makeFolder(name string) (refused, err error) {
	for end := 0; end < len(name) && name != "."; {
		if end++; end < len(name) && name[end] != '/' {
			continue
		}
		part := name[:end]
		if _, there := u.made[part]; there {
			continue
		}

		if len(u.made) >= u.limits.Entries {
			return nil, fmt.Errorf("%w: more than %d folders", ErrFlood, u.limits.Entries)
		}
		if err := u.root.Mkdir(filepath.FromSlash(part), 0o755); err != nil {
			return err, nil
		}
		u.made[part] = struct{}{}
	}
	return nil, nil
}

// plainName returns a name without "." parts, or why it is refused.
func plainName(name string) (plain, why string) {
	switch {
	case len(name) > maxName:
		return "", "its name is too long"
	case !utf8.ValidString(name) || strings.ContainsFunc(name, isDeceptive):
		return "", "its name has a separator of another system, or control characters"
	case strings.HasPrefix(name, "/"):
		return "", "its name is absolute"
	}

	plain = path.Clean(name)
	switch {
	case plain == ".":
		return plain, ""
	case !filepath.IsLocal(filepath.FromSlash(plain)):
		return "", "its name leads out of the folder"
	case strings.Count(plain, "/") >= maxDepth:
		return "", "it lies below too many folders"
	}
	return plain, ""
}

// isDeceptive reports whether a character is a separator on another system, controls a
// terminal, or makes a name look like another one, by ending lines or reversing text.
func isDeceptive(r rune) bool {
	return r == '\\' || r == ':' ||
		unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Bidi_Control)
}
