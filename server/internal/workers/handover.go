//go:build linux && (amd64 || arm64)

package workers

import (
	"archive/zip"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"sync"

	"golang.org/x/sys/unix"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/internal/data/pyfolder"
	"github.com/rlmhq/rlm/tiers"
)

// handOver sends inputs to a worker, and returns their descriptions.
func (w *worker) handOver(ctx context.Context, list []tiers.Input) ([]inputParams, error) {
	all := []inputParams{}
	for i, in := range list {
		p := inputParams{Name: in.Name, Variable: in.Variable}
		if err := w.handOverOne(ctx, in, &p); err != nil {
			return nil, fmt.Errorf("cannot hand input %d (%s) to a worker: %w", i, in.Name, err)
		}
		all = append(all, p)
	}

	return all, nil
}

// handOverOne sends an input. The worker refuses an input that does not have exactly one value.
func (w *worker) handOverOne(ctx context.Context, in tiers.Input, p *inputParams) (err error) {
	if in.Text != nil {
		text, err := bigtext.Of(ctx, in.Text)
		if err != nil {
			return err
		}
		sent, err := w.sendText(text)
		if err != nil {
			return err
		}
		p.Text = &sent
	}

	if in.Dir != nil {
		if p.Dir, err = w.sendListing(in.Dir); err != nil {
			return err
		}
	}
	if in.Value != nil {
		p.Value, err = w.sendBytes(in.Value)
	}

	return err
}

// sendText sends the file of a text, and the file of its original.
func (w *worker) sendText(text *bigtext.Text) (p textParams, err error) {
	if err := text.Changed(); err != nil {
		return p, err
	}
	p.Handed = text.HandOver()
	texts := []*bigtext.Text{text}
	if original := text.Original(); original != text {
		handed := original.HandOver()
		p.Original = &handed
		texts = append(texts, original)
	}

	var files, copies []*os.File
	defer func() { _ = closeAll(copies) }() // the copies are only read
	for _, one := range texts {
		file, isCopy, err := fileOf(one)
		if err != nil {
			return p, err
		}
		if isCopy {
			copies = append(copies, file)
		}
		files = append(files, file)
	}

	p.Files, err = w.send(files...)
	return p, err
}

// send sends files to the worker. If the worker does not accept the files, send ends it.
func (w *worker) send(files ...*os.File) (token, error) {
	t, err := w.sender.send(files...)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		w.end(CauseSilent, "it took no files for "+sendTimeout.String())
	}
	if err != nil {
		w.lose(err)
		<-w.gone
		return 0, errGone
	}
	return t, nil
}

// fileOf returns a file with the bytes of a text: the text's own file if it is read-only, or else a
// copy in memory.
func fileOf(text *bigtext.Text) (file *os.File, isCopy bool, err error) {
	if file = text.File(); file != nil {
		mode, err := unix.FcntlInt(file.Fd(), unix.F_GETFL, 0)
		if err == nil && mode&unix.O_ACCMODE == unix.O_RDONLY {
			return file, false, nil
		}
		// The file of a copy is open for writing, so this opens it again for reading.
		again, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", file.Fd()), os.O_RDONLY, 0)
		if err != nil {
			return nil, false, fmt.Errorf("cannot open %q for reading: %w", text.Name(), err)
		}
		return again, true, nil
	}

	file, err = sealedFile(func(f *os.File) error {
		_, err := io.Copy(f, io.NewSectionReader(text, 0, text.Size()))
		return err
	})
	return file, true, err
}

func (w *worker) sendListing(d tiers.Dir) (token, error) {
	var list listing
	for _, name := range d.Names() {
		size, err := d.Size(name)
		if err != nil {
			return 0, err
		}
		list.Names = append(list.Names, []byte(name))
		list.Sizes = append(list.Sizes, size)
	}

	data, err := json.Marshal(list)
	if err != nil {
		return 0, err
	}
	return w.sendBytes(data)
}

func (w *worker) sendBytes(data []byte) (token, error) {
	file, err := sealedBytes(data)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	return w.send(file)
}

// lend answers a worker's request for a text in an input.
func (s *sandbox) lend(ctx context.Context, w *worker, p textRequest) (textParams, error) {
	input, err := s.input(p.Input)
	if err != nil {
		return textParams{}, err
	}
	text, isOwn, err := findText(ctx, input, p)
	if err != nil {
		return textParams{}, failed("%v", err)
	}

	if isOwn {
		defer text.Close()
	}
	sent, err := w.sendText(text)
	if err != nil {
		return textParams{}, failed("%v", err)
	}
	return sent, nil
}

// findText returns the text that a worker requests, and whether the caller closes it.
func findText(ctx context.Context, in tiers.Input, p textRequest) (text *bigtext.Text, isOwn bool, err error) {
	if len(p.File) > 0 {
		if in.Dir == nil {
			return nil, false, errors.New("the input is no directory")
		}
		d, err := bigtext.DirOf(in.Dir)
		if err != nil {
			return nil, false, err
		}
		if p.Bytes {
			text, err = d.Bytes(ctx, string(p.File))
			return text, true, err
		}
		text, err = d.Text(ctx, string(p.File))
		if err != nil {
			return nil, false, err
		}
	} else {
		if in.Text == nil {
			return nil, false, errors.New("the input is no text")
		}
		if text, err = bigtext.Of(ctx, in.Text); err != nil {
			return nil, false, err
		}
	}

	if p.Page != nil {
		picture, err := text.DrawPage(ctx, *p.Page, p.DPI)
		return bigtext.FromBytes(text.Name(), picture), true, err
	}
	if p.Table != nil {
		text, err = text.Table(ctx, *p.Table)
	}
	return text, false, err
}

// packages caches the archive of an engine's packages.
type packages struct {
	mu   sync.Mutex
	of   *pyfolder.Folder
	file *os.File
}

// send sends the packages as a zip archive.
func (a *packages) send(w *worker, files fs.FS) (token, error) {
	if files == nil {
		return 0, nil
	}
	folder, err := pyfolder.Open(files)
	if err != nil {
		return 0, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.file == nil || a.of != folder {
		made, err := sealedFile(func(f *os.File) error {
			archive := zip.NewWriter(f)
			return errors.Join(archive.AddFS(folder), archive.Close())
		})
		if err != nil {
			return 0, fmt.Errorf("cannot hand the packages to a worker: %w", err)
		}
		if a.file != nil {
			_ = a.file.Close() // the file is in memory
		}
		a.of, a.file = folder, made
	}

	return w.send(a.file)
}

func (a *packages) close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.file == nil {
		return nil
	}
	file := a.file
	a.file, a.of = nil, nil
	return file.Close()
}
