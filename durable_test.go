package rlm_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/internal/testing/testcache"
	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/run"
	"github.com/rlmhq/rlm/store"
	"github.com/rlmhq/rlm/tiers"
)

// counting is a model that plays turns, answers each sub-call with its prompt in capitals, and
// counts the requests for each turn and prompt.
type counting struct {
	turns []string

	mu    sync.Mutex
	asked map[string]int
	// most is the number of calls that the model answers. Then it calls broken, and stops
	// answering.
	most   int
	broken func()
}

func (c *counting) Resolve(name string) (llm.Model, error) {
	return llm.Model{Name: name, ID: name, Provider: c}, nil
}

func (c *counting) Complete(ctx context.Context, r llm.Request, _ func(string)) (llm.Response, error) {
	last := r.Messages[len(r.Messages)-1].Content
	what, text := last, strings.ToUpper(last)
	switch r.Metadata.Purpose {
	case "root":
		turn := (len(r.Messages) - 2) / 2
		what, text = fmt.Sprintf("turn %d", turn+1), c.turns[turn]
	case "sub":
		what, text = "sub of "+r.Messages[1].Content, "```repl\nFINAL('sub ' + llm_query('leaf of ' + context))\n```"
	}

	c.mu.Lock()
	c.asked[what]++
	c.most--
	isOver := c.most < 0
	c.mu.Unlock()
	if isOver {
		c.broken()
		<-ctx.Done()
		return llm.Response{}, ctx.Err()
	}
	return llm.Response{Text: text, Usage: llm.Usage{InputTokens: 10, OutputTokens: 1}}, nil
}

// sum returns the total number of requests.
func (c *counting) sum() (n int) {
	for _, times := range c.asked {
		n += times
	}
	return n
}

var durableTurns = []string{
	"```repl\nimport itertools\nseen = llm_query_batched([f'item {i}' for i in range(6)])\nlen(seen)\n```",
	"```repl\nsubs = [rlm_query('read', 'text %d' % i) for i in range(2)]\nnote('half')\nprint(subs)\n```",
	"```repl\nalive = (s for s in seen)\nnext(alive)\n```", // a generator, which no state can contain
	"```repl\nprint(next(alive), [llm_query(f'again {i}') for i in range(3)])\n```",
	"```repl\nFINAL([seen, subs, next(alive), notes()])\n```",
}

const durableAnswer = `[["ITEM 0","ITEM 1","ITEM 2","ITEM 3","ITEM 4","ITEM 5"],` +
	`["sub LEAF OF TEXT 0","sub LEAF OF TEXT 1"],"ITEM 2",1]`

// durableRun is a run that uses batches, sub-loops, a tool, and a value that cannot be saved.
type durableRun struct {
	dir   string
	model *counting
	notes int // calls of the tool
}

// process runs the task in a separate engine, and interrupts it after most calls.
func (d *durableRun) process(t *testing.T, most int, change func(*rlm.Task)) (rlm.Outcome, error) {
	t.Helper()
	engine, err := rlm.New(rlm.Options{CacheDir: testcache.Dir(), Store: store.Folder(d.dir)})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := engine.Close(); err != nil {
			t.Error(err)
		}
	}()

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	d.model.most, d.model.broken = most, cancel
	value := func(n int) tiers.Value { return fmt.Append(nil, n) }
	task := rlm.Task{
		Task: repl.Task{Name: "a"}, Contexts: []rlm.Context{rlm.Text("t", "five.")},
		Functions: []rlm.Function{
			rlm.Func("note", "note(text)", func(context.Context, tiers.Call) (tiers.Value, error) {
				d.notes++
				return value(d.notes), nil
			}),
			rlm.Func("notes", "notes()", func(context.Context, tiers.Call) (tiers.Value, error) {
				return value(d.notes), nil
			}),
		},
		Config: run.Config{Question: "why?", Models: d.model, Model: "test/m", Bypass: -1},
	}
	if change != nil {
		change(&task)
	}
	return engine.Ask(ctx, task)
}

func newDurableRun(t *testing.T) *durableRun {
	t.Helper()
	return &durableRun{dir: t.TempDir(), model: &counting{turns: durableTurns, asked: map[string]int{}}}
}

