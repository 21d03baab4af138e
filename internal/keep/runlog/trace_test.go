package runlog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/keep/store"
	"github.com/rlmhq/rlm/internal/keep/store/sqlitestore"
	"github.com/rlmhq/rlm/internal/keep/trajectory"
)

// followed is a [Follower] that records lines.
type followed struct{ lines []string }

func (f *followed) Past(turn int, data []byte) error {
	var kept trajectory.KeptTurn
	if err := json.Unmarshal(data, &kept); err != nil {
		return err
	}
	for _, line := range kept.Lines {
		f.lines = append(f.lines, fmt.Sprintf("%d: %s", turn, line.Line))
	}
	return nil
}

func (f *followed) Line(line *trajectory.Kept) { f.lines = append(f.lines, string(line.Line)) }

// traces adds a line to the record.
func (p *process) traces(text string) {
	p.j.Trace(&trajectory.Kept{File: "events.jsonl", Line: json.RawMessage(text)})
}

// expectRecord checks the record of the run.
func expectRecord(t *testing.T, dir, want string) {
	t.Helper()
	s, err := sqlitestore.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	entries, err := s.Entries(t.Context(), runA, store.Query{Kinds: []string{kindTrace}})
	if err != nil {
		t.Fatal(err)
	}
	var r trajectory.Rebuilt
	var got []string
	for _, e := range entries {
		if err := r.Add(e.Turn, e.Data); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := r.Each(func(_ string, line []byte) error { got = append(got, string(line)); return nil }); err != nil {
		t.Fatal(err)
	}
	if strings.Join(got, " ") != want {
		t.Errorf("the record is %q, want %q", got, want)
	}
}

func TestTheRecordIsKeptWithTheTurnsThatCount(t *testing.T) {
	dir := t.TempDir()
	commit := func(p *process, turn int) {
		t.Helper()
		if err := p.j.Commit(t.Context(), Commit{Turn: turn, Data: []byte("{}")}); err != nil {
			t.Fatal(err)
		}
	}
	inProcess(t, dir, func(ctx context.Context, p *process) {
		p.traces("0")
		p.asks(At(ctx, "turn 1"), "a", false)
		p.traces("1")
		commit(p, 1)
		p.traces("2")
		commit(p, 2)
		p.traces("3") // the process ends before its turn ends
	})
	expectRecord(t, dir, "0 1 2")

	inProcess(t, dir, func(ctx context.Context, p *process) {
		f := &followed{}
		p.j.Follow(f)
		p.traces("10")
		p.j.GoOnAfter(1)
		p.asks(At(ctx, "turn 2"), "b", false)
		p.traces("12")
		if got := strings.Join(f.lines, " "); got != "1: 0 1: 1 10 12" {
			t.Errorf("the follower got %q", got)
		}
		commit(p, 2)
		p.traces("13")
		p.j.EndTrace()
		p.traces("14")
		if len(f.lines) != 5 {
			t.Errorf("the follower got %q", f.lines)
		}
		if err := p.j.Close("answered", ""); err != nil {
			t.Error(err)
		}
	})
	expectRecord(t, dir, "0 1 10 12 13 14")

	inProcess(t, dir, func(_ context.Context, p *process) {
		p.traces("20")
		p.j.EndTrace()
		if err := p.j.Close("interrupted", ""); err != nil { // it made no progress
			t.Error(err)
		}
	})
	expectRecord(t, dir, "0 1 10 12 13 14")
}

func TestTheRecordOfATurnIsBounded(t *testing.T) {
	dir := t.TempDir()
	large := json.RawMessage(`"` + strings.Repeat("x", maxLine-100) + `"`)
	inProcess(t, dir, func(_ context.Context, p *process) {
		kept := 0
		for p.j.Trace(&trajectory.Kept{File: "events.jsonl", Line: large}) {
			kept++
		}
		if kept != maxTrace/len(large) {
			t.Errorf("%d lines of %d bytes are kept", kept, len(large))
		}
		p.traces("1") // not kept: it follows a dropped line
		if err := p.j.Commit(t.Context(), Commit{Turn: 1, Data: []byte("{}")}); err != nil {
			t.Fatal(err)
		}
		entries, err := p.s.Entries(t.Context(), runA, store.Query{Kinds: []string{kindTrace}})
		if err != nil || len(entries) != kept || !bytes.Contains(entries[kept-1].Data, []byte(`"left_out":2`)) {
			t.Errorf("%d entries, %v", len(entries), err)
		}
	})
}

func TestAnExportedRunLogIsReplayed(t *testing.T) {
	var exported bytes.Buffer
	inProcess(t, t.TempDir(), func(ctx context.Context, p *process) {
		p.asks(At(ctx, "turn 1"), "a", false)
		if err := p.j.Commit(ctx, Commit{Turn: 1, Data: []byte("{}"), State: []byte("state")}); err != nil {
			t.Fatal(err)
		}
		p.asks(At(ctx, "turn 2"), "b", false)
		if err := Export(ctx, p.s, runA, &exported); err != nil {
			t.Fatal(err)
		}
	})
	if !trajectory.IsRunLog(exported.Bytes()) {
		t.Errorf("%.80q does not begin as a run log", exported.String())
	}

	j, err := Replay(&exported)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := With(t.Context(), j)
	defer cancel()
	p := &process{t: t, j: j}
	if commits, err := j.Commits(ctx); err != nil || len(commits) > 0 {
		t.Errorf("it goes on after %+v, %v", commits, err)
	}
	p.asks(At(ctx, "turn 1"), "a", true)
	p.asks(At(ctx, "turn 2"), "b", true)
	p.asks(At(ctx, "turn 3"), "c", false)
	if err := EndTurn(ctx, 3); err != nil {
		t.Error(err)
	}
	var course *CourseError
	j, err = Replay(strings.NewReader(
		`{"turn":1,"kind":"step","key":"/turn 1/ask 1","data":{"digest":"x","about":"y"}}`))
	if err != nil {
		t.Fatal(err)
	}
	other, cancelOther := With(t.Context(), j)
	defer cancelOther()
	if _, _, err := p.ask(At(other, "turn 1"), "z"); !errors.As(err, &course) {
		t.Errorf("another course: %v", err)
	}
}

// FuzzReplay checks that any file is refused, or can be read like a run log.
func FuzzReplay(f *testing.F) {
	f.Add([]byte(`{"turn":1,"kind":"step","key":"/turn 1/ask 1","data":{"digest":"x","about":"y","ending":1},` +
		`"cost":{}}`))
	f.Add([]byte(`{"turn":1,"kind":"start","key":"/turn 1","data":{"seed":"AA==","time":"2026-01-01T00:00:00Z"}}`))
	f.Add([]byte("{\"turn\":1,\"kind\":\"decision\",\"data\":{\"allow\":true}}\n\n{}"))
	f.Fuzz(func(t *testing.T, data []byte) {
		j, err := Replay(bytes.NewReader(data))
		if err != nil {
			return
		}
		ctx, cancel := With(t.Context(), j)
		defer cancel()
		step, err := Begin(At(ctx, "turn 1"), func() Request { return Request{What: "ask", Digest: "x", About: "y"} })
		if err == nil {
			step.Leave()
		}
	})
}
