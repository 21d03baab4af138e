package run_test

import (
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/testing/llmtest"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/providers"
	"github.com/rlmhq/rlm/repl/run"
)

// TestARunAgainstAServerWithEveryQuirk checks that a second run, with its own registry, repeats
// only one refused call, from which the registry learns the window.
func TestARunAgainstAServerWithEveryQuirk(t *testing.T) {
	answers := 0
	server := llmtest.StartQuirky(func(r llm.Request) (llm.Response, error) {
		answers++
		asked, turns := last(r), 0
		for _, m := range r.Messages {
			if m.Role == llm.RoleAssistant {
				turns++
			}
		}
		switch {
		case strings.Contains(asked, "Is part"):
			return llm.Response{Text: "true"}, nil
		case strings.Contains(asked, "replaced by a summary"):
			return llm.Response{Text: "I know all verdicts."}, nil
		case strings.Contains(asked, "What came last"), turns > 2:
			return llm.Response{Text: code("FINAL(sum(verdicts))")}, nil
		case turns == 0:
			return llm.Response{Text: code("verdicts = [llm_query(f'Is part {c}?', schema=bool) for c in context]\n" +
				"print('x' * 35_000)")}, nil
		}
		return llm.Response{Text: code("print('y' * 35_000)")}, nil
	})
	t.Cleanup(server.Close)

	folder := t.TempDir()
	for _, stream := range []bool{true, false} {
		registry, err := providers.New(providers.Options{Env: server.Env, Learned: folder})
		if err != nil {
			t.Fatal(err)
		}
		cfg := config(nil, text("abc"))
		cfg.Models, cfg.Model, cfg.SubModel = registry, "openai/gpt-5", "openai/gpt-5"
		cfg.FeedbackChars, cfg.CallsAtOnce, cfg.Budget = 40_000, 1, ledger.Budget{}
		cfg.Stream, cfg.Progress = stream, func(ledger.Event) {}
		outcome, err := run.Run(t.Context(), cfg)
		if err != nil || outcome.Text() != "3" {
			t.Fatalf("stream %v: %+v, %v", stream, outcome, err)
		}
		if err := registry.Close(); err != nil {
			t.Error(err)
		}
	}

	refused := 0
	for name, times := range server.Refused() {
		most := 1
		if name == "length" {
			most = 4 // in each run, the turn and its summary
		}
		if refused += times; times > most {
			t.Errorf("%s: refused %d times", name, times)
		}
	}
	if server.Refused()["length"] == 0 || len(server.Seen()) != answers+refused {
		t.Errorf("%d requests, %d answers, refused: %v", len(server.Seen()), answers, server.Refused())
	}
}
