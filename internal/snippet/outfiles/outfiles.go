// Package outfiles writes files from a sandbox into a folder of the host.
//
// Hostile code wrote the tar stream that contains the files. Unpack accepts only regular files and
// folders, up to a limit, and only under names that stay below the folder. It creates each file and
// never opens or overwrites an existing one. All access uses os.Root, so no link leads out of the
// folder.
package outfiles

import (
	"archive/tar"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/rlmhq/rlm/tiers"
)

// Limits bound a collection. The first entry that exceeds them ends the collection with ErrFlood.
type Limits struct {
	// Bytes bounds the total size of all files.
	Bytes int64
	// Entries bounds the entries of the stream. It also bounds the created folders, including those
	// that occur only in the names of files.
	Entries int
}

const (
	maxDepth   = 32   // nesting of folders
	maxName    = 1000 // bytes per path
	maxRefused = 100  // reported refusals
)

// ErrFlood reports a stream that exceeds the limits.
var ErrFlood = errors.New("the sandbox's files exceed a limit")

// Unpack writes the files of a tar stream into dir, which it creates if necessary. Existing entries
// of dir remain, and new entries with the same name are refused. After an error, the complete files
// remain.
func Unpack(stream io.Reader, dir string, limits Limits) (got tiers.Collected, err error) {
	root, stage, err := openStage(dir)
	if err != nil {
		return got, err
	}
	defer func() { err = errors.Join(err, root.RemoveAll(stage), root.Close()) }()
	staged, err := root.OpenRoot(stage)
	if err != nil {
		return got, fmt.Errorf("cannot open the folder for files: %w", err)
	}

	u := unpacking{root: staged, limits: limits, made: map[string]struct{}{}}
	err = errors.Join(u.takeAll(tar.NewReader(stream)), staged.Close())
	return u.got, errors.Join(err, u.place(root, stage))
}

// openStage opens a folder, creating it if necessary, and creates a hidden folder inside.
func openStage(dir string) (root *os.Root, stage string, err error) {
	//nolint:gosec // the folder's own rights decide who sees results
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, "", fmt.Errorf("cannot make the folder for files: %w", err)
	}
	if root, err = os.OpenRoot(dir); err != nil {
		return nil, "", fmt.Errorf("cannot open the folder for files: %w", err)
	}

	stage = ".rlm-partial-" + rand.Text()
	if err := root.Mkdir(stage, 0o755); err != nil {
		_ = root.Close() // nothing was written through it
		return nil, "", fmt.Errorf("cannot write into the folder for files: %w", err)
	}
	return root, stage, nil
}

// takeAll writes the entries of a stream.
func (u *unpacking) takeAll(in *tar.Reader) error {
	for entries := 0; ; entries++ {
		head, err := in.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("cannot read the sandbox's files: %w", err)
		}

		if entries >= u.limits.Entries {
			return fmt.Errorf("%w: more than %d entries", ErrFlood, u.limits.Entries)
		}
		if err := u.takeEntry(in, head); err != nil {
			return err
		}
	}
}

// place moves the files and folders from the hidden folder to their final places.
func (u *unpacking) place(root *os.Root, stage string) error {
	entries, err := fs.ReadDir(root.FS(), stage)
	if err != nil {
		return fmt.Errorf("cannot read the folder for files: %w", err)
	}

	for _, entry := range entries {
		name := entry.Name()
		if _, err := root.Lstat(name); err == nil {
			u.refuse(name, "a file with this name already exists")
			u.discount(root, path.Join(stage, name))
			continue
		}
		if err := root.Rename(path.Join(stage, name), name); err != nil {
			return fmt.Errorf("cannot move %s to its place: %w", name, err)
		}
	}
	return nil
}

// discount subtracts the files below an entry from the counts, because the entry was not placed.
func (u *unpacking) discount(root *os.Root, name string) {
	_ = fs.WalkDir(root.FS(), name, func(_ string, entry fs.DirEntry, err error) error {
		if err == nil && entry.Type().IsRegular() {
			u.got.Files--
			if info, err := entry.Info(); err == nil {
				u.got.Bytes -= info.Size()
			}
		}
		return nil
	})
}

// unpacking is the state of one Unpack.
type unpacking struct {
	root   *os.Root
	limits Limits
	made   map[string]struct{} // folders
	got    tiers.Collected
}

// refuse records why an entry was refused.
func (u *unpacking) refuse(name, why string) {
	if len(u.got.Refused) < maxRefused {
		u.got.Refused = append(u.got.Refused, fmt.Sprintf("%.100q: %s", name, why))
	}
}

// takeEntry writes one entry, or records the reason for refusing it.
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

// takeFile writes one file, or records the reason for refusing it.
func (u *unpacking) takeFile(in io.Reader, head *tar.Header, name string) error {
	// If the folder is refused, so is the file.
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
		return fmt.Errorf("cannot write %s: %w", name, errors.Join(err, u.root.Remove(name)))
	}
	u.got.Files++
	return nil
}

// makeFolder creates a folder and its parents. If one of these cannot be created, refused is the
// reason.
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

// plainName returns a name without "." parts, or the reason why it is refused.
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

// isDeceptive reports whether a character is a separator on another system, controls a terminal, or
// disguises a name by ending lines or reversing text.
func isDeceptive(r rune) bool {
	return r == '\\' || r == ':' ||
		unicode.In(r, unicode.Cc, unicode.Zl, unicode.Zp, unicode.Bidi_Control)
}
