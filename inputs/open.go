package inputs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/rlmhq/rlm/internal/data/bigtext"
	"github.com/rlmhq/rlm/internal/data/openfile"
	"github.com/rlmhq/rlm/internal/data/remote"
	"github.com/rlmhq/rlm/tiers"
)

// Open opens one context. A single path of a file returns a text, or a folder if the file is an
// archive. A folder, a pattern such as "logs/*.gz" or several paths return a folder; its names are
// relative to the deepest folder that contains all of them. A pipe is copied, and so is the file at
// an address such as "https://example.com/app.log" or "s3://bucket/app.log". An S3 address that
// ends in a slash, or is a pattern, returns a folder, with files that are copied when they are
// used.
//
// The files must not change while the input is in use. Close the input after the sandbox.
func Open(ctx context.Context, o Options, paths ...string) (tiers.Input, error) {
	r, err := newReader(o)
	if err != nil {
		return tiers.Input{}, err
	}
	if len(paths) == 0 {
		return tiers.Input{}, errors.New("no path is given")
	}
	if i := slices.IndexFunc(paths, remote.IsAddress); i >= 0 {
		if len(paths) > 1 {
			return tiers.Input{}, errors.New("a file of a server cannot be one of several paths: " +
				"make it a context of its own")
		}
		return r.openRemote(ctx, paths[i])
	}

	if len(paths) > 1 || isPattern(paths[0]) {
		return r.openSeveral(ctx, paths)
	}
	return r.openOne(ctx, paths[0])
}

// Read opens a stream as the content of a file with that name. It copies at most limit bytes. It
// does not interrupt a blocked Read: close the stream to do so.
func Read(ctx context.Context, o Options, name string, stream io.Reader, limit int64) (tiers.Input, error) {
	r, err := newReader(o)
	if err != nil {
		return tiers.Input{}, err
	}
	text, err := bigtext.Spooled(ctx, name, stream, limit, func() error { return nil })
	if err != nil {
		return tiers.Input{}, err
	}
	return r.openText(ctx, text)
}

// openOne opens the file or folder at path.
func (r *reader) openOne(ctx context.Context, path string) (tiers.Input, error) {
	info, err := os.Stat(path)

	switch {
	case err != nil:
		return tiers.Input{}, err
	case info.IsDir():
		return r.openFolder(ctx, path, []string{"."})
	case r.FilesOnly && !info.Mode().IsRegular():
		return tiers.Input{}, openfile.Check(info)
	case info.Mode()&os.ModeNamedPipe != 0:
		text, err := r.readPipe(ctx, path)
		if err != nil {
			return tiers.Input{}, err
		}
		return r.openText(ctx, text)
	case info.Mode().IsRegular() && info.Size() == 0:
		return r.openUnsized(ctx, path)
	}

	text, err := bigtext.Open(path)
	if err != nil {
		return tiers.Input{}, err
	}
	return r.openText(ctx, text)
}

// readPipe copies the data from a pipe. It waits for a writer, and stops when ctx ends.
func (r *reader) readPipe(ctx context.Context, path string) (*bigtext.Text, error) {
	pipe, err := openfile.Pipe(ctx, path)
	if err != nil {
		return nil, fmt.Errorf("cannot open the pipe: %w", err)
	}
	text, err := bigtext.Spooled(ctx, path, pipe, r.MaxUnpacked, pipe.Close)
	if ctx.Err() != nil && err != nil {
		return nil, context.Cause(ctx)
	}
	return text, err
}

// openUnsized opens a file that reports no size, because it is empty, or virtual like
// /proc/cpuinfo.
func (r *reader) openUnsized(ctx context.Context, path string) (tiers.Input, error) {
	file, err := openfile.Regular(path)
	if err != nil {
		return tiers.Input{}, err
	}
	defer context.AfterFunc(ctx, func() { _ = file.SetReadDeadline(time.Unix(1, 0)) })() // most never wait
	text, err := bigtext.Spooled(ctx, path, file, r.MaxUnpacked, file.Close)
	if err != nil {
		return tiers.Input{}, err
	}
	return r.openText(ctx, text)
}

