package rlm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"

	"github.com/dustin/go-humanize"

	"github.com/rlmhq/rlm/inputs"
	"github.com/rlmhq/rlm/internal/bigtext"
	"github.com/rlmhq/rlm/internal/protocol"
	"github.com/rlmhq/rlm/internal/remote"
	"github.com/rlmhq/rlm/tiers"
)

// Context is an input of snippets: see [File], [Files], [Text], [Reader] and [Value].
type Context struct {
	name     string
	open     func(ctx context.Context) (tiers.Input, error)
	variable string
}

// As returns the context with a further name for snippets of Python, besides context or
// context_1. It must be an identifier that is not taken.
func (c Context) As(variable string) Context {
	c.variable = variable
	return c
}

// File is the file or folder at path, read as [Files] with default options reads it.
func File(path string) Context { return Files(inputs.Options{}, path) }

// Files is a file, a folder, or several of both. A text may be compressed and in any
// encoding; an archive is a folder: see package [inputs] and [inputs.Open]. Text in UTF-8 is
// mapped, not read. A file of a server is copied: see [inputs.Options.Servers] before you open
// addresses of strangers. The files must not change while the session lives; a change is an error, not
// a wrong answer.
func Files(o inputs.Options, paths ...string) Context {
	shown := make([]string, len(paths))
	for i, path := range paths {
		shown[i] = remote.Shorten(path)
	}
	return Context{name: strings.Join(shown, ", "), open: func(ctx context.Context) (tiers.Input, error) {
		return inputs.Open(ctx, o, paths...)
	}}
}

// Text is a text in memory.
func Text(name, text string) Context {
	return Context{name: name, open: func(context.Context) (tiers.Input, error) {
		return tiers.Input{Text: bigtext.FromBytes(name, []byte(text))}, nil
	}}
}

// Reader is a stream. It is copied to an unnamed temporary file of at most limit bytes, and
// read as [Files] with default options reads a file of that name.
func Reader(name string, r io.Reader, limit int64) Context {
	return Stream(inputs.Options{}, name, r, limit)
}

// Stream is Reader with options.
func Stream(o inputs.Options, name string, r io.Reader, limit int64) Context {
	return Context{name: name, open: func(ctx context.Context) (tiers.Input, error) {
		return inputs.Read(ctx, o, name, r, limit)
	}}
}

// Value is a Go value. Snippets see its JSON, decoded.
func Value(name string, value any) Context {
	return Context{name: name, open: func(context.Context) (tiers.Input, error) {
		data, err := json.Marshal(value)
		return tiers.Input{Value: data}, err
	}}
}

// opened are the contexts of a session and its forks.
type opened struct {
	list  []tiers.Input
	users atomic.Int32
}

func openContexts(ctx context.Context, contexts []Context) (*opened, error) {
	in := &opened{}
	for _, c := range contexts {
		if c.open == nil {
			err := errors.New("cannot use an empty Context: make it with File, Files, Text, Reader or Value")
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

// release closes the inputs when their last session is gone.
func (in *opened) release() error {
	if in.users.Add(-1) != 0 {
		return nil
	}
	return in.close()
}

func (in *opened) close() error {
	var errs []error
	for _, input := range in.list {
		errs = append(errs, inputs.Close(input))
	}
	return errors.Join(errs...)
}

// CheckContexts returns a sentence for each thing that snippets do not see as it is: how a
// context was unpacked and decoded, bytes that are not UTF-8, and files that were left out. It
// reads the texts once.
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

// describeInvalid describes the bytes of a text that are not UTF-8, empty if there are none.
// It ignores errors, because a snippet that uses the text gets them again.
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
		bytes, see = humanize.Comma(invalid)+" bytes are", "them as"
	}
	return fmt.Sprintf("%s not UTF-8, the first at byte %s; the snippet sees %s U+DC80 to U+DCFF",
		bytes, humanize.Comma(first), see)
}
