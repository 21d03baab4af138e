package record

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/keep/runlog"
	"github.com/rlmhq/rlm/internal/keep/store"
	"github.com/rlmhq/rlm/internal/keep/store/sqlitestore"
	"github.com/rlmhq/rlm/internal/keep/trajectory"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
)

// tracing simulates a process of a run with a run log, which writes its record into a folder.
func tracing(t *testing.T, dir, name, folder string, use func(*runlog.Log, *Trace)) error {
	t.Helper()
	s, err := sqlitestore.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	j, _, err := runlog.Open(t.Context(), s, store.Log{ID: store.ID{Kind: store.Run, Name: name}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := runlog.With(t.Context(), j)
	defer cancel()

	trace, err := Open(ctx, folder)
	if err != nil {
		return err
	}
	trace.Event(ledger.Event{Kind: ledger.EventRunStarted, Text: "why?"})
	trace.Begin(trajectory.Metadata{RootModel: "m"})
	use(j, trace)
	return trace.Close()
}

// turn writes a turn of a loop whose prompt has that many messages.
func turn(trace *Trace, number, messages int) {
	prompt := make([]llm.Message, messages)
	for i := range prompt {
		prompt[i] = llm.Message{Role: llm.RoleUser, Content: strings.Repeat("m", i+1)}
	}
	trace.Turn(Iteration{Iteration: number, Prompt: prompt, Response: "reply"})
}

// begins begins a step of a turn.
func begins(t *testing.T, j *runlog.Log, number int) {
	t.Helper()
	ctx, cancel := runlog.With(t.Context(), j)
	defer cancel()
	step, err := runlog.Begin(runlog.EnterTurn(ctx, number),
		func() runlog.Request { return runlog.Request{What: "ask", Digest: "x"} })
	if err != nil {
		t.Fatal(err)
	}
	step.Leave()
}

func TestTheFolderOfARunThatGoesOnIsWrittenAgain(t *testing.T) {
	dir, folder := t.TempDir(), filepath.Join(t.TempDir(), "record")
	err := tracing(t, dir, "a", folder, func(j *runlog.Log, trace *Trace) {
		begins(t, j, 1)
		turn(trace, 1, 2)
		child, err := trace.Child()
		if err != nil {
			t.Fatal(err)
		}
		turn(child, 1, 1)
		if err := child.Close(); err != nil {
			t.Error(err)
		}
		if err := j.Commit(t.Context(), runlog.Commit{Turn: 1, Data: []byte("{}")}); err != nil {
			t.Fatal(err)
		}
		turn(trace, 2, 3) // the process ends before this is committed
		if child, err = trace.Child(); err != nil {
			t.Fatal(err)
		}
		turn(child, 1, 1)
	})
	if err != nil {
		t.Fatal(err)
	}
	before := readLines(t, folder, "sub_0002/trajectory.jsonl")

	err = tracing(t, dir, "a", folder, func(j *runlog.Log, trace *Trace) {
		j.GoOnAfter(1)
		trace.GoOnAfter(1)
		begins(t, j, 2)
		turn(trace, 2, 4)
		if err := j.Commit(t.Context(), runlog.Commit{Turn: 2, Data: []byte("{}")}); err != nil {
			t.Fatal(err)
		}
		turn(trace, 3, 5)
	})
	if err != nil {
		t.Fatal(err)
	}
	lines := readLines(t, folder, "trajectory.jsonl")
	if len(before) != 1 || len(lines) != 4 || strings.Count(lines[3], `"content"`) != 5 ||
		strings.Count(lines[2], `"content"`) != 4 || strings.Count(lines[1], `"content"`) != 2 {
		t.Errorf("%q, before: %q", lines, before)
	}
	if events := readLines(t, folder, "events.jsonl"); len(events) != 1 {
		t.Errorf("it began %d times: %q", len(events), events)
	}
	if _, err := os.Stat(filepath.Join(folder, "sub_0002")); !os.IsNotExist(err) {
		t.Errorf("the sub-loop of a turn that did not count is there: %v", err)
	}
	if sub := readLines(t, folder, "sub_0001/trajectory.jsonl"); len(sub) != 1 {
		t.Errorf("%q", sub)
	}

	err = tracing(t, dir, "b", folder, func(*runlog.Log, *Trace) {})
	if err == nil || !strings.Contains(err.Error(), "name a new or empty folder") {
		t.Errorf("another run writes over the record: %v", err)
	}
}

// readLines returns the lines of a file.
func readLines(t *testing.T, folder, name string) []string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(folder, filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Split(strings.TrimSuffix(string(data), "\n"), "\n")
}