// openText unpacks and decodes a text. It owns the text.
func (r *reader) openText(ctx context.Context, text *bigtext.Text) (tiers.Input, error) {
	if text.Size() == 0 { // always the caller's mistake
		return tiers.Input{}, errors.Join(errors.New("it is empty"), text.Close())
	}

	text, notes, err := r.unpack(ctx, text)
	if err != nil {
		return tiers.Input{}, err
	}
	begun := time.Now()
	name := filepath.Base(text.Name())
	stop := r.tellWhile(func() string {
		return fmt.Sprintf("converting %s: %s", name, time.Since(begun).Round(time.Second))
	})
	text, found, more, err := r.convert(ctx, text)
	stop()
	if err != nil {
		return tiers.Input{}, err
	}
	notes = append(notes, more...)
	if found == nil && isArchive(text) {
		return r.openArchive(ctx, text, notes)
	}
	if len(r.Include)+len(r.Exclude) > 0 {
		notes = append(notes, "it is a single file, so --include and --exclude have no effect on it")
	}
	if found != nil {
		return r.finishText(ctx, text, found, notes)
	}
	if text, err = r.decode(ctx, text); err != nil {
		return tiers.Input{}, err
	}
	return r.finishText(ctx, text, nil, notes)
}

// finishText finds the tables in a text. It owns the text.
func (r *reader) finishText(
	ctx context.Context, text *bigtext.Text, found *document, notes []string,
) (tiers.Input, error) {
	more, err := r.findTables(ctx, text, found)
	if err != nil {
		return tiers.Input{}, errors.Join(err, text.Close())
	}
	if found == nil && len(text.Tables()) == 0 {
		notes = append(notes, r.describeText(ctx, text)...)
	}
	return tiers.Input{Text: text, Notes: append(notes, more...)}, nil
}

// openSeveral opens the files and folders that match the paths and patterns.
func (r *reader) openSeveral(ctx context.Context, paths []string) (tiers.Input, error) {
	found, err := r.findPaths(ctx, paths)
	if err != nil {
		return tiers.Input{}, err
	}
	return r.openFolder(ctx, found.base, found.names, describeLeftOut(found.leftOut)...)
}

// openFolder opens a folder with the named files, relative to it.
func (r *reader) openFolder(
	ctx context.Context, base string, names []string, notes ...string,
) (tiers.Input, error) {
	chosen := &choice{reader: r}
	if !r.ReadIgnored {
		if err := chosen.ignores.open(base); err != nil {
			return tiers.Input{}, err
		}
	}

	dir, err := bigtext.OpenFiles(base, names, bigtext.Selection{
		Enter: chosen.enter, Skip: chosen.skip, Load: r.loadMember,
	})
	if err != nil {
		return tiers.Input{}, err
	}
	return r.finishFolder(ctx, dir, "the directory has no files", notes)
}

// finishFolder checks a folder and examines its files. It owns the folder.
func (r *reader) finishFolder(
	ctx context.Context, dir *bigtext.Dir, empty string, notes []string,
) (tiers.Input, error) {
	notes = append(notes, describeLeftOut(dir.LeftOut())...)
	if len(dir.Names()) == 0 {
		for _, note := range notes {
			empty += "; " + note
		}
		return tiers.Input{}, errors.Join(errors.New(empty), dir.Close())
	}

	more, err := r.survey(ctx, dir)
	if err != nil {
		return tiers.Input{}, errors.Join(err, dir.Close())
	}
	return tiers.Input{Dir: dir, Notes: append(notes, more...)}, nil
}

// loadMember unpacks, converts or decodes a file in a folder. An archive in a folder remains
// unchanged.
func (r *reader) loadMember(ctx context.Context, text *bigtext.Text) (*bigtext.Text, error) {
	if text.Size() == 0 {
		return text, nil
	}
	text, _, err := r.unpack(ctx, text)
	if err != nil {
		return nil, err
	}
	text, found, _, err := r.convert(ctx, text)
	if err == nil && found == nil {
		text, err = r.decode(ctx, text)
	}
	if err != nil {
		return nil, err
	}
	if _, err := r.findTables(ctx, text, found); err != nil {
		return nil, errors.Join(err, text.Close())
	}
	return text, nil
}

// absolute returns the absolute path, with all links resolved.
func absolute(path string) (string, error) {
	resolved, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	whole, err := filepath.Abs(resolved)
	if err != nil {
		return "", fmt.Errorf("cannot find %q: %w", path, err)
	}
	return whole, nil
}
