package browser_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/viewer"
)

// storyRun is a run of several turns, in which a model reads logs in parts. Each turn takes 20
// seconds.
type storyRun struct {
	build viewer.Builder
	at    time.Time
	turn  int
}

func newStory(began time.Time) *storyRun {
	s := &storyRun{at: began}
	s.tell(0, ledger.Event{
		Kind: ledger.EventRunStarted, Model: "openai/gpt-5",
		Text: "Which services failed in the night to Monday, and what was the first cause?",
	})
	s.tell(0, ledger.Event{
		Kind: ledger.EventWarning, Purpose: "models", Error: "the price of ollama/qwen3 is unknown, so its calls do " +
			"not count in US dollars; give it with --price",
	})
	return s
}

// tell adds an event some time after the last one.
func (s *storyRun) tell(later time.Duration, e ledger.Event) {
	s.at = s.at.Add(later)
	e.Time, e.Turn = s.at, s.turn
	if e.Node == "" {
		e.Node = "0"
	}
	s.build.Event(&e)
}

// reply begins a turn whose reply has this code.
func (s *storyRun) reply(text, code string) {
	s.turn++
	s.tell(0, ledger.Event{Kind: ledger.EventTurnStarted})
	s.tell(4*time.Second, ledger.Event{
		Kind: ledger.EventReply, Purpose: "root", Model: "openai/gpt-5", Elapsed: 4 * time.Second,
		Text: text + "\n```repl\n" + code + "\n```",
		Used: &ledger.Spending{Calls: 1, InputTokens: 2150, OutputTokens: 180, USD: 0.0045},
	})
}

// calls is the number of calls that the story makes at the same time.
const calls = 18

// begin starts the calls.
func (s *storyRun) begin() {
	for range calls {
		s.tell(200*time.Millisecond, ledger.Event{
			Kind: ledger.EventCallStarted, Purpose: "leaf", Model: "ollama/qwen3",
		})
	}
}

// end ends the calls in a range. The last call of the run fails.
func (s *storyRun) end(from, to int) {
	for i := from; i < to; i++ {
		e := ledger.Event{
			Kind: ledger.EventCall, Purpose: "leaf", Model: "ollama/qwen3",
			Text: fmt.Sprintf("Part %d: the pool of connections was exhausted at 02:1%d.", i+1, i%10),
			Used: &ledger.Spending{Calls: 1, InputTokens: 1800, OutputTokens: 40, Unpriced: 1},
		}
		if i == calls-1 {
			e.Error, e.Text = "the server did not answer in 60 s", ""
		}
		e.Elapsed = 3 * time.Second
		s.tell(300*time.Millisecond, e)
	}
}

// run ends the snippet of the turn.
func (s *storyRun) run(code, output string) {
	ran := &ledger.Snippet{Source: code}
	ran.Stdout = output
	s.tell(time.Second, ledger.Event{
		Kind: ledger.EventSnippet, Text: code, Tier: "wasm", Status: "ok", Elapsed: time.Second, Ran: ran,
	})
}

// codes are the snippets of the story, in order.
var codes = []string{
	"paths = sorted(context)\nprint(len(paths), \"files,\", paths[:3])\nerrors = {p: context[p].count(\" ERROR \") " +
		"for p in paths}\nprint({p: n for p, n in errors.items() if n})",
	"# one call for each file with errors, all at once\nparts = [context[p] for p, n in errors.items() if n]\n" +
		"causes = llm_query_batched([\n    f\"Why did this service fail? Name time and cause.\\n{part}\" for part in " +
		"parts\n])\nfor cause in causes:\n    print(cause)",
	"first = min(causes, key=lambda c: c.split(\" at \")[-1])\nprint(first)",
	"FINAL(\"orders, billing and mail failed. The first cause: at 02:10, the pool of connections of orders was " +
		"exhausted.\")",
}

var texts = []string{
	"I look at the files first, and count the errors in each.",
	"Eighteen files have errors. I ask a small model about each of them.",
	"I look for the earliest cause.",
	"The answers agree, so I can answer.",
}

