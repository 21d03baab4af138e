package run_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/run"
)

// refuse makes the model reject prompts that are too long, with a server's error message. It
// returns the purposes of all requests, with a mark on rejected ones.
func refuse(m *models, words string, isTooLong func(r llm.Request) bool) *[]string {
	var purposes []string
	m.complete = func(ctx context.Context, r llm.Request) (llm.Response, error) {
		if isTooLong(r) {
			purposes = append(purposes, "!"+r.Metadata.Purpose)
			return llm.Response{}, &llm.Error{Kind: llm.ErrContextLength, Model: r.Model, Message: words}
		}
		purposes = append(purposes, r.Metadata.Purpose)
		return llm.Func(m.reply).Complete(ctx, r, nil)
	}
	return &purposes
}

// chars returns the number of characters in a request's messages after the system prompt.
func chars(r llm.Request) (n int) {
	for _, m := range r.Messages[1:] {
		n += len(m.Content)
	}
	return n
}

func longerThan(most int) func(llm.Request) bool {
	return func(r llm.Request) bool { return chars(r) > most }
}

func TestARefusedPromptIsCompactedAndSentOnceMore(t *testing.T) {
	m := &models{script: []string{
		code("found = 'needle'\nprint('x' * 3000)"), code("print('y' * 3000)"), "The needle is in `found`.",
		code("print(len(history), found)"), "FINAL_VAR(found)",
	}}
	purposes := refuse(m, "too long", longerThan(4500))
	outcome := answered(t, config(m), "needle")
	want := []string{"root", "root", "!root", "compaction", "root", "root"}
	if !slices.Equal(*purposes, want) || outcome.Compactions != 1 {
		t.Errorf("%d compactions, %q, want %q", outcome.Compactions, *purposes, want)
	}
	if told := last(m.requests[4]); !strings.Contains(told, "4 needle") {
		t.Errorf("history was %q", told)
	}
}

func TestTheWindowThatARefusalTellsIsKept(t *testing.T) {
	m := &models{script: []string{code("print('x' * 7000)"), "so far", "FINAL(1)"}}
	const words = "This model's maximum context length is 3,000 tokens. However, you requested 9,999 tokens."
	purposes := refuse(m, words, func(r llm.Request) bool {
		return (len(r.Messages[0].Content)+chars(r))/4+r.MaxTokens > 3000
	})
	cfg := config(m)
	var warnings []string
	cfg.Progress = func(e ledger.Event) {
		if e.Kind == ledger.EventWarning {
			warnings = append(warnings, e.Error)
		}
	}
	answered(t, cfg, "1")

	// The first prompt fits with a shorter reply. The second is compacted before it is sent.
	if want := []string{"!root", "root", "compaction", "root"}; !slices.Equal(*purposes, want) {
		t.Errorf("%q, want %q", *purposes, want)
	}
	const warning = "the window of root has 3000 tokens, according to its server; give it with --window"
	if !slices.Contains(warnings, warning) {
		t.Errorf("got %q", warnings)
	}
}

func TestAPromptThatCannotBeCompactedFailsWithTheServersWords(t *testing.T) {
	t.Run("not even for the summary", func(t *testing.T) {
		m := &models{script: []string{code("found = 1\nprint('x' * 3000)"), "FINAL_VAR(found)"}}
		purposes := refuse(m, "too long", longerThan(2500))
		answered(t, config(m), "1")
		if want := []string{"root", "!root", "!compaction", "root"}; !slices.Equal(*purposes, want) {
			t.Errorf("%q, want %q", *purposes, want)
		}
	})
	t.Run("not even the first", func(t *testing.T) {
		m := &models{}
		purposes := refuse(m, "too long", longerThan(0))
		_, err := run.Run(t.Context(), config(m))
		if !errors.Is(err, llm.ErrContextLength) || !slices.Equal(*purposes, []string{"!root"}) {
			t.Errorf("%v, %q", err, *purposes)
		}
	})
	t.Run("always", func(t *testing.T) {
		m := &models{script: []string{code("print(1)")}}
		purposes := refuse(m, "too long", func(r llm.Request) bool { return len(r.Messages) > 2 })
		_, err := run.Run(t.Context(), config(m))
		want := []string{"root", "!root", "!compaction", "!root"}
		if !errors.Is(err, llm.ErrContextLength) || !slices.Equal(*purposes, want) {
			t.Errorf("%v, %q", err, *purposes)
		}
	})
}

