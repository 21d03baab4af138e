package memory

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
	"unicode/utf8"

	"github.com/rogpeppe/go-internal/lockedfile"

	"github.com/rlmhq/rlm/graph"
)

// Bounds of a file and of one line, in bytes.
const (
	maxFile = 256 << 20
	maxLine = 4 << 20
)

// maxSequence leaves room for more runs, and can be represented exactly as a float.
const maxSequence = 1 << 52

// File is a graph file that runs write to.
type File struct {
	path string
	now  func() time.Time
}

// Open returns the memory in a file, which need not exist. The name must end in .jsonl. Open does
// not read the file; Load does.
func Open(path string) (*File, error) {
	if filepath.Ext(path) != ".jsonl" {
		return nil, fmt.Errorf(
			"cannot use the memory file %q: it must be JSON Lines, so name it FILE.jsonl", path)
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("cannot use the memory file %q: its folder does not exist", path)
	}

	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target // writes replace the target, not the link
	}
	return &File{path: path, now: time.Now}, nil
}

// Load adds the recorded findings to a graph. For a damaged file, the error names the line, and
// the graph stays unchanged.
func (f *File) Load(ctx context.Context, g *graph.Graph) error {
	isThere, err := f.check()
	if isThere && err == nil {
		_, err = g.Load(ctx, graph.LoadOptions{Format: "jsonl", MaxBytes: maxFile}, f.path)
	}
	if err != nil {
		return fmt.Errorf("cannot read the memory %q: %w", f.path, err)
	}
	return nil
}

// check reports whether the file exists. It does not open the file, since opening a pipe could
// block.
func (f *File) check() (isThere bool, err error) {
	info, err := os.Stat(f.path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case !info.Mode().IsRegular() || info.Size() > maxFile:
		return false, fmt.Errorf("it is not a file of at most %d MiB", maxFile>>20)
	}
	return true, nil
}

// record is a line to add.
type record struct {
	Type       string         `json:"type"` // node or relationship
	ID         string         `json:"id"`
	Labels     []string       `json:"labels,omitempty"`
	Label      string         `json:"label,omitempty"` // a relationship's label
	Properties map[string]any `json:"properties,omitempty"`
	Start      *end           `json:"start,omitempty"`
	End        *end           `json:"end,omitempty"`
}

// end is one end of a relationship.
type end struct {
	ID string `json:"id"`
}

// add appends records to the file. The first record, a node, gets the next sequence number.
func (f *File) add(found []record) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot use the memory file %q: %w", f.path, err)
		}
	}()
	unlock, err := lockedfile.MutexAt(f.path + ".lock").Lock()
	if err != nil {
		return err
	}
	defer unlock()

	temp, err := os.CreateTemp(filepath.Dir(f.path), ".memory-*") // with mode 0600
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(temp.Name()) }() // after the rename it no longer exists
	err = errors.Join(f.write(temp, found), temp.Close())
	if err != nil {
		return err
	}
	return os.Rename(temp.Name(), f.path)
}

// write writes the old lines and the new records.
func (f *File) write(temp *os.File, found []record) error {
	w := bufio.NewWriter(temp)
	last, err := f.copyTo(w)
	if err != nil {
		return err
	}

	found[0].Properties["sequence"] = last + 1
	for i := range found {
		line, err := json.Marshal(found[i])
		if err != nil {
			return err
		}
		if _, err := fmt.Fprintf(w, "%s\n", line); err != nil {
			return err
		}
	}
	if err := errors.Join(w.Flush(), temp.Sync()); err != nil {
		return err
	}

	if info, err := temp.Stat(); err != nil || info.Size() > maxFile {
		full := fmt.Errorf("it would have more than %d MiB: begin another file", maxFile>>20)
		return errors.Join(err, full)
	}
	return f.keepMode(temp)
}

// keepMode copies the permissions of the old file to the new one.
func (f *File) keepMode(temp *os.File) error {
	info, err := os.Stat(f.path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	return temp.Chmod(info.Mode().Perm())
}

// copyTo copies the file and returns the greatest sequence number of its lines.
func (f *File) copyTo(w io.Writer) (last int64, err error) {
	if isThere, err := f.check(); !isThere {
		return 0, err
	}
	file, err := os.Open(f.path)
	if err != nil {
		return 0, err
	}
	defer file.Close()

	lines := bufio.NewScanner(file)
	lines.Buffer(nil, maxLine)
	for number := 1; lines.Scan(); number++ {
		line := bytes.TrimSpace(lines.Bytes())
		sequence, err := readSequence(line)
		if err != nil {
			return 0, fmt.Errorf("line %d: %w", number, err)
		}
		last = max(last, sequence)
		if _, err := fmt.Fprintf(w, "%s\n", line); err != nil {
			return 0, err
		}
	}
	return last, lines.Err()
}

// readSequence returns the sequence number of a line, or 0 if it has none. A line may be empty.
func readSequence(line []byte) (int64, error) {
	if len(line) == 0 {
		return 0, nil
	}
	if line[0] != '{' || !utf8.Valid(line) {
		return 0, errors.New("it is not a JSON object in UTF-8")
	}
	var node struct {
		Sequence   any // set in a node without Properties
		Properties struct{ Sequence any }
	}
	if err := json.Unmarshal(line, &node); err != nil {
		return 0, err
	}

	most := 0.0
	for _, value := range []any{node.Sequence, node.Properties.Sequence} {
		if number, ok := value.(float64); ok {
			most = max(most, number)
		}
	}
	if most > maxSequence {
		return 0, fmt.Errorf("its sequence is greater than %d", int64(maxSequence))
	}
	return int64(most), nil
}
