package calls_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/repl/internal/calls"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
)

// described is a registry whose only model has known facts and always gives the same reply.
type described struct {
	facts llm.Facts
	reply llm.Response
	asked func(llm.Request)
}

func (d described) Resolve(name string) (llm.Model, error) {
	return llm.Model{Name: name, ID: name, Facts: d.facts, Provider: llm.Func(
		func(r llm.Request) (llm.Response, error) {
			d.asked(r)
			return d.reply, nil
		},
	)}, nil
}

// ask asks the model once and returns the run's spending.
func (d described) ask(t *testing.T, prompt string) (ledger.Spending, error) {
	t.Helper()
	caller, err := calls.NewCaller(
		calls.Caller{Models: d, Gate: calls.NewGate(1)}, ledger.Budget{}, []string{"m"}, false,
	)
	if err != nil {
		t.Fatal(err)
	}
	_, err = caller.Complete(t.Context(), calls.Ask{
		Model: "m", Messages: []llm.Message{{Role: llm.RoleUser, Content: prompt}},
	})
	return caller.Ledger.Spent(), err
}

func TestAnUnknownPriceIsCountedAndNotZero(t *testing.T) {
	used := llm.Usage{InputTokens: 1e6, OutputTokens: 1}
	told := used
	told.USD = 0.5
	for name, c := range map[string]struct {
		facts llm.Facts
		usage llm.Usage
		want  string
	}{
		"unknown": {llm.Facts{}, used, "price unknown"},
		"free":    {llm.Facts{Price: &llm.Price{}}, used, "$0.0000"},
		"priced":  {llm.Facts{Price: &llm.Price{Input: 2}}, used, "$2.0000"},
		"told":    {llm.Facts{Price: &llm.Price{Input: 2}}, told, "$0.5000"},
	} {
		t.Run(name, func(t *testing.T) {
			reply := llm.Response{Text: "yes", Usage: c.usage}
			spent, err := described{c.facts, reply, func(llm.Request) {}}.ask(t, "hello")
			if err != nil || !strings.HasSuffix(spent.String(), " 1 out, "+c.want) {
				t.Errorf("%s: %v, %v", name, spent, err)
			}
		})
	}

	both := ledger.Spending{Calls: 3, USD: 0.25, Unpriced: 2}
	if got := both.String(); got !=
		"3 calls, 0 tokens in and 0 out, $0.2500 and 2 calls whose price is unknown" {
		t.Errorf("got %q", got)
	}
}

func TestPromptAndReplyShareTheWindow(t *testing.T) {
	prompt := strings.Repeat("word ", 800) // 1,000 tokens
	for window, want := range map[int64]int{0: calls.DefaultReply, 100_000: calls.DefaultReply, 2_000: 796, 1_010: 64} {
		t.Run(fmt.Sprint(window), func(t *testing.T) {
			var asked llm.Request
			_, err := described{
				llm.Facts{Window: window}, llm.Response{Text: "yes"}, func(r llm.Request) { asked = r },
			}.ask(t, prompt)
			if err != nil || asked.MaxTokens != want {
				t.Errorf("window %d: a reply of %d tokens, want %d; %v", window, asked.MaxTokens, want, err)
			}
		})
	}

	if _, err := (described{llm.Facts{Window: 900}, llm.Response{}, func(llm.Request) {}}).ask(t, prompt); err == nil ||
		!strings.Contains(err.Error(), "more than the window") {
		t.Errorf("got %v", err)
	}
}
