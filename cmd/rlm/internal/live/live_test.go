package live

import (
	"bytes"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
	"github.com/rlmhq/rlm/repl/ledger"
)

func TestTheViewTakesEventsOfManyLoopsAtOnce(t *testing.T) {
	var out bytes.Buffer
	v := New(&cli.Env{Stderr: &out}, false)
	v.Event(
		ledger.Event{
			Kind:  ledger.EventRunStarted,
			Node:  "0",
			Model: "a/b",
			Text:  "a\x1b[31m question",
		},
	)
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() {
			node := fmt.Sprintf("0.%d", i+1)
			v.Event(ledger.Event{Kind: ledger.EventLoopStarted, Node: node, Depth: 1, Model: "a/b"})
			v.Event(ledger.Event{Kind: ledger.EventTurnStarted, Node: node, Depth: 1, Turn: 1})
			v.Event(ledger.Event{Kind: ledger.EventCallStarted, Node: node, Depth: 1})
			v.mu.Lock()
			v.layOut(maxLoops)
			v.mu.Unlock()
			v.Event(ledger.Event{Kind: ledger.EventCall, Node: node, Depth: 1, Error: "no"})
			v.Event(ledger.Event{
				Kind: ledger.EventSnippet, Node: node, Depth: 1, Turn: 1, Tier: "wasm", Status: "ok",
			})
			v.Event(ledger.Event{
				Kind: ledger.EventLoopEnded, Node: node, Depth: 1, Status: "answered",
			})
		})
	}
	all.Wait()
	v.Close()
	got := strings.Count(out.String(), "snippet in wasm: ok in 0s, 1 model call (1 failed)\n")
	if got != 20 {
		t.Errorf("%d snippets have a line, want 20:\n%s", got, &out)
	}
	if len(v.nodes) != 1 {
		t.Errorf("%d loops are at work, want the root", len(v.nodes))
	}
	if strings.Contains(out.String(), "\x1b") ||
		!strings.Contains(out.String(), `a\x1b[31m question`) {
		t.Errorf("a control character passes: %q", out.String()[:100])
	}
}

func TestTheBlockIsATreeInOrder(t *testing.T) {
	v := New(&cli.Env{Stderr: &bytes.Buffer{}}, false)
	for _, node := range []string{"0", "0.10", "0.2", "0.2.1"} {
		v.Event(
			ledger.Event{
				Kind:  ledger.EventTurnStarted,
				Node:  node,
				Depth: strings.Count(node, "."),
				Turn:  3,
				Model: "m",
			},
		)
	}
	v.Event(ledger.Event{Kind: ledger.EventCallStarted, Node: "0.2", Depth: 1})
	v.Event(
		ledger.Event{
			Kind:  ledger.EventReply,
			Node:  "0",
			Spent: &ledger.Spending{Calls: 4, USD: 0.5},
		},
	)
	lines := v.layOut(3)
	for i, want := range []string{
		"├─ turn 3, runs the reply", "│ ├─ loop 2, turn 3, asks m, 1 call in flight", "│ │ ├─ " +
			"loop 2.1, turn 3, asks m", "… and 1 more loops", "⠋ 0s, 4 calls, 0 tokens in and 0 " +
			"out, $0.5000",
	} {
		if i >= len(lines) || lines[i] != want {
			t.Errorf("line %d is not %q:\n%s", i, want, strings.Join(lines, "\n"))
		}
	}
}

func TestPiecesOfAReplyAreShownAsLines(t *testing.T) {
	var out bytes.Buffer
	v := New(&cli.Env{Stderr: &out}, false)
	for _, piece := range []string{
		"fir", "st\r\nsec", "ond \xe6\xbc", "\xa2\n\nthi", "rd\x1b[2J", strings.Repeat("x", 2*maxWriting), "end",
	} {
		v.Event(ledger.Event{Kind: ledger.EventDelta, Node: "0", Text: piece})
	}
	v.Event(ledger.Event{Kind: ledger.EventReply, Node: "0", Turn: 1, Purpose: "draft"})
	v.Event(ledger.Event{Kind: ledger.EventVerdict, Node: "0", Turn: 1, Status: "the draft passes"})
	want := "first|second 漢||third\\x1b[2J" + strings.Repeat("x", 2*maxWriting) + "|end"
	for i, line := range strings.Split(want, "|") {
		if got := strings.Split(out.String(), "\n")[i]; got != "rlm: reply | "+line {
			t.Errorf("line %d is %.100q, want %.100q", i, got, line)
		}
	}
	want = "rlm: turn 1: draft in 0s\nrlm: turn 1: the draft passes\n"
	if !strings.HasSuffix(out.String(), want) {
		t.Errorf("it ends with %q", out.String()[max(0, out.Len()-100):])
	}
}

func TestAReplyThatStartsAgainIsMarked(t *testing.T) {
	var out bytes.Buffer
	v := New(&cli.Env{Stderr: &out}, false)
	for _, piece := range []string{"one\nhal", "", "one\n", "two"} {
		v.Event(ledger.Event{Kind: ledger.EventDelta, Node: "0", Text: piece})
	}
	if got := v.layOut(1)[0]; got != "├─ turn 0, writes: two" {
		t.Errorf("the block has %q", got)
	}
	v.Event(ledger.Event{Kind: ledger.EventReply, Node: "0"})
	want := "rlm: reply | one\nrlm: reply | hal\nrlm: reply | (the reply broke off here; it starts again)\n" +
		"rlm: reply | one\nrlm: reply | two\nrlm: reply in 0s\n"
	if out.String() != want {
		t.Errorf("got %q", out.String())
	}
}

func TestAWaitIsShownUntilItEnds(t *testing.T) {
	var out bytes.Buffer
	v := New(&cli.Env{Stderr: &out}, false)
	now := time.Now()
	v.Event(ledger.Event{
		Kind: ledger.EventWaiting, Node: "0", Model: "a/b", Error: "server error: busy\x1b[2J",
		Time: now, Elapsed: 40 * time.Second, Limit: 5 * time.Minute,
	})
	want := "rlm: waiting for a/b: server error: busy\\x1b[2J, 40s of 5m\n"
	if out.String() != want {
		t.Errorf("got %q", out.String())
	}
	v.nodes["0"].waitBegun = now.Add(-time.Minute)
	if got := v.layOut(1)[0]; got != "├─ turn 0, waiting for a/b: server error: busy\\x1b[2J, 1m of 5m" {
		t.Errorf("the block has %q", got)
	}
	v.Event(ledger.Event{Kind: ledger.EventCall, Node: "0"})
	if got := v.layOut(1)[0]; strings.Contains(got, "waiting") {
		t.Errorf("the block has %q", got)
	}
}
