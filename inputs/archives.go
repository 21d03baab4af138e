package inputs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/tiers"
)

// maxMembers is the maximum number of entries in an archive.
const maxMembers = 1_000_000

// isArchive reports whether a text's bytes are a zip or tar archive.
func isArchive(text *bigtext.Text) bool {
	head, err := readHead(text)
	return err == nil && (isZip(head) || isTar(head))
}

func isZip(head []byte) bool {
	return bytes.HasPrefix(head, []byte("PK\x03\x04")) || bytes.HasPrefix(head, []byte("PK\x05\x06"))
}

func isTar(head []byte) bool {
	return len(head) >= 512 && bytes.Equal(head[257:262], []byte("ustar"))
}

// openArchive opens an archive as a folder, or a document in a zip archive as bytes. It owns the
// text.
func (r *reader) openArchive(
	ctx context.Context, text *bigtext.Text, notes []string,
) (tiers.Input, error) {
	head, err := readHead(text)
	if err != nil {
		return tiers.Input{}, errors.Join(err, text.Close())
	}

	a := &archive{text: text, members: map[string]member{}, leftOut: map[string]int{}}
	if isZip(head) {
		err = a.readZip(ctx, r)
	} else {
		err = a.readTar(ctx)
	}
	if err != nil {
		err = fmt.Errorf("cannot read the archive %s: %w", filepath.Base(text.Name()), err)
		return tiers.Input{}, errors.Join(err, text.Close())
	}
	if kind := a.documentKind(head); kind != "" {
		text.MarkBinary(kind)
		return tiers.Input{Text: text, Notes: append(notes, r.describeText(ctx, text)...)}, nil
	}

	dir, err := bigtext.Select(a, bigtext.Selection{Skip: r.skipMember, Load: r.loadMember}, text.Close)
	if err != nil {
		return tiers.Input{}, errors.Join(err, text.Close())
	}
	notes = append(append(notes, a.notes...), describeLeftOut(a.leftOut)...)
	return r.finishFolder(ctx, dir, "the archive has no files", notes)
}

// skipMember is like [choice.skip], for archives, where folders are not entered.
func (r *reader) skipMember(name string, _ bool) string {
	if matchesAbove(r.Exclude, name) {
		return byExclude
	}
	return r.skipPattern(name, false)
}

// archive presents the members of an archive as a folder. It implements [bigtext.DirSource].
type archive struct {
	text    *bigtext.Text
	members map[string]member
	unnamed []unnamed // members whose names are not UTF-8
	leftOut map[string]int
	notes   []string
}

// unnamed is a member with the bytes of its name.
type unnamed struct {
	name   string
	member member
}

// member is a file in an archive.
type member struct {
	size int64
	open func() (io.ReadCloser, error)
}

// Notes give these reasons for leaving members out.
const (
	unsafeNames  = "members with an unsafe name"
	repeatedName = "members that a later one of the same name replaces"
	encrypted    = "encrypted members"
	unsupported  = "members with an unsupported compression"
	sparse       = "sparse members"
)

// add adds a file under its name in the archive. A member whose name is not UTF-8 is added later,
// by addUnnamed.
func (a *archive) add(name string, m member) error {
	if !utf8.ValidString(name) {
		a.unnamed = append(a.unnamed, unnamed{name, m})
		return a.checkCount()
	}

	clean, ok := cleanName(name)
	if !ok {
		a.leftOut[unsafeNames]++
		return nil
	}
	if _, known := a.members[clean]; known {
		a.leftOut[repeatedName]++
	}
	a.members[clean] = m
	return a.checkCount()
}

func (a *archive) checkCount() error {
	if len(a.members)+len(a.unnamed) > maxMembers {
		return fmt.Errorf("%w: it has more than %d members", bigtext.ErrTooLarge, maxMembers)
	}
	return nil
}

// cleanName returns the path of a member below the archive. The result ok is false if the name
// leads elsewhere.
func cleanName(name string) (string, bool) {
	const longest = 4096
	if name == "" || len(name) > longest || strings.ContainsRune(name, 0) {
		return "", false
	}
	if !strings.Contains(name, "/") {
		name = strings.ReplaceAll(name, `\`, "/") // some Windows programs write backslashes
	}
	if path.IsAbs(name) || len(name) > 1 && name[1] == ':' ||
		slices.Contains(strings.Split(name, "/"), "..") {
		return "", false
	}
	clean := path.Clean(name)
	return clean, clean != "." && fs.ValidPath(clean)
}

// Name returns the name of the archive.
func (a *archive) Name() string { return a.text.Name() }

// Names returns the paths of the members.
func (a *archive) Names() []string {
	names := make([]string, 0, len(a.members))

	for name := range a.members {
		names = append(names, name)
	}
	return names
}

// Size returns the unpacked size of a member.
func (a *archive) Size(name string) (int64, error) {
	m, ok := a.members[name]
	if !ok {
		return 0, fmt.Errorf("cannot find %q: %w", name, fs.ErrNotExist)
	}
	return m.size, nil
}

// Open opens a member.
func (a *archive) Open(name string) (fs.File, error) {
	m, ok := a.members[name]
	if !ok {
		return nil, fmt.Errorf("cannot open %q: %w", name, fs.ErrNotExist)
	}
	content, err := m.open()
	if err != nil {
		return nil, fmt.Errorf("cannot unpack %q: %w", name, err)
	}
	return &memberFile{ReadCloser: content, name: name, left: m.size, size: m.size}, nil
}

// memberFile is an open member. It fails if its size differs from the archive's entry.
type memberFile struct {
	io.ReadCloser
	name string
	left int64
	size int64
}

// Read reads the next bytes.
func (f *memberFile) Read(p []byte) (int, error) {
	n, err := f.ReadCloser.Read(p)
	f.left -= int64(n)

	switch {
	case f.left < 0:
		return 0, fmt.Errorf("cannot unpack %q: it is longer than the archive says: it is damaged", f.name)
	case errors.Is(err, io.EOF) && f.left > 0:
		return n, fmt.Errorf("cannot unpack %q: it is shorter than the archive says: it is damaged", f.name)
	case err != nil && !errors.Is(err, io.EOF):
		return n, fmt.Errorf("cannot unpack %q: %w", f.name, err)
	}
	return n, err
}

// Stat describes the member.
func (f *memberFile) Stat() (fs.FileInfo, error) { return memberInfo{f}, nil }

type memberInfo struct{ file *memberFile }

func (i memberInfo) Name() string       { return path.Base(i.file.name) }
func (i memberInfo) Size() int64        { return i.file.size }
func (i memberInfo) Mode() fs.FileMode  { return 0o444 }
func (i memberInfo) ModTime() time.Time { return time.Time{} }
func (i memberInfo) IsDir() bool        { return false }
func (i memberInfo) Sys() any           { return nil }
