package bm25

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/rlmhq/rlm/internal/data/bigtext"
)

// Bounds limit the size of a library. A zero field means its default.
type Bounds struct {
	Files     int   // number of files; by default 20,000
	FileBytes int64 // size of one file, by default 1 MiB; larger files are skipped
	Bytes     int64 // size of all files, by default 32 MiB
}

func (b Bounds) withDefaults() Bounds {
	if b.Files <= 0 {
		b.Files = 20_000
	}
	if b.FileBytes <= 0 {
		b.FileBytes = 1 << 20
	}
	if b.Bytes <= 0 {
		b.Bytes = 32 << 20
	}

	return b
}

// Passage is a sequence of lines of a file.
type Passage struct {
	Path string // the given path, followed by the file's path below it
	Line int    // the first line's number, from 1
	Text string // valid UTF-8
	Kind bigtext.Kind
}

// Skipped counts the files missing from a library, by reason.
type Skipped struct {
	Links      int // links, and entries that are neither file nor folder
	Hidden     int // in a folder whose name begins with a dot, or in node_modules
	Binary     int
	Large      int // larger than Bounds.FileBytes
	Unreadable int // no permission, or removed or changed meanwhile
	Rest       int // beyond Bounds.Files or Bounds.Bytes
}

// String describes the counts for display. It is empty if no file was skipped.
func (s Skipped) String() string {
	var parts []string
	for _, p := range []struct {
		n    int
		what string
	}{
		{s.Links, "links or special"},
		{s.Hidden, "hidden"},
		{s.Binary, "binary"},
		{s.Large, "too large"},
		{s.Unreadable, "unreadable"},
		{s.Rest, "beyond the bounds"},
	} {
		if p.n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", p.n, p.what))
		}
	}

	return strings.Join(parts, ", ")
}

// Library is a searchable set of passages. Searches may run concurrently.
type Library struct {
	bounds   Bounds
	files    int
	bytes    int64
	skipped  Skipped
	passages []Passage
	index    index
}

// New returns an empty library for [Library.Add].
func New(bounds Bounds) *Library {
	return &Library{bounds: bounds.withDefaults(), index: index{
		postings: map[string][]posting{}, stems: map[string]string{},
	}}
}

// Add adds a text under a path. If the text exceeds the bounds, it adds nothing and returns false.
// Add must not run concurrently with any other call.
func (l *Library) Add(path, text string) bool {
	size := int64(len(text))
	if size > l.bounds.FileBytes || l.full(size) {
		l.skipped.Rest++
		return false
	}
	l.add(path, bigtext.KindText, size, strings.ToValidUTF8(text, "\uFFFD"))
	return true
}

// Open reads files and folders. It returns an error for a path that is missing or contains no
// text, because such a path is always a mistake.
func Open(ctx context.Context, paths []string, bounds Bounds) (*Library, error) {
	l := New(bounds)
	for _, path := range paths {
		before := len(l.passages)
		if err := l.path(ctx, path); err != nil {
			return nil, fmt.Errorf("cannot search %q: %w", path, err)
		}
		if len(l.passages) == before {
			why := "it holds no text"
			if left := l.skipped.String(); left != "" {
				why += " (files left out so far: " + left + ")"
			}
			return nil, fmt.Errorf("cannot search %q: %s", path, why)
		}
	}

	return l, nil
}

// Skipped returns the counts of skipped files.
func (l *Library) Skipped() Skipped { return l.skipped }

// Len returns the number of passages.
func (l *Library) Len() int { return len(l.passages) }

// Passages returns all passages, in the order of [Library.Relevance]. They must not be changed.
func (l *Library) Passages() []Passage { return l.passages }

// path reads one path. It follows the path itself if it is a link, but no links below it.
func (l *Library) path(ctx context.Context, path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return err
	}
	if !info.IsDir() {
		if info.Size() > l.bounds.FileBytes {
			return fmt.Errorf(
				"it has %d bytes, more than %d: give a part of it", info.Size(), l.bounds.FileBytes,
			)
		}
		text, err := bigtext.Open(path)
		if err != nil {
			return err
		}
		return errors.Join(l.text(ctx, path, text), text.Close())
	}

	dir, err := bigtext.OpenDir(path)
	if err != nil {
		return err
	}
	return errors.Join(l.folder(ctx, path, dir), dir.Close())
}

// folder reads the files in a folder.
func (l *Library) folder(ctx context.Context, path string, dir *bigtext.Dir) error {
	l.skipped.Links += dir.LeftOut()[bigtext.LinksAndSpecial]
	for _, name := range dir.Names() {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		size, err := dir.Size(name)
		switch {
		case err != nil:
			return err
		case size == 0:
			continue
		case hidden(name):
			l.skipped.Hidden++
			continue
		case size > l.bounds.FileBytes:
			l.skipped.Large++
			continue
		case l.full(size):
			l.skipped.Rest++
			continue
		}

		text, err := dir.Text(ctx, name)
		if err == nil {
			err = l.text(ctx, filepath.Join(path, filepath.FromSlash(name)), text)
		}
		switch {
		case err == nil:
		case context.Cause(ctx) != nil:
			return context.Cause(ctx)
		default:
			l.skipped.Unreadable++ // one missing file must not affect the others
		}
	}

	return nil
}

// full reports whether a file of that size exceeds the bounds.
func (l *Library) full(size int64) bool {
	return l.files >= l.bounds.Files || l.bytes+size > l.bounds.Bytes
}

// hidden reports whether a path leads through a folder meant for programs.
func hidden(name string) bool {
	for part := range strings.SplitSeq(name, "/") {
		if part == "node_modules" || len(part) > 1 && part[0] == '.' {
			return true
		}
	}
	return false
}

// text adds the passages of a file.
func (l *Library) text(ctx context.Context, path string, text *bigtext.Text) error {
	if text.IsBinary() || text.Kind() == bigtext.KindBinary {
		l.skipped.Binary++
		return nil
	}
	if text.Size() > l.bounds.FileBytes ||
		l.full(text.Size()) { // it may have grown since it was listed
		l.skipped.Rest++
		return nil
	}

	n, err := text.Len(ctx)
	if err != nil {
		return err
	}
	data, _, err := text.Slice(ctx, 0, n)
	if err != nil {
		return err
	}

	var whole string
	err = bigtext.Guard(text, func() { whole = strings.ToValidUTF8(string(data), "\uFFFD") })
	if err != nil {
		return err
	}
	l.add(path, text.Kind(), text.Size(), whole)
	return nil
}

// add adds the passages of a text within the bounds.
func (l *Library) add(path string, kind bigtext.Kind, size int64, text string) {
	l.files++
	l.bytes += size
	for p := range cut(text) {
		p.Path, p.Kind = path, kind
		l.index.add(len(l.passages), p.Text)
		l.passages = append(l.passages, p)
	}
}
