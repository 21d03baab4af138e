package calls_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rlmhq/rlm/repl/internal/callnotes"
	"github.com/rlmhq/rlm/repl/internal/calls"
	"github.com/rlmhq/rlm/repl/internal/usage"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/schema"
)

// answering is a registry in which a function answers for every model.
type answering func(ctx context.Context, r llm.Request) (llm.Response, error)

func (a answering) Resolve(name string) (llm.Model, error) {
	return llm.Model{
		Name: name, ID: name, Provider: a,
		Facts: llm.Facts{Price: &llm.Price{Input: 1, Output: 1}},
	}, nil
}

func (a answering) Complete(
	ctx context.Context, r llm.Request, _ func(string),
) (llm.Response, error) {
	return a(ctx, r)
}

func callerOf(t *testing.T, a answering) *calls.Caller {
	t.Helper()
	caller, err := calls.NewCaller(
		calls.Caller{Models: a, Gate: calls.NewGate(4)}, ledger.Budget{Calls: 100}, []string{"m"},
		true,
	)
	if err != nil {
		t.Fatal(err)
	}
	return caller
}

func question(text string) calls.Ask {
	return calls.Ask{Model: "m", Messages: []llm.Message{{Role: llm.RoleUser, Content: text}}}
}

// TestARefusalIsNoAnswer checks refusals whose words look like an answer, especially if any text is
// allowed.
func TestARefusalIsNoAnswer(t *testing.T) {
	for schemaText, reply := range map[string]string{
		`"str"`: "I cannot help with that.", `"bool"`: "No.", `{"type":"object"}`: `{"error": "declined"}`,
	} {
		t.Run(schemaText, func(t *testing.T) {
			caller := callerOf(t, func(context.Context, llm.Request) (llm.Response, error) {
				return llm.Response{Text: reply, Finish: llm.FinishRefusal}, nil
			})
			ask := question("?")
			var err error
			if ask.Schema, err = schema.Parse([]byte(schemaText)); err != nil {
				t.Fatal(err)
			}
			var mismatch *calls.MismatchError
			if value, err := caller.CompleteTyped(t.Context(), ask, 1); !errors.As(err, &mismatch) ||
				!strings.Contains(err.Error(), "declined") {
				t.Errorf("%s: got %s, %v", schemaText, value, err)
			}
			if values, err := caller.CompleteAll(t.Context(), ask, 0); !errors.As(err, &mismatch) {
				t.Errorf("%s: got %s, %v", schemaText, values, err)
			}
			if spent := caller.Ledger.Spent(); spent.Calls != 3 {
				t.Errorf("%s: %s", schemaText, spent)
			}
		})
	}
}

// TestPaidCallsAreBooked checks that all paid calls are booked, including a reply that could not be
// recorded and a call that was interrupted after its prompt was sent.
func TestPaidCallsAreBooked(t *testing.T) {
	caller := callerOf(t, func(_ context.Context, r llm.Request) (llm.Response, error) {
		return llm.Response{
			Text:  "yes",
			Usage: usage.Or(llm.Usage{}, r, "yes"),
		}, errors.New("cannot record the call: the disk is full")
	})
	ask := question(strings.Repeat("word ", 1_000))
	if _, err := caller.Complete(t.Context(), ask); err == nil {
		t.Error("the failure is lost")
	}
	if spent := caller.Ledger.Spent(); spent.Calls != 1 || spent.InputTokens < 1_000 ||
		spent.OutputTokens == 0 ||
		spent.USD == 0 {
		t.Errorf("an unrecorded reply is booked as %s", spent)
	}

	ctx, cancel := context.WithCancel(t.Context())
	caller = callerOf(t, func(ctx context.Context, _ llm.Request) (llm.Response, error) {
		cancel()
		<-ctx.Done()
		return llm.Response{}, context.Cause(ctx)
	})
	if _, err := caller.Complete(ctx, ask); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if spent := caller.Ledger.Spent(); spent.Calls != 1 || spent.InputTokens < 1_000 ||
		spent.USD == 0 {
		t.Errorf("a call that was broken off is booked as %s", spent)
	}
}

// TestRefusalsDoNotFloodTheRecord checks that events about refusals are bounded, because a snippet
// may repeat a refused call, which costs nothing.
func TestRefusalsDoNotFloodTheRecord(t *testing.T) {
	told := 0
	caller, err := calls.NewCaller(
		calls.Caller{
			Models: answering(nil), Gate: calls.NewGate(1), Emit: func(ledger.Event) { told++ },
		},
		ledger.Budget{InputTokens: 1},
		nil,
		false,
	)
	if err != nil {
		t.Fatal(err)
	}
	var budget *ledger.BudgetError
	for range 1_000 {
		_, err := caller.Complete(t.Context(), question("more than one token"))
		if !errors.As(err, &budget) {
			t.Fatalf("got %v", err)
		}
	}
	if told == 0 || told > 100 {
		t.Errorf("told of %d refusals", told)
	}
}

