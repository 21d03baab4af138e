package runlog

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/rlmhq/rlm/internal/keep/store"
	"github.com/rlmhq/rlm/internal/keep/store/sqlitestore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var runA = store.ID{Kind: store.Run, Name: "a"}

// process is one process of a run.
type process struct {
	t *testing.T
	j *Log
	s *sqlitestore.Store
}

// inProcess opens the run in a folder, calls use, and ends like a killed process.
func inProcess(t *testing.T, dir string, use func(ctx context.Context, p *process)) {
	t.Helper()
	s, err := sqlitestore.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	j, _, err := Open(t.Context(), s, store.Log{ID: runA})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := With(t.Context(), j)
	defer cancel()
	use(ctx, &process{t, j, s})
}

// ask begins a step. Unless the step's ending is known, ask ends it with the request in capitals.
func (p *process) ask(ctx context.Context, request string) (ending string, isKnown bool, err error) {
	step, err := Begin(ctx, func() Request { return Request{What: "ask", Digest: request, About: request} })
	if err != nil {
		return "", false, err
	}
	if known, ok := step.Ending(); ok {
		return string(known), true, nil
	}
	ending = strings.ToUpper(request)
	return fmt.Sprintf("%q", ending), false, step.End(ctx, ending, store.Cost{Calls: 1})
}

// asks checks how a request ends.
func (p *process) asks(ctx context.Context, request string, wantKnown bool) {
	p.t.Helper()
	ending, isKnown, err := p.ask(ctx, request)
	if err != nil || ending != fmt.Sprintf("%q", strings.ToUpper(request)) || isKnown != wantKnown {
		p.t.Errorf("%s: %s, known %t, %v", request, ending, isKnown, err)
	}
}

func TestStepsAreDoneOnce(t *testing.T) {
	dir := t.TempDir()
	for round := range 3 {
		inProcess(t, dir, func(ctx context.Context, p *process) {
			for turn := range 2 {
				inTurn := EnterTurn(ctx, turn)
				p.asks(inTurn, "same", round > 0)
				p.asks(inTurn, "same", round > 0) // the second one is another step
				p.asks(AtNext(inTurn, "snippet"), "in a snippet", round > 0)
			}
			want := Counts{Made: 6}
			if round > 0 {
				want = Counts{Replayed: 6}
			}
			if got := p.j.Counts(); got != want {
				t.Errorf("round %d: %+v, want %+v", round, got, want)
			}
			if log, err := p.s.Log(t.Context(), runA); err != nil || log.Spent.Calls != 6 {
				t.Errorf("round %d: %+v, %v", round, log, err)
			}
		})
	}
}

func TestAnotherCourseStopsTheRun(t *testing.T) {
	dir := t.TempDir()
	inProcess(t, dir, func(ctx context.Context, p *process) { p.asks(ctx, "first", false) })
	inProcess(t, dir, func(ctx context.Context, p *process) {
		_, _, err := p.ask(ctx, "other")
		var course *CourseError
		if !errors.As(err, &course) || course.Was != "first" || course.Is != "other" {
			t.Errorf("got %v", err)
		}
		var stopped *StoppedError
		if cause := context.Cause(ctx); !errors.As(cause, &stopped) {
			t.Errorf("the run goes on: %v", cause)
		}
		if _, _, err := p.ask(At(ctx, "elsewhere"), "new"); !errors.As(err, &course) {
			t.Errorf("a step begins afterwards: %v", err)
		}
	})
	inProcess(t, dir, func(ctx context.Context, p *process) { p.asks(ctx, "first", true) })
}

// TestANewSlotWaitsForTheOnesAhead checks that a new slot begins no step if a slot ahead takes
// another course.
func TestANewSlotWaitsForTheOnesAhead(t *testing.T) {
	dir := t.TempDir()
	inProcess(t, dir, func(ctx context.Context, p *process) {
		first, ended := Slots(ctx, 2)(0)
		p.asks(first, "first", false)
		ended()
	})
	inProcess(t, dir, func(ctx context.Context, p *process) {
		slot := Slots(ctx, 2)
		began := make(chan error)
		go func() {
			second, ended := slot(1)
			defer ended()
			_, _, err := p.ask(second, "new")
			began <- err
		}()
		runtime.Gosched()

		first, _ := slot(0)
		var course *CourseError
		if _, _, err := p.ask(first, "other"); !errors.As(err, &course) {
			t.Errorf("the first slot: %v", err)
		}
		if err := <-began; !errors.As(err, &course) {
			t.Errorf("the second slot: %v", err)
		}
	})
}