func TestTheLastQuestionIsCompactedToo(t *testing.T) {
	m := &models{script: []string{code("print('x' * 3000)"), "so far", "FINAL('best')"}}
	purposes := refuse(m, "too long", func(r llm.Request) bool {
		return r.Metadata.Purpose == "synthesis" && chars(r) > 2500
	})
	cfg := config(m)
	cfg.MaxTurns = 1
	outcome := solve(t, cfg)
	want := []string{"root", "!synthesis", "compaction", "synthesis"}
	if outcome.Status != ledger.StatusSynthesised || outcome.Text() != "best" || !slices.Equal(*purposes, want) {
		t.Errorf("%s %s, %q", outcome.Status, outcome.Text(), *purposes)
	}
}

func TestAQuestionThatFillsTheWindowBecomesAContext(t *testing.T) {
	question := "Count the words. " + strings.Repeat("word ", 4000)
	ask := code("print(context_1[:16], context[:6])") // with its own context
	m := &models{facts: llm.Facts{Window: 5000}, script: []string{ask, code("FINAL(context_1.count('word '))")}}
	cfg := config(m, text("banana"))
	cfg.Question, cfg.MaxReply = question, 500
	answered(t, cfg, "4000")
	first := m.requests[0].Messages
	if chars(m.requests[0]) > 2000 || !strings.Contains(first[1].Content, "it is the text `context_1`. Unlike") {
		t.Errorf("the model was told %q", first[1].Content)
	}
	if told := last(m.requests[1]); !strings.Contains(told, "Count the words. banana") {
		t.Errorf("the variables are %q", told)
	}

	m = &models{facts: llm.Facts{Window: 5000}, script: []string{code("FINAL(len(context))")}}
	cfg = config(m)
	cfg.Question, cfg.MaxReply = question, 500
	answered(t, cfg, "20017")

	m = &models{facts: llm.Facts{Window: 500_000}, script: []string{"FINAL(1)"}}
	cfg = config(m)
	cfg.Question = question
	answered(t, cfg, "1")
	if !strings.Contains(last(m.requests[0]), question) {
		t.Error("a question that fits has become a context")
	}
}

func TestALongSubTaskBecomesAContext(t *testing.T) {
	m := &models{facts: llm.Facts{Window: 5000}, script: []string{
		code("FINAL(rlm_query('Count: ' + 'word ' * 4000, 'banana'))"),
		code("FINAL(f\"{context} {context_1.count('word ')}\")"),
	}}
	cfg := config(m)
	cfg.MaxReply = 500
	answered(t, cfg, "banana 4000")
}

func TestALongQuestionIsMovedWhenTheServerRefusesIt(t *testing.T) {
	m := &models{script: []string{code("FINAL(len(context))")}}
	purposes := refuse(m, "too long", longerThan(10_000))
	cfg := config(m)
	cfg.Question = strings.Repeat("word ", 4000)
	cfg.Trace = t.TempDir() + "/trace"
	answered(t, cfg, "20000")
	if want := []string{"!root", "root"}; !slices.Equal(*purposes, want) {
		t.Errorf("%q, want %q", *purposes, want)
	}

	m = &models{}
	purposes = refuse(m, "too long", longerThan(10))
	cfg = config(m)
	cfg.Question = strings.Repeat("word ", 4000)
	_, err := run.Run(t.Context(), cfg)
	if want := []string{"!root", "!root"}; !errors.Is(err, llm.ErrContextLength) || !slices.Equal(*purposes, want) {
		t.Errorf("%v, %q, want %q", err, *purposes, want)
	}
}
