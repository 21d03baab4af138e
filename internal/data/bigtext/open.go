package bigtext

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
)

// Open maps the regular file at path read-only. The error states whether path is missing,
// unreadable or not a regular file.
func Open(path string) (*Text, error) {
	// Stat precedes the open, because opening a FIFO or a device may have effects.
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("cannot open the context file: %w", err)
	}
	if err := regular(path, info); err != nil {
		return nil, err
	}

	f, err := os.OpenFile(path, os.O_RDONLY|openFlags, 0)
	if err != nil {
		return nil, fmt.Errorf("cannot open the context file: %w", err)
	}
	return fromFile(path, f)
}

func regular(name string, info os.FileInfo) error {
	if info.Mode().IsRegular() {
		return nil
	}
	what := "not a regular file"
	switch m := info.Mode(); {
	case m.IsDir():
		what = "a directory: give a file, or open it as a directory of texts"
	case m&os.ModeNamedPipe != 0:
		what = "a pipe: give it as standard input"
	case m&os.ModeSocket != 0:
		what = "a socket: give a file"
	case m&os.ModeDevice != 0:
		what = "a device: give a file"
	}
	return fmt.Errorf("cannot open the context file %q: it is %s", name, what)
}

// fromFile maps f, and takes ownership of it.
func fromFile(name string, f *os.File) (*Text, error) {
	t, err := mapText(name, f)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return t, nil
}

func mapText(name string, f *os.File) (*Text, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, fmt.Errorf("cannot open the context file %q: %w", name, err)
	}
	if err := regular(name, info); err != nil {
		return nil, err
	}
	if info.Size() > math.MaxInt {
		return nil, fmt.Errorf(
			"cannot map the context file %q of %d bytes: %w for this system: split the file",
			name, info.Size(), ErrTooLarge)
	}

	data, unmap, err := mapFile(f, int(info.Size()))
	if err != nil {
		return nil, fmt.Errorf("cannot map the context file %q: %w", name, err)
	}

	t := newText(name, data)
	t.file, t.state = f, info
	random, unmapRandom := mapRandom(f, len(data))
	if random != nil {
		t.random = random
	}
	unmapAll := func() error { return errors.Join(unmap(), unmapRandom()) }
	t.free = func() error { return errors.Join(unmapAll(), f.Close()) }
	err = t.protect(func() error { t.kind = sniffKind(name, t.random); return nil })
	if err != nil {
		return nil, errors.Join(err, unmapAll())
	}

	return t, nil
}

// Spool copies r to a temporary file without a name and maps that. The error wraps [ErrTooLarge] if
// r has more than bound bytes. The text's name is "stdin". Spool does not interrupt a blocked Read:
// close r to do so.
func Spool(ctx context.Context, r io.Reader, bound int64) (*Text, error) {
	return spoolAs(ctx, "stdin", r, bound)
}

// spaceStep is the number of bytes by which a copy grows between two checks of the free space.
const spaceStep = 64 << 20

func spoolAs(ctx context.Context, name string, r io.Reader, bound int64) (*Text, error) {
	f, remove, err := nameless()
	if err != nil {
		return nil, fmt.Errorf("cannot keep the input in a temporary file: %w", err)
	}
	if err := spool(ctx, f, r, bound); err != nil {
		return nil, errors.Join(err, f.Close(), remove())
	}

	t, err := fromFile(name, f)
	if err != nil {
		return nil, errors.Join(err, remove())
	}

	free := t.free
	t.free = func() error { return errors.Join(free(), remove()) }
	return t, nil
}

func spool(ctx context.Context, w io.Writer, r io.Reader, bound int64) error {
	buf := make([]byte, 1<<20)
	empty := 0
	for total, checked := int64(0), int64(0); ; {
		if err := ctx.Err(); err != nil {
			return err
		}
		if f, ok := w.(*os.File); ok && total >= checked && makeCopy == nil {
			checked = total + spaceStep
			if err := CheckSpace(f, spaceStep, total); err != nil {
				return fmt.Errorf("cannot keep the input in a temporary file: %w: free space there or set TMPDIR", err)
			}
		}
		n, err := r.Read(buf)
		if total += int64(n); total > bound {
			return fmt.Errorf(
				"cannot keep the input: %w: it has more than %d bytes: "+
					"raise the bound or give a file",
				ErrTooLarge, bound)
		}
		if _, werr := w.Write(buf[:n]); werr != nil {
			return fmt.Errorf(
				"cannot keep the input in a temporary file: %w: free space there or set TMPDIR",
				werr)
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return fmt.Errorf("cannot read the input: %w", err)
		}

		if empty++; n > 0 {
			empty = 0
		} else if empty > 100 {
			return fmt.Errorf("cannot read the input: %w", io.ErrNoProgress)
		}
	}
}