func TestSlotsWithPartsWaitForNoOther(t *testing.T) {
	inProcess(t, t.TempDir(), func(ctx context.Context, p *process) {
		slot := Slots(ctx, 4)
		_, ended := slot(0) // a slot without a step
		ended()
		third, _ := slot(2)
		p.asks(At(third, "turn 1"), "in a part", false)
		second, _ := slot(1)
		p.asks(second, "second", false)
		fourth, _ := slot(3)
		p.asks(fourth, "fourth", false)

		ctx, cancel := context.WithCancel(ctx)
		slot = Slots(At(ctx, "later"), 2)
		cancel()
		waits, _ := slot(1)
		if _, _, err := p.ask(waits, "too late"); !errors.Is(err, context.Canceled) {
			t.Errorf("after the end: %v", err)
		}
	})
}

func TestThreadsMayChangePlaces(t *testing.T) {
	dir := t.TempDir()
	inProcess(t, dir, func(ctx context.Context, p *process) {
		p.asks(ctx, "a", false)
		p.asks(ctx, "b", false)
		c := func() Request { return Request{What: "ask", Digest: "c"} } // without an ending
		if _, err := Begin(ctx, c); err != nil {
			t.Fatal(err)
		}
		p.asks(ctx, "d", false)
	})
	inProcess(t, dir, func(ctx context.Context, p *process) {
		p.asks(ctx, "d", true)
		p.asks(ctx, "c", false)
		p.asks(ctx, "a", true)
		p.asks(ctx, "e", false) // in the place of d, which has moved
		p.asks(ctx, "b", true)
		if got := p.j.Counts(); got != (Counts{Replayed: 3, Made: 2, Again: 1}) {
			t.Errorf("%+v", got)
		}
	})
	inProcess(t, dir, func(ctx context.Context, p *process) {
		for _, request := range []string{"d", "c", "a", "e", "b"} {
			p.asks(ctx, request, true)
		}
	})
}

