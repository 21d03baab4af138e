package record

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rlmhq/rlm/internal/keep/runlog"
	"github.com/rlmhq/rlm/internal/keep/trajectory"
	"github.com/rlmhq/rlm/internal/text/texts"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
)

// MaxText bounds each string of a sub-call in a trajectory, in characters, because a thousand
// sub-calls with their chunks would be a second copy of the input.
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

// Trace writes the record of one loop, each line immediately and with a single write. If the
// process is killed, at most the last line is truncated and then lacks its line end. A nil Trace
// writes nothing. It is safe for concurrent use.
//
// A run with a run log stores its record there, and the files in its folder are written from the
// run log.
type Trace struct {
	files  *files      // the files of all loops; nil without files
	runLog *runlog.Log // nil without a run log
	folder string      // the loop's folder, relative to the root's: "" or such as "sub_0001/"

	mu       sync.Mutex
	children int
	prompt   []llm.Message // the last prompt in the run log
}

// Open begins the record of a run in a folder. It creates the folder if necessary and fails if
// the folder holds the record of another run. With a run log, dir may be empty for no folder. With
// neither, Open returns nil.
func Open(ctx context.Context, dir string) (*Trace, error) {
	t := &Trace{runLog: runlog.From(ctx)}
	if dir == "" && t.runLog == nil {
		return nil, nil //nolint:nilnil // documented: a nil Trace writes nothing
	}

	var err error
	if dir != "" {
		t.files = &files{dir: dir, open: map[string]*lines{}}
		err = t.begin(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot write the record of the run: %w", err)
	}
	return t, nil
}

// begin creates the files of the root. When a run resumes, a folder that an earlier process of
// the same run wrote is rewritten.
func (t *Trace) begin(ctx context.Context) error {
	if t.runLog == nil {
		return t.files.begin()
	}

	const pin = "folder of the record"
	dir, err := filepath.Abs(t.files.dir)
	if err != nil {
		return err
	}
	owned := t.runLog.Name() + " in " + dir // a fork has another name

	known, err := t.runLog.Pinned(ctx, pin)
	if err != nil {
		return err
	}
	f := &follower{files: t.files, isKnown: known == owned}
	t.runLog.Follow(f)
	if f.isKnown {
		return nil
	}

	// The process may be killed at any moment, so the run log claims the folder before it contains
	// files.
	if err := t.files.checkNew(); err != nil {
		return err
	}
	if err := t.runLog.Pin(ctx, pin, owned, true); err != nil {
		return err
	}
	return t.files.begin()
}

// Child begins the record of a sub-loop in a new folder below that of t, so that the folders mirror
// the tree of calls.
func (t *Trace) Child() (*Trace, error) {
	if t == nil {
		return nil, nil //nolint:nilnil // documented: a nil Trace writes nothing
	}
	child := &Trace{files: t.files, runLog: t.runLog, folder: t.next()}
	if t.runLog == nil {
		if err := t.files.add(child.folder + trajectory.File); err != nil {
			return nil, fmt.Errorf("cannot write the record of a sub-loop: %w", err)
		}
	}
	return child, nil
}

// next reserves the folder of the next sub-loop.
func (t *Trace) next() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.children++
	return fmt.Sprintf("%ssub_%04d/", t.folder, t.children)
}

// GoOnAfter records that another process wrote the records of the first sub-loops.
func (t *Trace) GoOnAfter(children int) {
	if t != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.children = children
	}
}

// Folder reserves the folder of the next sub-loop and returns its name, for a run that opens its
// own record there. It is empty if there is no folder.
func (t *Trace) Folder() string {
	if t == nil || t.files == nil {
		return ""
	}
	return filepath.Join(t.files.dir, filepath.FromSlash(t.next()))
}

// write adds a line to a file of the record.
func (t *Trace) write(k trajectory.Kept, line any) {
	var err error
	if k.Line, err = json.Marshal(line); err != nil {
		err = fmt.Errorf("a line of %s: %w", k.File, err)
		if t.files != nil {
			t.files.note(err)
		}
		return
	}
	if t.runLog == nil {
		t.files.write(k.File, k.Line)
	} else if !t.runLog.Trace(&k) && k.Prompt != nil {
		t.mu.Lock()
		defer t.mu.Unlock()
		t.prompt = nil // the next line cannot refer to this one
	}
}

// Begin writes the metadata and fills in the backend, which is the provider in the model's name.
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

	t.write(trajectory.Kept{File: t.folder + trajectory.File, Opens: t.folder == ""}, m)
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

	k := trajectory.Kept{File: t.folder + trajectory.File}
	if messages, ok := i.Prompt.([]llm.Message); ok && t.runLog != nil {
		k.Prompt = t.shorten(messages)
	}
	if k.Prompt != nil {
		i.Prompt = nil
	}
	t.write(k, i)
}

// shorten returns a prompt without the messages that it shares with the previous prompt, or nil if
// it cannot be written.
func (t *Trace) shorten(messages []llm.Message) *trajectory.Prompt {
	t.mu.Lock()
	defer t.mu.Unlock()
	p := &trajectory.Prompt{Same: CountSame(t.prompt, messages), New: []json.RawMessage{}}
	for i := range messages[p.Same:] {
		message, err := json.Marshal(&messages[p.Same+i])
		if err != nil {
			return nil
		}
		p.New = append(p.New, message)
	}
	t.prompt = messages

	return p
}

// CountSame returns the number of messages that two conversations share at the beginning.
func CountSame(a, b []llm.Message) (n int) {
	for n < min(len(a), len(b)) && isSame(&a[n], &b[n]) {
		n++
	}
	return n
}

func isSame(a, b *llm.Message) bool {
	return a.Role == b.Role && a.Content == b.Content &&
		slices.EqualFunc(a.Images, b.Images, func(a, b llm.Image) bool {
			return a.Type == b.Type && bytes.Equal(a.Data, b.Data)
		})
}

// Event writes an event to the single file of the whole tree.
func (t *Trace) Event(e ledger.Event) {
	if t == nil {
		return
	}
	t.write(trajectory.Kept{File: trajectory.EventsFile, Opens: e.Kind == ledger.EventRunStarted}, e)
}

// Close ends the record and returns the first error of each file. Closing the root also
// ends the events.
func (t *Trace) Close() (err error) {
	switch {
	case t == nil:
		return nil
	case t.folder == "" && t.runLog != nil:
		t.runLog.EndTrace()
	}
	if t.files == nil {
		return nil
	}

	if t.folder != "" {
		err = t.files.end(t.folder + trajectory.File)
	} else {
		err = t.files.endAll()
	}
	if err != nil {
		return fmt.Errorf("cannot write the trace: %w", err)
	}
	return nil
}
