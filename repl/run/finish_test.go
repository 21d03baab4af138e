package run_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rlmhq/rlm/internal/testing/llmtest"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/providers"
	"github.com/rlmhq/rlm/repl/run"
)

// notWhole holds finish reasons of servers, all of which mean that a reply is incomplete.
var notWhole = []string{
	"length", "max_tokens", "MAX_TOKENS", "model_length", "incomplete", "model_context_window_exceeded",
	"content_filter", "SAFETY", "RECITATION", "sensitive", "refusal", "guardrail_intervened",
	"error", "network_error", "insufficient_system_resource", "abort", "MALFORMED_FUNCTION_CALL",
	"OTHER", "pause_turn", "tool_calls",
}

// wires are providers that differ in their format or in their finish reasons.
var wires = []string{"openai", "anthropic", "gemini"}

// stump is the text of an incomplete reply.
const stump = "The parts are one, two and th"

// asksAll asks the model of each finish reason in each way. The list believed gets the results of
// all calls that did not fail.
const asksAll = `believed = []
for word in WORDS:
    model = PREFIX + word
    for place, ask in [
        ("sub-call", lambda: llm_query("what is it?", model=model)),
        ("batch", lambda: llm_query_batched(["what is it?"], model=model)[0]),
        ("typed call", lambda: llm_query("what is it?", model=model, schema={"type": "integer"})),
        ("sub-loop", lambda: rlm_query("what is it?", model=model)),
    ]:
        try:
            value = ask()
            if value == 12 or not str(value).startswith("Error: "):
                believed.append(f"{place} {word}: {value}")
        except Exception:
            pass
print(len(believed))`

// cutModels serves the models PREFIX-WORD, whose replies end with the finish reason WORD. The
// models whole-WORD do so from their second reply on, and the model root calls all others.
func cutModels(t *testing.T, wire string) *providers.Registry {
	t.Helper()
	words := "'" + strings.Join(notWhole, "', '") + "'"
	asks := strings.NewReplacer("WORDS", "["+words+"]", "PREFIX", "'"+wire+"/cut-'").Replace(asksAll)
	server := llmtest.Start(func(r llm.Request) (llm.Response, error) {
		isLoop := r.Messages[0].Role == llm.RoleSystem
		turn := len(r.Messages) / 2
		switch {
		case r.Model == "root" && turn == 1:
			return llm.Response{Text: code(asks)}, nil
		case r.Model == "root":
			return llm.Response{Text: code("FINAL(believed)")}, nil
		case strings.HasPrefix(r.Model, "whole-") && turn == 1:
			return llm.Response{Text: code("print(1)")}, nil
		case r.Schema != nil:
			return llm.Response{Text: "12"}, nil
		case isLoop && turn == 1:
			return llm.Response{Text: "FINAL(" + stump + ")"}, nil
		}
		return llm.Response{Text: stump}, nil
	})
	t.Cleanup(server.Close)

	for _, word := range notWhole {
		fault := llmtest.Finish(word)
		fault.Times = -1
		fault.When = func(r llm.Request) bool {
			return r.Model == "cut-"+word || r.Model == "whole-"+word && len(r.Messages) > 2
		}
		server.Fail(fault)
	}
	registry, err := providers.New(providers.Options{
		Env:  server.Env,
		HTTP: providers.HTTP{FirstWait: time.Millisecond, Attempts: 2},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { registry.Close() })
	return registry
}

// TestOnlyWholeRepliesAreBelieved checks that an incomplete reply never becomes an answer, whatever
// its finish reason and its wire format.
func TestOnlyWholeRepliesAreBelieved(t *testing.T) {
	for _, wire := range wires {
		t.Run(wire, func(t *testing.T) {
			registry := cutModels(t, wire)
			t.Run("calls of snippets", func(t *testing.T) {
				cfg := config(nil)
				cfg.Models, cfg.Model, cfg.MaxTurns = registry, wire+"/root", 3
				cfg.SubModel, cfg.Retries = wire+"/root", 1
				cfg.Budget = ledger.Budget{Calls: 5_000, Tokens: 1 << 40, InputTokens: 1 << 40, OutputTokens: 1 << 40}
				for _, word := range notWhole {
					cfg.AllowedModels = append(cfg.AllowedModels, wire+"/cut-"+word)
				}
				answered(t, cfg, "[]")
			})

			for _, word := range notWhole {
				t.Run("last word/"+word, func(t *testing.T) {
					cfg := config(nil)
					cfg.Models, cfg.Model, cfg.MaxTurns = registry, wire+"/whole-"+word, 1
					checkUnanswered(t, cfg)
				})
				t.Run("direct answer/"+word, func(t *testing.T) {
					cfg := config(nil, text("short"))
					cfg.Models, cfg.Model, cfg.MaxTurns, cfg.Bypass = registry, wire+"/cut-"+word, 1, 0
					checkUnanswered(t, cfg)
				})
			}
		})
	}
}

// checkUnanswered runs a configuration with streaming and checks that the outcome has no answer and
// gives a reason.
func checkUnanswered(t *testing.T, cfg run.Config) {
	t.Helper()
	var mu sync.Mutex
	var streamed strings.Builder
	cfg.Stream = true
	cfg.Progress = func(e ledger.Event) {
		mu.Lock()
		defer mu.Unlock()
		if e.Kind == ledger.EventDelta {
			streamed.WriteString(e.Text)
		}
	}
	outcome, err := run.Run(t.Context(), cfg)
	if outcome.Answer != nil || strings.Contains(fmt.Sprint(err, outcome.Reason), stump) {
		t.Errorf("the run ended as %s with %s (reason %q): %v", outcome.Status, outcome.Answer, outcome.Reason, err)
	}
	if err == nil && outcome.Reason == "" {
		t.Error("the run does not say why it has no answer")
	}
	if streamed.Len() == 0 && err == nil {
		t.Error("nothing was streamed")
	}
}

// TestTheCodeOfARefusalIsNotRun checks that the code of a filtered reply does not run. A filter may
// stop a reply anywhere, so its code may be incomplete.
func TestTheCodeOfARefusalIsNotRun(t *testing.T) {
	outcome, err := run.Run(t.Context(), config(&models{byPurpose: func(llm.Request) (llm.Response, bool) {
		return llm.Response{Text: code("FINAL(1)"), Finish: "content_filter"}, true
	}}))
	if err == nil || outcome.Answer != nil || !strings.Contains(err.Error(), "declined") {
		t.Errorf("the run ended as %s with %s: %v", outcome.Status, outcome.Answer, err)
	}
}

// TestAnAnswerBesideTheCallOfAToolDoesNotCount checks that an answer next to a tool call is not
// accepted, because the model still waits for the tool's result.
func TestAnAnswerBesideTheCallOfAToolDoesNotCount(t *testing.T) {
	var told string
	answered(t, config(&models{byPurpose: func(r llm.Request) (llm.Response, bool) {
		told = last(r)
		if r.Metadata.Turn == 1 {
			return llm.Response{Text: "FINAL(5)", Finish: "tool_use"}, true
		}
		return llm.Response{Text: "FINAL(1)"}, true
	}}), "1")
	if !strings.Contains(told, "You called a tool") {
		t.Errorf("the model is told %q", told)
	}
}
