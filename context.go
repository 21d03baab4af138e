package rlm

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/internal/snippet/protocol"
	"github.com/rlmhq/rlm/internal/text/quantity"
	"github.com/rlmhq/rlm/tiers"
)

// Context is an input of snippets: see [File], [Text], [Reader] and [Value]. Package
// [github.com/rlmhq/rlm/inputs] makes contexts from all other kinds of files.
type Context struct {
	name     string
	open     func(ctx context.Context) (tiers.Input, error)
	variable string
}

// ContextOf returns a context that open opens. The name is for humans and prompts.
func ContextOf(name string, open func(ctx context.Context) (tiers.Input, error)) Context {
	return Context{name: name, open: open}
}

// As returns the context with an additional name for Python snippets, next to context or context_1.
// The name must be an unused identifier.
func (c Context) As(variable string) Context {
	c.variable = variable
	return c
}

// File is the UTF-8 text file at path, or a folder of such files. Files are mapped, not read, so
// they must not change while the session lives; a change causes an error, never a wrong answer. A
// file whose first 64 KiB are not UTF-8 is refused, and so is a PDF. Other files are passed
// unchanged, including HTML, mail and files that .gitignore excludes. In contrast,
// [github.com/rlmhq/rlm/inputs.Files] converts documents to text, reads archives, compressed files
// and other encodings, and skips ignored files. Both skip files in a folder that hold secrets, such
// as .env.
func File(path string) Context {
	return ContextOf(path, func(context.Context) (tiers.Input, error) {
		info, err := os.Stat(path)
		if err != nil {
			return tiers.Input{}, err
		}
		if info.IsDir() {
			return openFolder(path)
		}
		text, err := bigtext.Open(path)
		if err != nil {
			return tiers.Input{}, err
		}
		return plainInput(text)
	})
}

// openFolder opens a folder of plain text files. If a snippet reads any other file, it gets an
// error.
func openFolder(path string) (tiers.Input, error) {
	dir, err := bigtext.OpenFiles(path, []string{"."}, bigtext.Selection{
		Skip: func(name string, isDir bool) string {
			if !isDir && bigtext.IsSecret(name) {
				return bigtext.Secrets
			}
			return ""
		},
		Load: func(_ context.Context, text *bigtext.Text) (*bigtext.Text, error) {
			if err := checkPlain(text); err != nil {
				return nil, errors.Join(err, text.Close())
			}
			return text, nil
		},
	})
	if err != nil {
		return tiers.Input{}, err
	}
	var notes []string
	for _, reason := range slices.Sorted(maps.Keys(dir.LeftOut())) {
		notes = append(notes, fmt.Sprintf("left out: %d %s", dir.LeftOut()[reason], reason))
	}
	if len(dir.Names()) == 0 {
		why := strings.Join(append([]string{"the directory has no files"}, notes...), "; ")
		return tiers.Input{}, errors.Join(errors.New(why), dir.Close())
	}
	return tiers.Input{Dir: dir, Notes: notes}, nil
}

// plainInput makes an input from a plain text. The input owns the text.
func plainInput(text *bigtext.Text) (tiers.Input, error) {
	err := checkPlain(text)
	if text.Size() == 0 {
		err = errors.New("it is empty, or has no size: inputs.Files reads files of /proc, too")
	}
	if err != nil {
		return tiers.Input{}, errors.Join(err, text.Close())
	}
	return tiers.Input{Text: text}, nil
}

// checkPlain refuses a file whose beginning is not UTF-8 text.
func checkPlain(text *bigtext.Text) error {
	head := make([]byte, min(text.Size(), 64<<10))
	if _, err := text.ReadAt(head, 0); err != nil && !errors.Is(err, io.EOF) {
		return err
	}

	var kind string
	switch {
	case bytes.HasPrefix(head, []byte("%PDF-")):
		kind = "a PDF"
	case bytes.HasPrefix(head, []byte("\ufeff")):
		kind = "a text with a byte order mark"
	case bytes.IndexByte(head, 0) >= 0 || !isUTF8(head, int64(len(head)) < text.Size()):
		kind = "no text in UTF-8"
	default:
		return nil
	}
	return fmt.Errorf("it is %s: use inputs.Files or inputs.Stream of github.com/rlmhq/rlm/inputs, which "+
		"read compressed files, documents, archives and all encodings", kind)
}

