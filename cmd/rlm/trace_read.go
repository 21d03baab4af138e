package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/internal/texts"
	"github.com/rlmhq/rlm/internal/trajectory"
	"github.com/rlmhq/rlm/repl/ledger"
)

// Bounds of a record. It may come from anywhere, so it is untrusted.
const (
	maxTraceLine  = 16 << 20 // bytes
	maxTraceTurns = 10_000   // of one loop
	maxTraceLoops = 10_000
	maxTraceDepth = 32
	maxTraceNotes = 20     // about unreadable lines, of one file
	maxTraceText  = 20_000 // characters of an event; loops write fewer
)

// recordedLoop is one loop of a record.
type recordedLoop struct {
	folder   string
	metadata trajectory.Metadata
	turns    []recordedTurn
	subs     []*recordedLoop
	notes    []string
}

// recordedTurn is a line of a trajectory. It omits the prompt, which repeats earlier lines.
type recordedTurn struct {
	Type       string                 `json:"type"`
	Iteration  int                    `json:"iteration"`
	Response   string                 `json:"response"`
	CodeBlocks []trajectory.CodeBlock `json:"code_blocks"`
	Final      json.RawMessage        `json:"final_answer"`
	Seconds    float64                `json:"iteration_time"`
}

// recordedRun is a whole record.
type recordedRun struct {
	root *recordedLoop
	// nodes hold the events of each loop by its node. They are empty without an events file.
	nodes  map[string]*recordedNode
	last   *ledger.Spending
	events int // number of events in the asides
	notes  []string
}

// recordedNode is the part of a loop's events that its trajectory lacks.
type recordedNode struct {
	begun, ended *ledger.Event
	tiers        []string // of its snippets, in order
	asides       []ledger.Event
}

// node returns the events of a loop, empty if there are none.
func (run *recordedRun) node(name string) *recordedNode {
	if n := run.nodes[name]; n != nil {
		return n
	}
	return &recordedNode{}
}

// traceReader reads a record's folder. Links cannot lead it out of the folder.
type traceReader struct {
	root  *os.Root
	loops int
}

func readTrace(dir string) (*recordedRun, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, fmt.Errorf("%w: name the folder that --trace wrote", err)
	}
	defer root.Close()
	r := &traceReader{root: root}
	run := &recordedRun{nodes: map[string]*recordedNode{}}
	if run.root, err = r.readLoop(".", 0); err != nil {
		if errors.Is(err, os.ErrNotExist) {
			err = fmt.Errorf("no %s in %s: name the folder that --trace wrote",
				trajectory.File, dir)
		}
		return nil, err
	}

	return run, r.addEvents(run)
}

// open opens a regular file.
func (r *traceReader) open(name string) (*os.File, error) {
	info, err := r.root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", name)
	}

	return r.root.Open(name)
}

// readLoop reads a loop's folder and the folders below it.
func (r *traceReader) readLoop(folder string, depth int) (*recordedLoop, error) {
	if r.loops++; r.loops > maxTraceLoops || depth > maxTraceDepth {
		return nil, fmt.Errorf("the record has more than %d loops, or nests them deeper than %d",
			maxTraceLoops, maxTraceDepth)
	}

	file, err := r.open(folder + "/" + trajectory.File)
	if err != nil {
		return nil, err
	}
	l := &recordedLoop{folder: folder}
	err = errors.Join(l.read(file), file.Close())
	if err != nil {
		return nil, err
	}

	names, err := r.listFolders(folder)
	if err != nil {
		return nil, err
	}
	for _, name := range names {
		sub, err := r.readLoop(folder+"/"+name, depth+1)
		if errors.Is(err, os.ErrNotExist) {
			continue // not the folder of a loop
		}
		if err != nil {
			return nil, err
		}

		l.subs = append(l.subs, sub)
	}

	return l, nil
}

// listFolders returns the names of the sub-loops' folders, in order.
func (r *traceReader) listFolders(folder string) ([]string, error) {
	dir, err := r.root.Open(folder)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	entries, err := dir.ReadDir(maxTraceLoops)
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
			return len(a) - len(b) // sub_10000 comes after sub_9999
		}
		return strings.Compare(a, b)
	})

	return names, nil
}