func TestTurnsThatCountAreNotDoneAgain(t *testing.T) {
	dir := t.TempDir()
	commit := func(p *process, turn int, state, digest string) {
		t.Helper()
		c := Commit{Turn: turn, Data: fmt.Appendf(nil, `{"turn":%d}`, turn), State: []byte(state), Digest: digest}
		if err := p.j.Commit(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	inProcess(t, dir, func(ctx context.Context, p *process) {
		for turn := 1; turn <= 3; turn++ {
			EnterTurn(ctx, turn)
			p.asks(At(ctx, "turn %d", turn), fmt.Sprint("ask ", turn), false)
			if turn < 3 {
				commit(p, turn, fmt.Sprint("state ", turn), "")
			}
		}
	})
	inProcess(t, dir, func(ctx context.Context, p *process) {
		commits, err := p.j.Commits(ctx)
		if err != nil || len(commits) != 2 || string(commits[1].Data) != `{"turn":2}` {
			t.Fatalf("%+v, %v", commits, err)
		}
		state, err := p.j.State(ctx, commits[1])
		if err != nil || string(state) != "state 2" {
			t.Errorf("%q, %v", state, err)
		}
		p.j.GoOnAfter(2)
		p.asks(At(ctx, "turn 3"), "ask 3", true)
		commit(p, 2, "", commits[1].Digest) // replaces the first one
		if commits, err = p.j.Commits(ctx); err != nil || len(commits) != 2 {
			t.Errorf("%+v, %v", commits, err)
		}
		if _, isKnown, err := p.ask(ctx, strings.Repeat("x", 5000)); isKnown || err != nil {
			t.Error("a long request is known")
		}
		turns, err := Turns(ctx, p.s, runA)
		if err != nil || len(turns) != 3 || !turns[1].Committed || turns[2].Committed || turns[2].Cost.Calls != 2 {
			t.Errorf("%+v, %v", turns, err)
		}
	})
}

func TestPinnedValuesMustNotChange(t *testing.T) {
	dir := t.TempDir()
	inProcess(t, dir, func(ctx context.Context, p *process) {
		for _, c := range []struct {
			value     string
			mayChange bool
			want      string
		}{
			{"why?", false, ""},
			{"why?", false, ""},
			{"who?", false, `it was "why?" and is now "who?"`},
			{"who?", true, ""},
			{"who?", false, ""},
		} {
			err := p.j.Pin(ctx, "question", c.value, c.mayChange)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("%+v: %v", c, err)
			}
		}
	})
}

func TestWithoutARunLogStepsAreNothing(t *testing.T) {
	ctx := AtNext(At(t.Context(), "turn 1"), "snippet")
	step, err := Begin(ctx, func() Request { return Request{} })
	if step != nil || err != nil || From(ctx) != nil {
		t.Errorf("%v, %v", step, err)
	}
	step.Drop(store.Cost{Calls: 1})
	if err := step.End(ctx, "x", store.Cost{}); err != nil {
		t.Error(err)
	}
}

func TestAResultThatCannotBeKeptStopsTheRun(t *testing.T) {
	dir := t.TempDir()
	inProcess(t, dir, func(ctx context.Context, p *process) {
		step, err := Begin(ctx, func() Request { return Request{What: "ask", About: "a question"} })
		if err != nil {
			t.Fatal(err)
		}
		if err := p.s.Close(); err != nil {
			t.Fatal(err)
		}
		err = step.End(ctx, "x", store.Cost{})
		if err == nil || !strings.Contains(err.Error(), "cannot keep the result of a question") || ctx.Err() == nil {
			t.Errorf("%v, %v", err, ctx.Err())
		}
	})
}

func TestStatusKnowsWhichProcessHasEnded(t *testing.T) {
	dir := t.TempDir()
	var got []string
	status := func(s *sqlitestore.Store) {
		t.Helper()
		log, _, err := Show(t.Context(), s, runA.Name)
		if err != nil {
			t.Fatal(err)
		}
		list, err := List(t.Context(), s, store.Filter{Status: log.Status, Limit: 1})
		if err != nil || len(list) != 1 {
			t.Errorf("%v, %v", list, err)
		}
		got = append(got, log.Status)
	}
	inProcess(t, dir, func(_ context.Context, p *process) { status(p.s) })
	inProcess(t, dir, func(_ context.Context, p *process) {
		if err := p.j.Close("answered", ""); err != nil {
			t.Fatal(err)
		}
		status(p.s)
	})
	s, err := sqlitestore.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	lease, err := s.Acquire(t.Context(), runA)
	if err == nil {
		err = errors.Join(s.SetState(t.Context(), lease, store.State{Status: StatusRunning}), s.Release(lease))
	}
	if err != nil {
		t.Fatal(err)
	}
	status(s)
	if want := []string{"running", "answered", "interrupted"}; !slices.Equal(got, want) {
		t.Errorf("%q, want %q", got, want)
	}
}

// FuzzDecodeContent checks that any entry is refused, or decoded to content that encodes to the
// same entry.
func FuzzDecodeContent(f *testing.F) {
	f.Add([]byte(`{"digest":"x","about":"y","ending":{"a":1}}`))
	f.Add([]byte(`{"digest":"x"} {}`))
	f.Add([]byte(`{"digest":1}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := decodeContent(data)
		if err != nil && !errors.Is(err, store.ErrDamaged) {
			t.Errorf("%v", err)
		}
		if err == nil && len(c.Digest)+len(c.About)+len(c.Ending) > 4*len(data) { // U+FFFD has three bytes
			t.Errorf("%d bytes become %+v", len(data), c)
		}
	})
}

// BenchmarkCommit commits turns with messages of 16 KiB and a state of 64 KiB.
func BenchmarkCommit(b *testing.B) {
	s, err := sqlitestore.Open(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	j, _, err := Open(b.Context(), s, store.Log{ID: runA})
	if err != nil {
		b.Fatal(err)
	}

	data, state := fmt.Appendf(nil, "%q", strings.Repeat("message ", 2000)), make([]byte, 64<<10)
	turn := 0
	for b.Loop() {
		turn++
		copy(state, fmt.Sprint("state ", turn))
		if err := j.Commit(b.Context(), Commit{Turn: turn, Data: data, State: state}); err != nil {
			b.Fatal(err)
		}
	}
}
