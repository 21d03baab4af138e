package viewer_test

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/keep/trajectory"
	"github.com/rlmhq/rlm/internal/machine/filelock"
	"github.com/rlmhq/rlm/viewer"
)

// lock locks a file, as a process that writes a record does.
func lock(t *testing.T, name string) (unlock func()) {
	t.Helper()
	f, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := filelock.Try(f); !got || err != nil {
		t.Fatal(got, err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return func() { _ = f.Close() }
}

// traceOf returns the entry of a run log that contains the record of a turn, which consists of
// events as JSON.
func traceOf(t *testing.T, turn int, events ...string) string {
	t.Helper()
	kept := trajectory.KeptTurn{Lines: []trajectory.Kept{{
		File: trajectory.File, Opens: true, Line: json.RawMessage(`{"type":"metadata"}`),
	}}}
	for i, e := range events {
		kept.Lines = append(kept.Lines, trajectory.Kept{
			File: trajectory.EventsFile, Opens: turn == 1 && i == 0, Line: json.RawMessage(e),
		})
	}
	data, err := json.Marshal(kept)
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf(`{"turn":%d,"kind":"trace","data":%s}`, turn, data)
}

const (
	callBegun = `{"turn":%d,"kind":"begun","key":"/turn %[1]d/snippet 1/call 1/leaf 1","data":{"about":"a/m: is it?"}}`
	callEnded = `{"turn":%d,"kind":"step","key":"/turn %[1]d/snippet 1/call 1/leaf 1",` +
		`"data":{"about":"a/m: is it?","ending":{"response":{"Text":"yes"}}},"cost":{"calls":1}}`
)

// TestARunLogThatGrowsIsATree checks that committed turns are taken from the record, and other
// turns from the steps.
func TestARunLogThatGrowsIsATree(t *testing.T) {
	var j viewer.RunLogReader
	for _, c := range []struct {
		add          []string
		status, want string
	}{
		{
			[]string{`{"turn":0,"kind":"pin","key":"question","text":"q"}`, fmt.Sprintf(callBegun, 1)}, "running", `
loop "q" (running) question="q"
 turn "Turn 1" (running)
  snippet "Snippet 1" (running)
   call "is it?" (running) request, shortened="a/m: is it?"`,
		},
		{nil, "interrupted", `
loop "q" (interrupted) question="q"
 turn "Turn 1" (interrupted)
  snippet "Snippet 1" (interrupted)
   call "is it?" (interrupted) request, shortened="a/m: is it?"`},
		{
			[]string{
				fmt.Sprintf(callEnded, 1),
				traceOf(t, 1, `{"kind":"run_started","node":"0","text":"q"}`,
					`{"kind":"turn_started","node":"0","turn":1,"time":"2026-11-26T11:34:46Z"}`,
					`{"kind":"snippet","node":"0","turn":1,"text":"1+1","tier":"wasm","time":"2026-11-26T11:34:47Z"}`),
				`{"turn":1,"kind":"commit","data":{}}`, fmt.Sprintf(callBegun, 2),
			}, "running", `
loop "q" (running) question="q"
 turn "Turn 1"
  snippet "1+1" code="1+1"
 turn "Turn 2" (running)
  snippet "Snippet 1" (running)
   call "is it?" (running) request, shortened="a/m: is it?"`,
		},
		{
			[]string{`{"turn":2,"kind":"question","key":"x","data":{"call":1}}`}, "parked", `
loop "q" (parked) question="q"
 turn "Turn 1"
  snippet "1+1" code="1+1"
 turn "Turn 2" (parked)
  snippet "Snippet 1" (parked)
   call "is it?" (parked) request, shortened="a/m: is it?"
 waiting "a call waits for a decision" call="{\"call\":1}"`,
		},
		{
			[]string{
				`{"turn":2,"kind":"decision","key":"x","data":{}}`, fmt.Sprintf(callEnded, 2),
				traceOf(t, 2, `{"kind":"turn_started","node":"0","turn":2}`,
					`{"kind":"run_ended","node":"0","status":"answered"}`),
			}, "answered", `
loop "q" (answered) question="q"
 turn "Turn 1"
  snippet "1+1" code="1+1"
 turn "Turn 2"`,
		},
		{
			[]string{fmt.Sprintf(callBegun, 2)}, "running", `
loop "q" (running) question="q"
 turn "Turn 1"
  snippet "1+1" code="1+1"
 turn "Turn 2" (running)
  snippet "Snippet 1" (running)
   call "is it?" (running) request, shortened="a/m: is it?" reply="yes"
 decision "a person has decided" call="{\"call\":1}" decision="{}"`,
		},
	} {
		if err := j.Add(strings.NewReader(strings.Join(c.add, "\n"))); err != nil {
			t.Fatal(err)
		}
		run, err := j.Run(c.status)
		if err != nil {
			t.Fatal(err)
		}
		check(t, outline(run), c.want)
		if run.Status != c.status || len(run.Notes) > 0 {
			t.Errorf("%s, %q", run.Status, run.Notes)
		}
	}
}

// TestARunLogHasFewNotes adds damaged lines one after another, and checks that the number of notes
// stays bounded.
func TestARunLogHasFewNotes(t *testing.T) {
	t.Parallel()
	var j viewer.RunLogReader
	add := func(lines string) {
		if err := j.Add(strings.NewReader(lines)); err != nil {
			t.Fatal(err)
		}
	}
	add(`{"kind":"pin","key":"question","text":"why?"}` + "\n")
	for range 100 {
		add("damaged\n")
	}
	run, err := j.Run("running")
	if err != nil || len(run.Notes) != 1 {
		t.Fatalf("%+v, %v", run, err)
	}

	for i := range 100 {
		add(strings.Repeat("\n", i) + "damaged\n")
	}
	if run, err = j.Run("running"); err != nil || len(run.Notes) != 40 {
		t.Errorf("%d notes, %v", len(run.Notes), err)
	}
}

// TestAStoredTurnHasATime checks that an unfinished turn has a start although its steps have no
// times.
func TestAStoredTurnHasATime(t *testing.T) {
	t.Parallel()
	var log viewer.RunLogReader
	add := func(lines ...string) *viewer.Run {
		t.Helper()
		if err := log.Add(strings.NewReader(strings.Join(lines, "\n"))); err != nil {
			t.Fatal(err)
		}
		run, err := log.Run("running")
		if err != nil {
			t.Fatal(err)
		}
		return run
	}
	begun := `{"turn":1,"kind":"begun","key":"/turn 1/snippet 1/call 1/leaf 1","data":{"about":"a/m: is it?"}}`
	run := add(`{"turn":0,"kind":"pin","key":"question","text":"q"}`, begun)
	if turn := run.Nodes[1]; turn.Start != 0 || turn.Elapsed != -1 || !run.Began.IsZero() {
		t.Errorf("%+v, %v", turn, run.Began)
	}

	run = add(traceOf(t, 1, `{"kind":"run_started","node":"0","text":"q","time":"2026-11-26T11:34:40Z"}`,
		`{"kind":"turn_started","node":"0","turn":1,"time":"2026-11-26T11:34:46Z"}`,
		`{"kind":"snippet","node":"0","turn":1,"text":"1+1","time":"2026-11-26T11:34:47Z"}`),
		`{"turn":1,"kind":"commit","data":{}}`, strings.ReplaceAll(begun, "1/snippet", "2/snippet"))
	turn := run.Nodes[3]
	if turn.Kind != viewer.KindTurn || turn.Start != 7000 || run.Began.Second() != 40 {
		t.Errorf("%+v, %v", turn, run.Began)
	}
}