// TestARunGoesOnWhereItsProcessEnded checks that a run whose process ended after any number of
// calls continues in the next process.
func TestARunGoesOnWhereItsProcessEnded(t *testing.T) {
	whole := newDurableRun(t)
	outcome, err := whole.process(t, 1000, nil)
	if got := strings.ReplaceAll(string(outcome.Answer), ", ", ","); err != nil || got != durableAnswer {
		t.Fatalf("%s, %+v, %v", got, outcome, err)
	}

	every := 1
	if testing.Short() {
		every = 5
	}
	for most := 0; most < whole.model.sum(); most += every {
		d := newDurableRun(t)
		first, err := d.process(t, most, nil)
		if !errors.Is(err, context.Canceled) || first.Status != ledger.StatusCanceled {
			t.Fatalf("after %d calls: %+v, %v", most, first, err)
		}
		inFlight := d.model.sum() - most
		second, err := d.process(t, 1000, nil)
		if err != nil || string(second.Answer) != string(outcome.Answer) {
			t.Fatalf("after %d calls: %s, %+v, %v", most, second.Answer, second, err)
		}
		if got, want := d.model.sum(), whole.model.sum()+inFlight; got != want || d.notes != 1 {
			t.Errorf("after %d calls, of which %d were in flight: %d calls, want %d; %d notes",
				most, inFlight, got, want, d.notes)
		}
		if second.Spent.Calls != outcome.Spent.Calls || second.Turns != outcome.Turns {
			t.Errorf("after %d calls: %+v, want %+v", most, second, outcome)
		}
	}
}

func TestAFinishedRunCostsNothingAgain(t *testing.T) {
	d := newDurableRun(t)
	first, err := d.process(t, 1000, nil)
	if err != nil {
		t.Fatal(err)
	}
	before := d.model.sum()
	second, err := d.process(t, 0, nil)
	if err != nil || string(second.Answer) != string(first.Answer) || d.model.sum() != before {
		t.Errorf("%+v, %v, %d calls more", second, err, d.model.sum()-before)
	}
	if second.Turns != first.Turns {
		t.Errorf("it had %d turns, and now has %d", first.Turns, second.Turns)
	}
}

