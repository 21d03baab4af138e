package rlm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"sync/atomic"

	"github.com/rlmhq/rlm/internal/bigtext"
	"github.com/rlmhq/rlm/tiers"
)

// Context is something for snippets to work on: see [File], [Text], [Reader] and
// [Value].
type Context struct {
	name string
	open func(ctx context.Context) (tiers.Input, error)
}

// File is a text file of any size, or a directory of them. The file is mapped,
// not read: it must stay as it is while the session lives, and a change is an
// error, not a wrong answer.
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
		return whole(text)
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

// whole refuses a text without a single byte: it is always a mistake upstream.
func whole(text *bigtext.Text) (tiers.Input, error) {
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

// Reader is a stream, copied to an unnamed temporary file of at most limit
// bytes.
func Reader(name string, r io.Reader, limit int64) Context {
	return Context{name, func(ctx context.Context) (tiers.Input, error) {
		text, err := bigtext.Spool(ctx, r, limit)
		if err != nil {
			return tiers.Input{}, err
		}
		return whole(text)
	}}
}

// Value is a Go value, which snippets see as its JSON decoded.
func Value(name string, value any) Context {
	return Context{name, func(context.Context) (tiers.Input, error) {
		data, err := json.Marshal(value)
		return tiers.Input{Value: data}, err
	}}
}

// Input opens the context for a loop of package repl, whose caller keeps it open
// and then calls done.
func (c Context) Input(ctx context.Context) (input tiers.Input, done func() error, err error) {
	in, err := openContexts(ctx, []Context{c})
	if err != nil {
		return tiers.Input{}, nil, err
	}
	return in.list[0], in.close, nil
}

// inputs are the opened contexts of a session and its forks.
type inputs struct {
	list  []tiers.Input
	users atomic.Int32
}

func openContexts(ctx context.Context, contexts []Context) (*inputs, error) {
	in := &inputs{}
	for _, c := range contexts {
		if c.open == nil {
			return nil, errors.Join(errors.New("a Context is made by File, Text, Reader or Value"), in.close())
		}
		input, err := c.open(ctx)
		if err != nil {
			return nil, errors.Join(fmt.Errorf("cannot use context %q: %w", c.name, err), in.close())
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
