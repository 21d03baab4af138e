//go:build linux && (amd64 || arm64)

package workers

import (
	"bytes"
	"context"
	"errors"
	"io/fs"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/tiers"
)

// receive opens the inputs that the parent hands over. The session owns them.
func (b *box) receive(ctx context.Context, list []inputParams) ([]tiers.Input, error) {
	var all []tiers.Input
	first := len(b.inputs.list)
	for i, p := range list {
		in, err := b.receiveOne(ctx, first+i, p)
		if err != nil {
			return nil, err
		}
		in.Name, in.Variable = p.Name, p.Variable
		all = append(all, in)
		b.inputs.list = append(b.inputs.list, in)
	}

	return all, nil
}

func (b *box) receiveOne(ctx context.Context, number int, p inputParams) (in tiers.Input, err error) {
	if p.Text != nil {
		text, err := b.receiveText(ctx, *p.Text, textRequest{ofSession: ofSession{b.id}, Input: number})
		if err != nil {
			return in, err
		}
		in.Text = text
	}
	if p.Dir != 0 {
		if in.Dir, err = b.receiveDir(ctx, number, p); err != nil {
			return in, err
		}
	}

	if p.Value == 0 {
		return in, nil
	}

	file, err := b.worker.files.takeOne(ctx, p.Value)
	if err != nil {
		return in, err
	}
	defer file.Close()
	in.Value, err = readFile(file)
	return in, err
}

// receiveText opens a text that the parent sent. The parameter from identifies the text to the
// parent.
func (b *box) receiveText(
	ctx context.Context, p textParams, from textRequest,
) (*bigtext.Text, error) {
	files, err := b.worker.files.take(ctx, p.Files)
	if err != nil {
		return nil, err
	}
	var original *bigtext.Text
	switch {
	case p.Original == nil && len(files) == 1:
	case p.Original != nil && len(files) == 2:
		original, err = bigtext.Receive(*p.Original, files[1], nil, nil, nil)
		if err != nil {
			return nil, errors.Join(err, files[0].Close())
		}
	default:
		return nil, errors.Join(errors.New("the files of a text are missing"), closeAll(files))
	}

	return bigtext.Receive(p.Handed, files[0], original,
		func(ctx context.Context, table int) (*bigtext.Text, error) {
			rows := from
			rows.Table = &table
			return b.fetch(ctx, rows)
		},
		func(ctx context.Context, page, dpi int) ([]byte, error) {
			picture := from
			picture.Page, picture.DPI = &page, dpi
			return b.fetchBytes(ctx, picture)
		})
}

// fetchBytes requests a text from the parent, and copies its bytes.
func (b *box) fetchBytes(ctx context.Context, from textRequest) ([]byte, error) {
	text, err := b.fetch(ctx, from)
	if err != nil {
		return nil, err
	}
	defer text.Close()
	data, err := text.Raw(0, text.Size())
	return bytes.Clone(data), err
}

// fetch requests a text from the parent.
func (b *box) fetch(ctx context.Context, from textRequest) (*bigtext.Text, error) {
	if running, ok := ctx.Value(boxKey{}).(*box); ok {
		from.Session = running.id // which may be a fork of a closed session
	}
	var r textResult
	if err := b.worker.conn.Call(ctx, methodText, from, &r); err != nil {
		return nil, err
	}
	return b.receiveText(ctx, r.Text, from)
}

func (b *box) receiveDir(ctx context.Context, number int, p inputParams) (tiers.Dir, error) {
	file, err := b.worker.files.takeOne(ctx, p.Dir)
	if err != nil {
		return nil, err
	}
	var list listing
	if err := decodeFile(file, &list); err != nil {
		return nil, err
	}

	d := &dir{box: b, number: number, name: p.Name, sizes: map[string]int64{}}
	for i, name := range list.Names {
		d.names = append(d.names, string(name))
		d.sizes[string(name)] = list.Sizes[i]
	}
	return bigtext.DirOf(d)
}

// dir is a directory whose files the parent opens.
type dir struct {
	box    *box
	number int
	name   string
	names  []string
	sizes  map[string]int64
}

// Name implements the optional naming interface of package bigtext.
func (d *dir) Name() string { return d.name }

// Names implements tiers.Dir.
func (d *dir) Names() []string { return d.names }

// Size implements tiers.Dir.
func (d *dir) Size(name string) (int64, error) {
	size, ok := d.sizes[name]
	if !ok {
		return 0, fs.ErrNotExist
	}
	return size, nil
}

// OpenText opens a file as a text.
func (d *dir) OpenText(ctx context.Context, name string) (*bigtext.Text, error) {
	return d.box.fetch(ctx, textRequest{ofSession: ofSession{d.box.id}, Input: d.number, File: []byte(name)})
}

// Open implements tiers.Dir. Package bigtext prefers OpenText.
func (d *dir) Open(name string) (fs.File, error) {
	text, err := d.OpenText(context.Background(), name)
	if err != nil {
		return nil, err
	}
	defer text.Close()
	data, err := text.Raw(0, text.Size())
	if err != nil {
		return nil, err
	}

	return &memFile{bytes.NewReader(bytes.Clone(data)), name}, nil
}

// memFile is a file in memory.
type memFile struct {
	*bytes.Reader
	name string
}

// Stat implements fs.File.
func (*memFile) Stat() (fs.FileInfo, error) { return nil, errors.ErrUnsupported }

// Close implements fs.File.
func (*memFile) Close() error { return nil }
