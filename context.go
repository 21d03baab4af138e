package rlm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"github.com/dustin/go-humanize"
	"github.com/dustin/go-humanize/english"

	"github.com/rlmhq/rlm/internal/bigtext"
	"github.com/rlmhq/rlm/tiers"
)

// Context is an input of snippets: see [File], [Text], [Reader] and [Value].
type Context struct {
	name string
	open func(ctx context.Context) (tiers.Input, error)
}

// File is a text file of any size, or a directory of them. The file is mapped, not read. It
// must not change while the session lives; a change is an error, not a wrong answer.
func File(path string) Context {
	return Context{path, func(context.Context) (tiers.Input, error) {
		info, err := os.Stat(path)
		if err != nil {
			return tiers.Input{}, err
		}
		if info.IsDir() {
			return openDir(path)
		}
		text, err := bigtext.Open(path)
		if err != nil {
			return tiers.Input{}, err
		}
		return refuseEmpty(text)
	}}
}

func openDir(path string) (tiers.Input, error) {
	dir, err := bigtext.OpenDir(path)
	if err != nil {
		return tiers.Input{}, err
	}
	if len(dir.Names()) == 0 {
		return tiers.Input{}, errors.Join(errors.New("the directory has no files"), dir.Close())
	}
	return tiers.Input{Dir: dir}, nil
}

// refuseEmpty wraps a text as an input. An empty text is an error: it always shows a mistake
// of the caller.
func refuseEmpty(text *bigtext.Text) (tiers.Input, error) {
	if text.Size() == 0 {
		return tiers.Input{}, errors.Join(errors.New("it is empty"), text.Close())
	}
	return tiers.Input{Text: text}, nil
}

// Text is a text in memory.
func Text(name, text string) Context {
	return Context{name, func(context.Context) (tiers.Input, error) {
		return tiers.Input{Text: bigtext.FromBytes(name, []byte(text))}, nil
	}}
}

// Reader is a stream. It is copied to an unnamed temporary file of at most limit bytes.
func Reader(name string, r io.Reader, limit int64) Context {
	return Context{name, func(ctx context.Context) (tiers.Input, error) {
		text, err := bigtext.Spool(ctx, r, limit)
		if err != nil {
			return tiers.Input{}, err
		}
		return refuseEmpty(text)
	}}
}

// Value is a Go value. Snippets see its JSON, decoded.
func Value(name string, value any) Context {
	return Context{name, func(context.Context) (tiers.Input, error) {
		data, err := json.Marshal(value)
		return tiers.Input{Value: data}, err
	}}
}

// inputs are what a session and its forks have in common: the opened contexts.
type inputs struct {
	list  []tiers.Input
	graph io.Closer // what the functions over a graph need, nil for none
	users atomic.Int32
}

func openContexts(ctx context.Context, contexts []Context) (*inputs, error) {
	in := &inputs{}
	for _, c := range contexts {
		if c.open == nil {
			err := errors.New("cannot use an empty Context: make it with File, Text, Reader or Value")
			return nil, errors.Join(err, in.close())
		}
		input, err := c.open(ctx)
		if err != nil {
			err = fmt.Errorf("cannot use context %q: %w", c.name, err)
			return nil, errors.Join(err, in.close())
		}
		input.Name = c.name
		in.list = append(in.list, input)
	}
	return in, nil
}

func (in *inputs) share() *inputs {
	in.users.Add(1)
	return in
}

// release closes the inputs when their last session is gone.
func (in *inputs) release() error {
	if in.users.Add(-1) != 0 {
		return nil
	}
	return in.close()
}

func (in *inputs) close() error {
	var errs []error
	if in.graph != nil {
		errs = append(errs, in.graph.Close())
	}
	for _, input := range in.list {
		if text, ok := input.Text.(io.Closer); ok {
			errs = append(errs, text.Close())
		}
		if dir, ok := input.Dir.(io.Closer); ok {
			errs = append(errs, dir.Close())
		}
	}
	return errors.Join(errs...)
}

// CheckContexts returns a sentence for each context that snippets do not see as it is:
// bytes that are not UTF-8, links and special files of a directory. It reads the texts once.
func (s *Session) CheckContexts(ctx context.Context) ([]string, error) {
	ctx, leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()

	var notes []string
	for _, in := range s.allInputs() {
		if dir, ok := in.Dir.(*bigtext.Dir); ok && dir.Skipped() > 0 {
			left := english.Plural(dir.Skipped(), "link or special file", "links or special files")
			notes = append(notes, fmt.Sprintf("context %s: left out: %s", in.Name, left))
		}
		if text, ok := in.Text.(*bigtext.Text); ok {
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
