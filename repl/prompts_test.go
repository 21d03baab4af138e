package repl_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/repl/llm"
)

func TestFenceCannotBeLeft(t *testing.T) {
	for text, want := range map[string]string{
		"plain\n":         "```text\nplain\n```",
		"":                "```text\n\n```",
		"a\n```\nb":       "````text\na\n```\nb\n````",
		"``` `````` ````": "```````text\n``` `````` ````\n```````",
	} {
		if got := repl.Fence(text); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
}

func TestPromptsAreFilled(t *testing.T) {
	prompts := repl.NewPrompts(fstest.MapFS{"prompts/ask.md": {Data: []byte("\nDo:\n{{fence .Task}}\n")}})
	if got, err := prompts.Fill("ask", map[string]string{"Task": "x"}); err != nil || got != "Do:\n```text\nx\n```" {
		t.Errorf("got %q, %v", got, err)
	}
	if _, err := prompts.Fill("other", nil); err == nil || !strings.Contains(err.Error(), "cannot write the prompt other") {
		t.Errorf("got %v", err)
	}
}

func TestTheBudgetOfTimeIsTheContextsCause(t *testing.T) {
	ledger, err := repl.NewLedger(repl.Budget{Wall: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := ledger.Within(t.Context())
	defer cancel()
	<-ctx.Done()
	var budget *repl.BudgetError
	if !errors.As(context.Cause(ctx), &budget) || budget.What != "seconds" || budget.Limit != 0.001 {
		t.Errorf("the cause is %v", context.Cause(ctx))
	}
}

func TestAnEarlyEndHasAStatus(t *testing.T) {
	broken, gone := errors.New("broken"), errors.New("gone")
	late, cancelLate := context.WithDeadlineCause(t.Context(), time.Now(), &repl.BudgetError{What: "seconds"})
	defer cancelLate()
	left, leave := context.WithCancelCause(t.Context())
	leave(gone)
	for _, c := range []struct {
		ctx    context.Context
		err    error
		status repl.Status
		back   error
	}{
		{t.Context(), fmt.Errorf("call: %w", &repl.BudgetError{What: "calls"}), repl.StatusPartial, nil},
		{late, broken, repl.StatusPartial, nil},
		{left, broken, repl.StatusCanceled, gone},
		{t.Context(), broken, repl.StatusFailed, broken},
	} {
		status, reason, back := repl.Ended(c.ctx, c.err)
		if status != c.status || !errors.Is(back, c.back) || reason == "" {
			t.Errorf("%v ended as %s, %q, %v", c.err, status, reason, back)
		}
	}
}

func TestReachNamesEveryModelThatCannotBeUsed(t *testing.T) {
	if err := repl.Reach(t.Context(), nil, "a/b"); err == nil {
		t.Error("there is no registry")
	}
	models := unknown{}
	if err := repl.Reach(t.Context(), models, "", ""); err == nil || !strings.Contains(err.Error(), "there is no model") {
		t.Errorf("got %v", err)
	}
	err := repl.Reach(t.Context(), models, "one", "", "two", "one")
	if err == nil || err.Error() != "cannot use model one: unknown\ncannot use model two: unknown" {
		t.Errorf("got %v", err)
	}
}

// unknown is a registry that knows no model.
type unknown struct{}

func (unknown) Resolve(string) (llm.Model, error) { return llm.Model{}, errors.New("unknown") }
