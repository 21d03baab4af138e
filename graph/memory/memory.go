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

// File is a graph file that runs write to.
type File struct {
	path string
	now  func() time.Time
}

// Open returns the memory in a file, which need not exist. Its name must end in .jsonl. The
// file is read by Load.
func Open(path string) (*File, error) {
	if filepath.Ext(path) != ".jsonl" {
		return nil, fmt.Errorf(
			"cannot remember in %q: it must be JSON Lines, so name it FILE.jsonl", path)
	}
	if info, err := os.Stat(filepath.Dir(path)); err != nil || !info.IsDir() {
		return nil, fmt.Errorf("cannot remember in %q: its folder does not exist", path)
	}
	if target, err := filepath.EvalSymlinks(path); err == nil {
		path = target // the link stays
	}
	return &File{path: path, now: time.Now}, nil
}

// Load adds to a graph what is remembered until now. A damaged file is an error that names the
// line, and the graph is then as it was.
func (f *File) Load(ctx context.Context, g *graph.Graph) error {
	err := g.Update(ctx, func(u *graph.Update) error {
		var edges []graph.Edge // their nodes may come later
		_, err := f.read(io.Discard, func(r *record) error {
			if r.Type == typeEdge {
				edges = append(edges, r.edge())
				return nil
			}
			return u.AddNode(r.node())
		})

		for i := 0; i < len(edges) && err == nil; i++ {
			err = u.AddEdge(edges[i])
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("cannot read the memory %q: %w", f.path, err)
	}
	return nil
}

// record is a line.
type record struct {
	Type       string         `json:"type"` // node or relationship
	ID         string         `json:"id"`
	Labels     []string       `json:"labels,omitempty"`
	Label      string         `json:"label,omitempty"` // of a relationship
	Properties map[string]any `json:"properties,omitempty"`
	Start      *end           `json:"start,omitempty"`
	End        *end           `json:"end,omitempty"`
}

// end is a node of a relationship.
type end struct {
	ID string `json:"id"`
}

const (
	typeNode = "node"
	typeEdge = "relationship"
)

// maxSequence leaves room for further runs, also as a float.
const maxSequence = 1 << 52

func (r *record) check() error {
	switch {
	case r.sequence() > maxSequence:
		return fmt.Errorf("its sequence is greater than %d", maxSequence)
	case r.Type == typeNode && r.ID != "":
		return nil
	case r.Type == typeEdge && r.Label != "" && r.Start != nil && r.End != nil:
		return nil
	}

	return errors.New("it is neither a node with an id nor a relationship with label, start and end")
}

// sequence is the place of a run's first node among all runs, 0 for other records.
func (r *record) sequence() int64 {
	number, _ := r.Properties["sequence"].(json.Number)
	n, err := number.Int64()
	if err != nil { // also for none
		return 0
	}
	return n
}

func (r *record) node() graph.Node {
	return graph.Node{ID: r.ID, Labels: r.Labels, Properties: r.Properties}
}

func (r *record) edge() graph.Edge {
	return graph.Edge{
		ID: r.ID, From: r.Start.ID, To: r.End.ID, Type: r.Label, Properties: r.Properties,
	}
}

// read copies the file to w and passes its records to use. It returns the greatest sequence.
func (f *File) read(w io.Writer, use func(*record) error) (sequence int64, err error) {
	info, err := os.Stat(f.path) // before it is opened: a pipe would wait
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return 0, nil
	case err != nil:
		return 0, err
	case !info.Mode().IsRegular() || info.Size() > maxFile:
		return 0, fmt.Errorf("it is not a file of at most %d MiB", maxFile>>20)
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
		if len(line) == 0 {
			continue
		}

		r, err := parse(line)
		if err == nil {
			err = use(r)
		}
		if err != nil {
			return 0, fmt.Errorf("line %d: %w", number, err)
		}

		sequence = max(sequence, r.sequence())
		if _, err := fmt.Fprintf(w, "%s\n", line); err != nil {
			return 0, err
		}
	}
	return sequence, lines.Err()
}

// parse reads a line.
func parse(line []byte) (*record, error) {
	if !utf8.Valid(line) {
		return nil, errors.New("it is not UTF-8")
	}

	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.UseNumber()
	r := &record{}
	if err := decoder.Decode(r); err != nil {
		return nil, err
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("more text follows the object")
	}

	if err := r.check(); err != nil {
		return nil, err
	}
	return r, nil
}

// add appends records to the file. The first, a node, gets the next sequence.
func (f *File) add(found []record) (err error) {
	defer func() {
		if err != nil {
			err = fmt.Errorf("cannot remember in %q: %w", f.path, err)
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
	defer func() { _ = os.Remove(temp.Name()) }() // it is gone after the renaming
	err = errors.Join(f.write(temp, found), temp.Close())
	if err != nil {
		return err
	}
	return os.Rename(temp.Name(), f.path)
}

// write writes the old records and the new ones.
func (f *File) write(temp *os.File, found []record) error {
	if info, err := os.Stat(f.path); err == nil {
		if err := temp.Chmod(info.Mode().Perm()); err != nil {
			return err
		}
	}

	w := bufio.NewWriter(temp)
	last, err := f.read(w, func(*record) error { return nil })
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
	return nil
}