// TestAPanicOfTheCallersCodeIsContained checks panics of providers and receivers of events, which
// also run in goroutines where a panic would end the process.
func TestAPanicOfTheCallersCodeIsContained(t *testing.T) {
	caller := callerOf(t, func(context.Context, llm.Request) (llm.Response, error) {
		panic("no such model")
	})
	caller.Emit = func(ledger.Event) { panic("no such view") }

	_, err := caller.Complete(t.Context(), question("?"))
	if err == nil || !strings.Contains(err.Error(), "its provider panicked") {
		t.Errorf("got %v", err)
	}
	if spent := caller.Ledger.Spent(); spent.Calls != 1 || spent.InputTokens != 0 {
		t.Errorf("the call is booked as %s", spent)
	}
}

// TestASmallBudgetHoldsManyTypedCallsAtOnce checks that many typed calls can be in flight, with
// calls that each wait for all the others.
func TestASmallBudgetHoldsManyTypedCallsAtOnce(t *testing.T) {
	const width = 16
	var together sync.WaitGroup
	together.Add(width)
	caller, err := calls.NewCaller(calls.Caller{
		Models: answering(func(context.Context, llm.Request) (llm.Response, error) {
			together.Done()
			together.Wait()
			return llm.Response{Text: "true"}, nil
		}),
		Gate: calls.NewGate(width),
	}, ledger.Budget{OutputTokens: 12_000}, []string{"m"}, false)
	if err != nil {
		t.Fatal(err)
	}

	ask := question("?")
	ask.Sub = true
	if ask.Schema, err = schema.Parse([]byte(`"bool"`)); err != nil {
		t.Fatal(err)
	}
	var all errgroup.Group
	for range width {
		all.Go(func() error {
			_, err := caller.CompleteTyped(t.Context(), ask, 0)
			return err
		})
	}
	if err := all.Wait(); err != nil {
		t.Error(err)
	}
}

// TestACutReplyIsAskedForWithMoreRoom checks that a call is repeated with more room until the run
// allows no more.
func TestACutReplyIsAskedForWithMoreRoom(t *testing.T) {
	var rooms []int
	var retries int
	long := 3_000
	caller, err := calls.NewCaller(calls.Caller{
		Models: answering(func(_ context.Context, r llm.Request) (llm.Response, error) {
			rooms = append(rooms, r.MaxTokens)
			if r.MaxTokens < long {
				return llm.Response{
					Text: "1", Finish: llm.FinishLength,
					Usage: llm.Usage{InputTokens: 10, OutputTokens: int64(r.MaxTokens)},
				}, nil
			}
			return llm.Response{Text: "12", Usage: llm.Usage{InputTokens: 10, OutputTokens: int64(long)}}, nil
		}),
		Gate: calls.NewGate(16),
		Emit: func(e ledger.Event) {
			if e.Kind == ledger.EventRetry && e.Status == llm.FinishLength {
				retries++
			}
		},
	}, ledger.Budget{OutputTokens: 16_000}, []string{"m"}, false)
	if err != nil {
		t.Fatal(err)
	}

	ask := question("?")
	ask.Sub = true
	if ask.Schema, err = schema.Parse([]byte(`"int"`)); err != nil {
		t.Fatal(err)
	}
	value, err := caller.CompleteTyped(t.Context(), ask, 0)
	if err != nil || string(value) != "12" || !slices.Equal(rooms, []int{950, 3_800}) || retries != 1 {
		t.Errorf("got %s, %v after rooms of %v and %d retries", value, err, rooms, retries)
	}

	// Requests that do not fit the rest of the budget are not repeated endlessly.
	long, rooms = 100_000, nil
	response, err := caller.Complete(t.Context(), ask)
	if err != nil || response.Finish != llm.FinishLength || len(rooms) > 4 {
		t.Errorf("got %+v, %v after rooms of %v", response, err, rooms)
	}
	if spent := caller.Ledger.Spent(); spent.OutputTokens > 16_000 {
		t.Errorf("spent %s", spent)
	}
}