// TestAnAnsweredRunHasAllItsTurns checks that the turn with the answer is committed like the
// others, and that a fork after it answers another question.
func TestAnAnsweredRunHasAllItsTurns(t *testing.T) {
	d := newDurableRun(t)
	d.model.turns = []string{"```repl\nx = 1\n```", "```repl\nFINAL(x + 1)\n```"}
	first, err := d.process(t, 1000, nil)
	if err != nil {
		t.Fatal(err)
	}
	engine, err := rlm.New(rlm.Options{CacheDir: testcache.Dir(), Store: store.Folder(d.dir)})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	runs, err := engine.Runs(t.Context(), rlm.RunFilter{})
	if err != nil || len(runs) != 1 || runs[0].Turns != first.Turns {
		t.Fatalf("%+v, %v, want %d turns", runs, err, first.Turns)
	}

	if err := engine.ForkRun(t.Context(), "a", first.Turns, rlm.StoredRun{Name: "b"}); err != nil {
		t.Fatal(err)
	}
	again := func(question string) rlm.Outcome {
		d.model.asked = map[string]int{}
		d.model.turns = append(slices.Repeat([]string{""}, first.Turns), "```repl\nFINAL('other')\n```")
		outcome, err := d.process(t, 1000, func(task *rlm.Task) {
			task.Name = "b"
			if question != "" {
				task.Config.Question = question
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		return outcome
	}
	if outcome := again(""); string(outcome.Answer) != string(first.Answer) || d.model.sum() != 0 {
		t.Errorf("the same question: %+v, %v", outcome, d.model.asked)
	}
	if err := engine.RemoveRun(t.Context(), "b"); err != nil {
		t.Fatal(err)
	}
	if err := engine.ForkRun(t.Context(), "a", first.Turns, rlm.StoredRun{Name: "b"}); err != nil {
		t.Fatal(err)
	}
	outcome := again("another?")
	if string(outcome.Answer) != `"other"` || d.model.sum() != 1 || outcome.Turns != first.Turns+1 {
		t.Errorf("another question: %+v, %v", outcome, d.model.asked)
	}
}

func TestAnotherCourseIsStoppedBeforeItPays(t *testing.T) {
	d := newDurableRun(t)
	if _, err := d.process(t, 4, nil); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	before := d.model.sum()
	_, err := d.process(t, 1000, func(task *rlm.Task) { task.Config.SubModel = "test/other" })
	if err == nil || !strings.Contains(err.Error(), `asked "test/m: item`) ||
		!strings.Contains(err.Error(), `and now "test/other: item`) {
		t.Errorf("got %v", err)
	}
	if d.model.sum() != before {
		t.Errorf("%d calls were paid", d.model.sum()-before)
	}

	for want, change := range map[string]func(*rlm.Task){
		"another question": func(task *rlm.Task) { task.Config.Question = "who?" },
		"another contexts": func(task *rlm.Task) { task.Contexts = nil },
		"cannot name a":    func(task *rlm.Task) { task.Name = "../a" },
	} {
		t.Run(want, func(t *testing.T) {
			var setup *rlm.SetupError
			if _, err := d.process(t, 1000, change); !errors.As(err, &setup) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", want, err)
			}
		})
	}
	if outcome, err := d.process(t, 1000, nil); err != nil || outcome.Status != ledger.StatusAnswered {
		t.Errorf("afterwards: %+v, %v", outcome, err)
	}
}

// TestASnippetTakesTheSameCourseAgain checks that a repeated snippet makes the same calls, although
// they depend on the clock and on random numbers.
func TestASnippetTakesTheSameCourseAgain(t *testing.T) {
	turns := []string{
		"```repl\nimport os, random, time, uuid\nmark = f'{time.time()} {uuid.uuid4()} {os.urandom(4).hex()}'\n" +
			"first = llm_query(f'first {mark} {random.random()}')\nsecond = llm_query('second ' + mark)\n```",
		"```repl\nFINAL(llm_query(f'third {random.random()}'))\n```",
	}
	for most := 1; most <= 5; most++ {
		d := &durableRun{dir: t.TempDir(), model: &counting{turns: turns, asked: map[string]int{}}}
		if _, err := d.process(t, most, nil); most < 5 && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		outcome, err := d.process(t, 1000, nil)
		if err != nil || outcome.Status != ledger.StatusAnswered {
			t.Fatalf("after %d calls: %+v, %v", most, outcome, err)
		}
		if len(d.model.asked) != 5 {
			t.Errorf("after %d calls, it took another course: %v", most, d.model.asked)
		}
	}
}

func TestARunIsRewoundAndForked(t *testing.T) {
	d := newDurableRun(t)
	if _, err := d.process(t, 1000, nil); err != nil {
		t.Fatal(err)
	}
	engine, err := rlm.New(rlm.Options{CacheDir: testcache.Dir(), Store: store.Folder(d.dir)})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	if err := engine.ForkRun(t.Context(), "a", 2, rlm.StoredRun{Name: "b"}); err != nil {
		t.Fatal(err)
	}
	if err := engine.RewindRun(t.Context(), "a", 1); err != nil {
		t.Fatal(err)
	}
	runs, err := engine.Runs(t.Context(), rlm.RunFilter{})
	if err != nil || len(runs) != 2 || runs[0].Name != "a" || runs[0].Turns != 1 || runs[0].Status != "interrupted" ||
		runs[1].Parent != "a" || runs[1].ParentTurn != 2 || runs[1].Spent.Calls != 0 || runs[0].Spent.Calls == 0 {
		t.Fatalf("%+v, %v", runs, err)
	}
	for _, err := range []error{
		engine.RewindRun(t.Context(), "a", 2), engine.ForkRun(t.Context(), "a", 1, rlm.StoredRun{Name: "b"}),
		engine.ForkRun(t.Context(), "a", 0, rlm.StoredRun{Name: "c"}), engine.RemoveRun(t.Context(), "c"),
	} {
		if err == nil {
			t.Error("it is done")
		}
	}

	d.model.asked = map[string]int{}
	outcome, err := d.process(t, 1000, nil)
	if err != nil || d.model.asked["turn 1"] != 0 || d.model.asked["turn 2"] != 1 || d.notes != 2 {
		t.Errorf("after the rewind: %+v, %v, %v, %d notes", outcome, err, d.model.asked, d.notes)
	}

	d.model.asked = map[string]int{}
	d.model.turns = []string{"", "", "```repl\nFINAL(len(seen) + len(subs))\n```"}
	outcome, err = d.process(t, 1000, func(task *rlm.Task) {
		task.Name, task.Config.Question, task.Config.Model = "b", "how many?", "test/better"
		task.Config.Schema = []byte(`"int"`)
	})
	if err != nil || string(outcome.Answer) != "8" || d.model.sum() != 1 {
		t.Errorf("the fork: %+v, %v, %v", outcome, err, d.model.asked)
	}
	if err := engine.RemoveRun(t.Context(), "a"); err != nil {
		t.Error(err)
	}
}