// first adds the first two turns, and stops while the calls of the second one are in flight.
func (s *storyRun) first() {
	s.reply(texts[0], codes[0])
	s.run(codes[0], "42 files, ['billing/app.log', 'billing/db.log', 'gateway/access.log']\n{'billing/app.log': 17, "+
		"'orders/app.log': 231, 'mail/queue.log': 9, …}\n")
	s.reply(texts[1], codes[1])
	s.begin()
	s.end(0, 7)
}

// rest adds the remaining events.
func (s *storyRun) rest() {
	s.end(7, calls)
	s.run(codes[1], strings.Repeat("The pool of connections was exhausted at 02:10.\n", 4))
	s.reply(texts[2], codes[2])
	s.run(codes[2], "Part 1: the pool of connections was exhausted at 02:10.\n")
	s.reply(texts[3], codes[3])
	s.run(codes[3], "")
	const answer = "orders, billing and mail failed. The first cause: at 02:10, the pool of connections of orders " +
		"was exhausted."
	s.tell(0, ledger.Event{Kind: ledger.EventAnswer, Text: answer})
	s.tell(0, ledger.Event{
		Kind: ledger.EventRunEnded, Status: "answered", Text: answer,
		Elapsed: s.at.Sub(s.build.Run().Began),
	})
}

// shelf is a source of runs that a test changes.
type shelf struct {
	mu    sync.Mutex
	items []viewer.Item
	run   *viewer.Run
	news  chan struct{} // closed with the next change
}

func newShelf(run *viewer.Run, others ...viewer.Item) *shelf {
	s := &shelf{items: others}
	s.set(run)
	return s
}

// set replaces the run.
func (s *shelf) set(run *viewer.Run) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.news != nil {
		close(s.news)
	}
	s.run, s.news = run, make(chan struct{})
}

func (s *shelf) List(context.Context) ([]viewer.Item, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := viewer.Item{
		ID: "outage", Title: s.run.Title, Status: s.run.Status, Calls: 20, USD: 0.018, Unpriced: 18,
		Changed: time.Now().Add(-2 * time.Second),
	}
	return append([]viewer.Item{first}, s.items...), nil
}

func (s *shelf) Open(context.Context, string) (*viewer.Run, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.run, nil
}

func (s *shelf) Wait(ctx context.Context, _ string, run *viewer.Run) error {
	s.mu.Lock()
	now, news := s.run, s.news
	s.mu.Unlock()
	switch {
	case now != run:
		return nil
	case run.Status != viewer.StatusRunning:
		return viewer.ErrEnded
	}
	select {
	case <-news:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// otherRuns returns rows of a list.
func otherRuns() []viewer.Item {
	now := time.Now()
	return []viewer.Item{
		{
			ID:    "ask-20261127-091502-7k2mqx",
			Title: "How many rows of orders.csv have no customer?", Status: "answered",
			Calls: 3, USD: 0.0061, Changed: now.Add(-40 * time.Minute),
		},
		{
			ID: "review", Title: "Is there a security risk in this change?", Status: "parked", Calls: 12, USD: 0.093,
			Changed: now.Add(-3 * time.Hour),
		},
		{
			ID:    "ask-20261126-174210-p3qdtw",
			Title: "Summarise the minutes of October.", Status: "interrupted", Calls: 7,
			Unpriced: 7, Changed: now.Add(-20 * time.Hour),
		},
		{
			ID:    "ask-20261126-160933-x5tzba",
			Title: "Which contracts end this year?", Status: "failed", Calls: 1,
			USD: 0.0008, Changed: now.Add(-22 * time.Hour),
		},
	}
}

// The addresses of the list, and of the run in the list.
const (
	listed = "/secret/"
	shown  = "/secret/#run=outage"
)

// live returns a story in its second turn, which began a minute ago.
func live() *storyRun {
	s := newStory(time.Now().Add(-time.Minute))
	s.first()
	return s
}

// over returns a story that has ended.
func over() *viewer.Run {
	s := newStory(time.Now().Add(-time.Hour))
	s.first()
	s.rest()
	return s.build.Run()
}