// TestAReplyThatIsNoAnswerIsAskedForAgain checks that each repetition has twice the room, and that
// the call finally fails.
func TestAReplyThatIsNoAnswerIsAskedForAgain(t *testing.T) {
	for name, c := range map[string]struct {
		reply llm.Response
		most  int64
		lack  string
		rooms []int
	}{
		"cut":            {llm.Response{Text: "1", Finish: llm.FinishLength}, 0, "cut", []int{100, 200, 400}},
		"cut by a model": {llm.Response{Text: "1", Finish: llm.FinishLength}, 150, "cut", []int{100, 150}},
		"empty":          {llm.Response{}, 0, "no text", []int{100, 200, 400}},
		"thought":        {llm.Response{Text: "<think>1</think> "}, 150, "no text", []int{100, 150, 150}},
		"tool call":      {llm.Response{Text: "<tool_call>1</tool_call>"}, 0, "tool", []int{100, 200, 400}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, typed := range []bool{false, true} {
				var rooms []int
				caller, err := calls.NewCaller(calls.Caller{
					Models: described{
						facts: llm.Facts{MaxOutput: c.most}, reply: c.reply,
						asked: func(r llm.Request) { rooms = append(rooms, r.MaxTokens) },
					},
					Gate: calls.NewGate(1), MaxReply: 100,
				}, ledger.Budget{}, nil, false)
				if err != nil {
					t.Fatal(err)
				}

				ask := question("?")
				if typed {
					if ask.Schema, err = schema.Parse([]byte(`"int"`)); err != nil {
						t.Fatal(err)
					}
					_, err = caller.CompleteTyped(t.Context(), ask, 2)
				} else {
					_, err = caller.CompleteText(t.Context(), ask, 2)
				}
				var mismatch *calls.MismatchError
				if err == nil || !strings.Contains(err.Error(), c.lack) || typed != errors.As(err, &mismatch) ||
					!slices.Equal(rooms, c.rooms) {
					t.Errorf("%s: %v after rooms of %v, want %v", name, err, rooms, c.rooms)
				}
			}
		})
	}
}

// TestAWaitIsToldAndNotCounted checks that a retried call is counted once, and that only one of
// many calls that wait for one model reports the wait.
func TestAWaitIsToldAndNotCounted(t *testing.T) {
	var told []ledger.Event
	caller := callerOf(t, func(ctx context.Context, _ llm.Request) (llm.Response, error) {
		for range 3 {
			callnotes.SendWait(ctx, callnotes.Wait{
				Reason: "busy", Waited: time.Second, Limit: time.Minute,
			})
		}
		return llm.Response{Text: "yes", Attempts: 4}, nil
	})
	caller.Emit = func(e ledger.Event) {
		if e.Kind == ledger.EventWaiting {
			told = append(told, e)
		}
	}

	ask := question("?")
	ask.Node, ask.Purpose = "0.1", "leaf"
	for range 2 {
		if _, err := caller.Complete(t.Context(), ask); err != nil {
			t.Fatal(err)
		}
	}
	if len(told) != 1 || told[0].Node != "0.1" || told[0].Model != "m" || told[0].Error != "busy" ||
		told[0].Elapsed != time.Second || told[0].Limit != time.Minute {
		t.Errorf("told of %+v", told)
	}
	if spent := caller.Ledger.Spent(); spent.Calls != 2 {
		t.Errorf("spent %s", spent)
	}
}

// TestAPromptIsSentOnceMoreWithLessRoom checks that a call is repeated only once, even if the
// server states a smaller window each time.
func TestAPromptIsSentOnceMoreWithLessRoom(t *testing.T) {
	for name, c := range map[string]struct {
		words func(asked int) string
		takes int // the largest reply that the server accepts
		asked []int
	}{
		"fits": {
			func(int) string { return "This model's maximum context length is 1000 tokens." }, 1000, []int{8192, 994},
		},
		"never fits": {
			func(asked int) string { return fmt.Sprintf("maximum context length is %d", 9000-asked*1000) },
			0,
			[]int{8192, 7994},
		},
		"tells nothing": {func(int) string { return "too long" }, 0, []int{8192}},
	} {
		t.Run(name, func(t *testing.T) {
			var asked []int
			caller := callerOf(t, func(_ context.Context, r llm.Request) (llm.Response, error) {
				if asked = append(asked, r.MaxTokens); r.MaxTokens > c.takes {
					return llm.Response{}, &llm.Error{Kind: llm.ErrContextLength, Message: c.words(len(asked))}
				}
				return llm.Response{Text: "yes"}, nil
			})
			_, err := caller.Complete(t.Context(), question("?"))
			if !slices.Equal(asked, c.asked) || (err == nil) != (c.takes > 0) {
				t.Errorf("%s: asked for %d tokens, want %d; %v", name, asked, c.asked, err)
			}
		})
	}
}
