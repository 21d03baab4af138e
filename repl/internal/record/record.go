package record

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/rlmhq/rlm/internal/texts"
	"github.com/rlmhq/rlm/internal/trajectory"
	"github.com/rlmhq/rlm/repl/ledger"
)

// MaxText bounds each text of a sub-call in a trajectory, in characters: a
// thousand sub-calls with their chunks would make a second copy of the input.
const MaxText = 20_000

// BlockOf returns the record of code that ran.
func BlockOf(ran *ledger.Snippet, variables map[string]string) trajectory.CodeBlock {
	result := trajectory.CodeResult{
		Stdout: ran.Stdout, Stderr: ran.Stderr, Locals: variables,
		ExecutionTime: ran.Elapsed.Seconds(), RLMCalls: []trajectory.CallRecord{},
	}
	if t := FormatTraceback(ran); t != "" {
		result.Stderr += t
	}
	if result.Locals == nil {
		result.Locals = map[string]string{}
	}
	if ran.Final != nil {
		result.FinalAnswer = ran.Final.Value
	}

	for _, c := range ran.Calls {
		response := c.Response
		if c.Err != nil {
			response = texts.Truncate("Error: "+c.Err.Error(), MaxText)
		}
		result.RLMCalls = append(result.RLMCalls, trajectory.CallRecord{
			RootModel:     c.Model,
			Prompt:        c.Prompt,
			Response:      response,
			ExecutionTime: c.Elapsed.Seconds(),
			Agent:         c.Agent,
			UsageSummary: map[string]any{
				"model_usage_summaries": map[string]any{c.Model: map[string]any{
					"total_calls":         1,
					"total_input_tokens":  c.Usage.InputTokens,
					"total_output_tokens": c.Usage.OutputTokens,
				}},
			},
		})
	}

	return trajectory.CodeBlock{Code: ran.Source, Result: result}
}

// Trace writes the record of one loop into a folder: each line at once, by one write. A
// killed process loses at most the end of its last line, which then has no line end. A nil
// Trace writes nothing. It is safe for concurrent use.
type Trace struct {
	dir        string
	trajectory *lines
	events     *lines // of the root, shared by all
	root       bool

	mu       sync.Mutex
	children int
}

// lines is an append-only file of JSON lines.
type lines struct {
	mu     sync.Mutex
	file   *os.File
	err    error
	broken bool // a line could not be written whole
}

func openLines(name string) (*lines, error) {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil, fmt.Errorf("%w: name a new or empty folder", err)
	case err != nil:
		return nil, err
	}
	return &lines{file: file}, nil
}

// write appends a line. The first error stays, and the end of a run reports it. Nothing
// comes after a line that could not be written whole.
func (l *lines) write(v any) {
	data, err := json.Marshal(v)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil && !l.broken {
		_, err = l.file.Write(append(data, '\n'))
		l.broken = err != nil
	}

	if l.err == nil {
		l.err = err
	}
}

func (l *lines) close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return errors.Join(l.err, l.file.Close())
}

// Open begins the record of a run in a folder. It creates the folder if necessary and fails
// if the folder holds a trace.
func Open(dir string) (*Trace, error) {
	t, err := openTrace(dir)
	if err != nil {
		return nil, fmt.Errorf("cannot write the record of the run: %w", err)
	}
	if t.events, err = openLines(filepath.Join(dir, trajectory.EventsFile)); err != nil {
		return nil, errors.Join(
			fmt.Errorf("cannot write the record of the run: %w", err),
			t.trajectory.close(),
		)
	}

	t.root = true
	return t, nil
}

func openTrace(dir string) (*Trace, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	trajectory, err := openLines(filepath.Join(dir, trajectory.File))
	if err != nil {
		return nil, err
	}

	return &Trace{dir: dir, trajectory: trajectory}, nil
}

// Child begins the record of a sub-loop in a new folder below t's: the folders mirror the
// tree of calls.
func (t *Trace) Child() (*Trace, error) {
	if t == nil {
		return nil, nil //nolint:nilnil // documented: a nil Trace writes nothing
	}
	child, err := openTrace(t.Folder())
	if err != nil {
		return nil, fmt.Errorf("cannot write the record of a sub-loop: %w", err)
	}

	child.events = t.events
	return child, nil
}

// Folder takes the folder of the next sub-loop and returns its name, for a run that opens
// its own record there. It is empty for a nil Trace.
func (t *Trace) Folder() string {
	if t == nil {
		return ""
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.children++
	return filepath.Join(t.dir, fmt.Sprintf("sub_%04d", t.children))
}

// Begin writes the metadata, completed: the backend is that of the model's name.
func (t *Trace) Begin(m trajectory.Metadata) {
	if t == nil {
		return
	}
	m.Type = "metadata"
	m.Backend, _, _ = strings.Cut(m.RootModel, "/")
	m.BackendKwargs = map[string]any{}
	if m.RootModel != "" {
		m.BackendKwargs["model_name"] = m.RootModel
	}
	if m.EnvironmentKwargs == nil {
		m.EnvironmentKwargs = map[string]any{}
	}
	if m.OtherBackends == nil {
		m.OtherBackends = []string{}
	}

	t.trajectory.write(m)
}

// Turn writes an iteration.
func (t *Trace) Turn(i Iteration) {
	if t == nil {
		return
	}
	i.Type = "iteration"
	if i.CodeBlocks == nil {
		i.CodeBlocks = []trajectory.CodeBlock{}
	}
	if i.Timestamp == "" {
		i.Timestamp = time.Now().Format(time.RFC3339Nano)
	}

	t.trajectory.write(i)
}

// Event writes an event, to the one file of the whole tree.
func (t *Trace) Event(e ledger.Event) {
	if t == nil {
		return
	}
	t.events.write(e)
}

// Close ends the record and returns the first error of each file. Closing the root also
// ends the events.
func (t *Trace) Close() error {
	if t == nil {
		return nil
	}
	err := t.trajectory.close()
	if t.root {
		err = errors.Join(err, t.events.close())
	}
	if err != nil {
		return fmt.Errorf("cannot write the trace: %w", err)
	}

	return nil
}