// isUTF8 reports whether head is valid UTF-8. If isCut is set, the last character may be
// incomplete.
func isUTF8(head []byte, isCut bool) bool {
	if isCut {
		for i := 1; i < utf8.UTFMax && i < len(head); i++ {
			if last := head[len(head)-i:]; utf8.RuneStart(last[0]) {
				if !utf8.FullRune(last) {
					head = head[:len(head)-i]
				}
				break
			}
		}
	}
	return utf8.Valid(head)
}

// Text is a string in memory.
func Text(name, text string) Context {
	return Context{name: name, open: func(context.Context) (tiers.Input, error) {
		return tiers.Input{Text: bigtext.FromBytes(name, []byte(text))}, nil
	}}
}

// Reader is a stream of UTF-8 text. It is copied to an unnamed temporary file of at most limit
// bytes. It refuses the same data as [File]; [github.com/rlmhq/rlm/inputs.Stream] also reads other
// formats.
func Reader(name string, r io.Reader, limit int64) Context {
	return ContextOf(name, func(ctx context.Context) (tiers.Input, error) {
		text, err := bigtext.Spooled(ctx, name, r, limit, func() error { return nil })
		if err != nil {
			return tiers.Input{}, err
		}
		return plainInput(text)
	})
}

// Value is a Go value. Snippets receive its decoded JSON.
func Value(name string, value any) Context {
	return Context{name: name, open: func(context.Context) (tiers.Input, error) {
		data, err := json.Marshal(value)
		return tiers.Input{Value: data}, err
	}}
}

// opened holds the contexts of a session and its forks.
type opened struct {
	list  []tiers.Input
	users atomic.Int32
}

func openContexts(ctx context.Context, contexts []Context) (*opened, error) {
	in := &opened{}
	for _, c := range contexts {
		if c.open == nil {
			err := errors.New("cannot use an empty Context: make it with File, Text, Reader, Value or package inputs")
			return nil, errors.Join(err, in.close())
		}
		if c.variable != "" {
			if err := protocol.CheckName(c.variable); err != nil {
				err = fmt.Errorf("cannot name a context %q: use a plain Python identifier that is not reserved",
					c.variable)
				return nil, errors.Join(err, in.close())
			}
		}
		input, err := c.open(ctx)
		if err != nil {
			err = fmt.Errorf("cannot use context %q: %w", c.name, err)
			return nil, errors.Join(err, in.close())
		}
		input.Name, input.Variable = c.name, c.variable
		in.list = append(in.list, input)
	}
	return in, nil
}

func (in *opened) share() *opened {
	in.users.Add(1)
	return in
}

// release closes the inputs when the last session that uses them has released them.
func (in *opened) release() error {
	if in.users.Add(-1) != 0 {
		return nil
	}
	return in.close()
}

func (in *opened) close() error {
	var errs []error
	for _, input := range in.list {
		errs = append(errs, input.Close())
	}
	return errors.Join(errs...)
}

// CheckContexts returns a sentence for each difference between a context and its source: how it was
// unpacked and decoded, bytes that are not UTF-8, and files that were left out. It reads each text
// once.
func (s *Session) CheckContexts(ctx context.Context) ([]string, error) {
	ctx, leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()

	var notes []string
	for _, in := range s.allInputs() {
		for _, note := range in.Notes {
			notes = append(notes, fmt.Sprintf("context %s: %s", in.Name, note))
		}
		if text, ok := in.Text.(*bigtext.Text); ok && !text.IsBinary() {
			if note := describeInvalid(ctx, text); note != "" {
				notes = append(notes, fmt.Sprintf("context %s: %s", in.Name, note))
			}
		}
	}
	return notes, context.Cause(ctx)
}

// describeInvalid describes the bytes of a text that are not UTF-8, or returns "" if there are
// none. It ignores errors, because a snippet that uses the text receives them again.
func describeInvalid(ctx context.Context, text *bigtext.Text) string {
	invalid, err := text.Invalid(ctx)
	if err != nil || invalid == 0 {
		return ""
	}
	first, err := text.FirstInvalid(ctx)
	if err != nil {
		return ""
	}

	bytes, see := "1 byte is", "it as one of"
	if invalid > 1 {
		bytes, see = quantity.Comma(invalid)+" bytes are", "them as"
	}
	return fmt.Sprintf("%s not UTF-8, the first at byte %s; the snippet sees %s U+DC80 to U+DCFF",
		bytes, quantity.Comma(first), see)
}