// read reads a trajectory.
func (l *recordedLoop) read(file io.Reader) error {
	return readLines(file, &l.notes, func(line []byte) error {
		var turn recordedTurn
		if err := json.Unmarshal(line, &turn); err != nil {
			return err
		}
		if turn.Type == "metadata" {
			return json.Unmarshal(line, &l.metadata)
		}
		if len(l.turns) >= maxTraceTurns {
			return fmt.Errorf("there are more than %d turns", maxTraceTurns)
		}

		l.turns = append(l.turns, turn)
		return nil
	})
}

// addEvents reads the events file, which has facts that the trajectories lack.
func (r *traceReader) addEvents(run *recordedRun) error {
	file, err := r.open(trajectory.EventsFile)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()

	return run.readEvents(file)
}

func (run *recordedRun) readEvents(file io.Reader) error {
	return readLines(file, &run.notes, func(line []byte) error {
		var e ledger.Event
		if err := json.Unmarshal(line, &e); err != nil {
			return err
		}
		if e.Spent != nil {
			run.last = e.Spent
		}

		run.keepEvent(&e)
		return nil
	})
}

// keepEvent keeps an event if the view shows it.
func (run *recordedRun) keepEvent(e *ledger.Event) {
	for _, text := range []*string{&e.Text, &e.Status, &e.Error, &e.Model, &e.Tier} {
		*text = texts.Truncate(*text, maxTraceText)
	}
	n := run.nodes[e.Node]
	if n == nil {
		if len(run.nodes) >= maxTraceLoops {
			return
		}
		n = &recordedNode{}
		run.nodes[e.Node] = n
	}

	switch {
	case e.Kind == ledger.EventRunStarted || e.Kind == ledger.EventLoopStarted:
		n.begun = e
	case e.Kind == ledger.EventRunEnded || e.Kind == ledger.EventLoopEnded:
		n.ended = e
	case e.Kind == ledger.EventSnippet && len(n.tiers) < maxTraceTurns:
		n.tiers = append(n.tiers, e.Tier)
	case isAside(e) && run.events < maxTraceTurns:
		run.events++
		n.asides = append(n.asides, *e)
	}
}

// isAside reports whether an event gets a line outside the turns: a model call that belongs
// to no turn, a verdict, a retry, a refusal, a warning or a wait.
func isAside(e *ledger.Event) bool {
	switch e.Kind { //nolint:exhaustive // the others are in the trajectories
	case ledger.EventReply:
		return e.Error != "" ||
			slices.Contains([]string{"critique", "embedding", "compaction", "synthesis", "bypass"}, e.Purpose)
	case ledger.EventVerdict, ledger.EventRetry, ledger.EventRefusal, ledger.EventWarning,
		ledger.EventWaiting:
		return true
	}

	return false
}

// readLines passes the lines of a file to take, and notes the unreadable ones.
func readLines(file io.Reader, notes *[]string, take func(line []byte) error) error {
	r := bufio.NewReaderSize(file, 64<<10)
	for number := 1; ; number++ {
		line, whole, err := readBoundedLine(r)
		if err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		if len(bytes.TrimSpace(line)) > 0 {
			problem := take(line)
			if !whole {
				problem = fmt.Errorf("it is longer than %d MiB", maxTraceLine>>20)
			} else if problem != nil && err != nil {
				problem = errors.New("it is incomplete: the run may have been killed")
			}
			if problem != nil && len(*notes) < maxTraceNotes {
				*notes = append(*notes, fmt.Sprintf("line %d is left out: %v", number, problem))
			}
		}

		if err != nil {
			return nil //nolint:nilerr // the end of the file
		}
	}
}

// readBoundedLine reads a line, of which it keeps no more than maxTraceLine.
func readBoundedLine(r *bufio.Reader) (line []byte, whole bool, err error) {
	whole = true
	for {
		piece, err := r.ReadSlice('\n')
		if len(line)+len(piece) <= maxTraceLine {
			line = append(line, piece...)
		} else {
			whole = false
		}

		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, whole, err
		}
	}
}
