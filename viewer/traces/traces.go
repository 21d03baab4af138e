// Package traces reads the records of runs that --trace writes, and other files with a JSON value
// on each line. A record may be from an untrusted source, so all costs of reading it are bounded.
package traces

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/rlmhq/rlm/internal/keep/trajectory"
	"github.com/rlmhq/rlm/internal/machine/filelock"
	"github.com/rlmhq/rlm/internal/text/texts"
	"github.com/rlmhq/rlm/repl/ledger"
)

// Limits on a record.
const (
	MaxLoops = 10_000
	MaxTurns = 10_000 // per loop

	maxDepth = 32
	maxText  = 20_000 // characters of an event; loops write fewer
)

// Metadata describes a loop.
type Metadata = trajectory.Metadata

// CodeBlock is a snippet of a turn, with its output.
type CodeBlock = trajectory.CodeBlock

// Rebuilt is a record that was rebuilt from a run log.
type Rebuilt = trajectory.Rebuilt

// Loop is a loop of a record.
type Loop struct {
	Folder   string
	Metadata trajectory.Metadata
	Turns    []Turn
	Subs     []*Loop
	Notes    []string // about lines that were left out
}

// Turn is a line of a trajectory. It omits the prompt, which repeats earlier lines.
type Turn struct {
	Type       string                 `json:"type"`
	Iteration  int                    `json:"iteration"`
	Timestamp  string                 `json:"timestamp"`
	Response   string                 `json:"response"`
	CodeBlocks []trajectory.CodeBlock `json:"code_blocks"`
	Final      json.RawMessage        `json:"final_answer"`
	Seconds    float64                `json:"iteration_time"`
}

// Ended returns when a turn ended, or the zero time if that is unknown.
func (t *Turn) Ended() time.Time {
	at, err := time.Parse(time.RFC3339Nano, t.Timestamp)
	if err != nil {
		return time.Time{}
	}
	return at
}

// Folder reads a record's folder. Links cannot lead out of the folder.
type Folder struct {
	Root *Loop

	root      *os.Root
	loops     int
	lines     Lines
	temporary string // a folder that Close deletes, or empty
}

// Open reads the loops of the folder that --trace wrote. The caller closes it.
func Open(dir string) (*Folder, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("%w: name the folder that --trace wrote", err)
	}
	f := &Folder{root: root}
	if f.Root, err = f.readLoop(".", 0); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			err = fmt.Errorf("no %s in %s: name the folder that --trace wrote", trajectory.File, dir)
		}
		return nil, errors.Join(err, root.Close())
	}
	return f, nil
}

// IsWritten reports whether a process is writing the record in a folder, and so has locked the
// events. It also returns true if this cannot be determined.
func IsWritten(dir string) bool {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return true
	}
	f := &Folder{root: root}
	defer f.Close()
	file, err := f.open(trajectory.EventsFile)
	if err != nil {
		return true
	}
	defer file.Close()
	isHeld, err := filelock.IsHeld(file)
	return isHeld || err != nil
}

// Close closes the folder.
func (f *Folder) Close() error {
	err := f.root.Close()
	if f.temporary != "" {
		err = errors.Join(err, os.RemoveAll(f.temporary))
	}
	return err
}

// open opens a regular file.
func (f *Folder) open(name string) (*os.File, error) {
	info, err := f.root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", name)
	}

	return f.root.Open(name)
}

// readLoop reads a loop's folder and the folders below it.
func (f *Folder) readLoop(folder string, depth int) (*Loop, error) {
	if f.loops++; f.loops > MaxLoops || depth > maxDepth {
		return nil, fmt.Errorf("the record has more than %d loops, or nests them deeper than %d",
			MaxLoops, maxDepth)
	}

	file, err := f.open(folder + "/" + trajectory.File)
	if err != nil {
		return nil, err
	}
	l := &Loop{Folder: folder}
	err = errors.Join(l.read(&f.lines, file), file.Close())
	if err != nil {
		return nil, err
	}

	names, err := f.listFolders(folder)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		sub, err := f.readLoop(folder+"/"+name, depth+1)
		if errors.Is(err, os.ErrNotExist) {
			continue // this is not the folder of a loop
		}
		if err != nil {
			return nil, err
		}

		l.Subs = append(l.Subs, sub)
	}

	return l, nil
}

// listFolders returns the names of the sub-loops' folders, in order.
func (f *Folder) listFolders(folder string) ([]string, error) {
	dir, err := f.root.Open(folder)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	entries, err := dir.ReadDir(MaxLoops)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}

	var names []string
	for _, entry := range entries {
		if entry.IsDir() && strings.HasPrefix(entry.Name(), "sub_") {
			names = append(names, entry.Name())
		}
	}

	slices.SortFunc(names, func(a, b string) int {
		if len(a) != len(b) {
			return len(a) - len(b) // so that sub_10000 comes after sub_9999
		}
		return strings.Compare(a, b)
	})

	return names, nil
}

// Read reads a trajectory, which describes one loop.
func Read(file io.Reader) (*Loop, error) {
	l := &Loop{Folder: "."}
	if err := l.read(&Lines{}, file); err != nil {
		return nil, err
	}
	return l, nil
}

func (l *Loop) read(lines *Lines, file io.Reader) error {
	notes, err := lines.Each(file, func(line []byte) error {
		var turn Turn
		if err := json.Unmarshal(line, &turn); err != nil {
			return err
		}
		if turn.Type == "metadata" {
			return json.Unmarshal(line, &l.Metadata)
		}
		if len(l.Turns) >= MaxTurns {
			return fmt.Errorf("there are more than %d turns", MaxTurns)
		}

		l.Turns = append(l.Turns, turn)
		return nil
	})
	l.Notes = append(l.Notes, notes...)
	return err
}

// NodeOf returns the name, in the events, of the sub-loop in the i-th folder. Loops that began at
// the same time may be numbered in a different order than their folders. In this case, the right
// number is in the sub-loop's metadata, after the name of l.
func (l *Loop) NodeOf(sub *Loop, i int, node string) string {
	own, _ := l.Metadata.EnvironmentKwargs["node"].(string)
	its, _ := sub.Metadata.EnvironmentKwargs["node"].(string)
	number, below := strings.CutPrefix(its, own+".")
	isNumber := strings.Trim(number, "0123456789") == "" && len(number) < 10
	if own != "" && below && isNumber {
		return node + "." + number
	}

	return fmt.Sprintf("%s.%d", node, i+1)
}

// Events passes the events of all loops to take, and returns notes about unreadable lines. If a
// record has no events, only its trajectories describe the run.
func (f *Folder) Events(take func(*ledger.Event)) (notes []string, err error) {
	file, err := f.open(trajectory.EventsFile)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer file.Close()
	return ReadEvents(&f.lines, file, take)
}

// ReadEvents passes the events in a file to take.
func ReadEvents(lines *Lines, file io.Reader, take func(*ledger.Event)) (notes []string, err error) {
	return lines.Each(file, func(line []byte) error {
		e := &ledger.Event{}
		if err := json.Unmarshal(line, e); err != nil {
			return err
		}
		for _, text := range []*string{&e.Text, &e.Status, &e.Error, &e.Model, &e.Tier} {
			*text = texts.Truncate(*text, maxText)
		}

		take(e)
		return nil
	})
}
