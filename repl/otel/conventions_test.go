package otel_test

import (
	"encoding/json"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/otel"
	"github.com/rlmhq/rlm/tiers"
)

const capture = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"

// asked emits the events of a run of one iteration: a reply to the loop, a snippet, a call of
// the snippet, and a call that failed.
func asked(o *otel.Observer) {
	warm, seed := 0.25, int64(7)
	request := &llm.Request{
		Model: "gpt-5", MaxTokens: 1024, Schema: json.RawMessage(`{}`),
		Messages: []llm.Message{
			{Role: llm.RoleSystem, Content: "Be exact."},
			{Role: llm.RoleUser, Content: "Which place?"},
			{Role: llm.RoleAssistant, Content: "Code."},
			{Role: llm.RoleUser, Content: "Its output."},
		},
		Sampling: llm.Sampling{Temperature: &warm, Seed: &seed},
	}
	base := ledger.Event{Node: "0", Turn: 1, Model: "azure/gpt-5", Elapsed: time.Second}
	event := func(kind ledger.EventKind, change func(*ledger.Event)) {
		e := base
		e.Kind = kind
		if change != nil {
			change(&e)
		}
		o.Event(e)
	}

	event(ledger.EventRunStarted, func(e *ledger.Event) { e.Text = "Which place?" })
	event(ledger.EventTurnStarted, nil)
	event(ledger.EventReply, func(e *ledger.Event) {
		e.Purpose, e.Text, e.Status = "root", "print(1)", llm.FinishStop
		e.Used = &ledger.Spending{Calls: 1, InputTokens: 70, OutputTokens: 5, USD: 0.5}
		e.Request, e.Host, e.Port = request, "models.example", 8443
		e.Response = &llm.Response{
			ID: "resp-1", Model: "gpt-5-2026", Usage: llm.Usage{CachedTokens: 40, ReasoningTokens: 3},
		}
	})
	event(ledger.EventSnippet, func(e *ledger.Event) {
		e.Tier, e.Status, e.Ran = "wasm", "ok", ran("print(1)", "1\n", tiers.StatusOK)
	})
	event(ledger.EventCall, func(e *ledger.Event) {
		e.Model, e.Purpose, e.Text, e.Status = "ollama/small", "leaf", "no", llm.FinishRefusal
		e.Call = &ledger.SubCall{Prompt: "A question?"}
		e.Used = &ledger.Spending{Calls: 1, Unpriced: 1}
	})
	event(ledger.EventReply, func(e *ledger.Event) {
		e.Model = "anthropic/claude"
		e.Err = &llm.Error{Kind: llm.ErrRateLimited, Status: 429}
		e.Error = e.Err.Error()
	})
	event(ledger.EventRunEnded, func(e *ledger.Event) {
		e.Status, e.Error = "failed", "no tier"
	})
}

// observed returns the attributes of the spans that asked produces, by span name.
func observed(t *testing.T, cfg otel.Config, variables map[string]string) map[string]map[string]string {
	t.Helper()
	r := listen(t)
	variables = maps.Clone(variables)
	if variables == nil {
		variables = map[string]string{}
	}
	cfg.Conversation = "tickets"
	if cfg.To == "" {
		cfg.To = otel.OTLP
		variables["OTEL_EXPORTER_OTLP_ENDPOINT"] = r.URL
	} else {
		variables["OPIK_URL_OVERRIDE"] = r.URL
	}
	cfg.Env, cfg.Log = environment(t, variables), func(err error) { t.Error(err) }
	o, err := otel.New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}

	asked(o)
	closed(t, o)
	all := map[string]map[string]string{}
	for _, s := range r.spans {
		all[s.Name] = s.Attributes
		if s.Failed {
			all[s.Name]["status"] = "failed"
		}
	}
	return all
}

// check compares the wanted attributes of a span. An empty value means that the attribute is
// absent.
func check(t *testing.T, got, want map[string]string) {
	t.Helper()
	for _, key := range slices.Sorted(maps.Keys(want)) {
		if got[key] != want[key] {
			t.Errorf("%s is %q, not %q", key, got[key], want[key])
		}
	}
}

const reply = `[{"role":"assistant","parts":[{"type":"text","content":"print(1)"}],"finish_reason":"stop"}]`

func TestCallsFollowTheConventions(t *testing.T) {
	spans := observed(t, otel.Config{}, nil)
	check(t, spans["chat gpt-5"], map[string]string{
		"gen_ai.operation.name": "chat", "gen_ai.provider.name": "azure.ai.openai",
		"gen_ai.request.model": "gpt-5", "gen_ai.request.max_tokens": "1024",
		"gen_ai.request.temperature": "0.25", "gen_ai.request.seed": "7",
		"gen_ai.output.type": "json", "gen_ai.response.id": "resp-1",
		"gen_ai.response.model": "gpt-5-2026", "gen_ai.conversation.id": "tickets",
		"session.id": "tickets", "server.address": "models.example", "server.port": "8443",
		"gen_ai.usage.input_tokens": "70", "gen_ai.usage.output_tokens": "5",
		"gen_ai.usage.cache_read.input_tokens": "40", "gen_ai.usage.reasoning.output_tokens": "3",
		"gen_ai.usage.cost": "0.5", "rlm.cost_usd": "0.5", "gen_ai.output.messages": reply,
		"gen_ai.input.messages": "", "gen_ai.system_instructions": "", "error.type": "",
	})
	check(t, spans["chat small"], map[string]string{
		"gen_ai.provider.name":  "ollama",
		"gen_ai.input.messages": `[{"role":"user","parts":[{"type":"text","content":"A question?"}]}]`,
		"gen_ai.output.messages": `[{"role":"assistant","parts":[{"type":"text","content":"no"}],` +
			`"finish_reason":"content_filter"}]`,
		"gen_ai.usage.cost": "", "server.address": "", "gen_ai.request.max_tokens": "",
	})
	check(t, spans["chat claude"], map[string]string{
		"error.type": "429", "status": "failed",
	})
	check(t, spans["rlm_iteration_1"], map[string]string{
		"input.value": "print(1)", "output.value": "1\ncareful\n", "code": "print(1)",
	})
	check(t, spans["rlm_run"], map[string]string{
		"gen_ai.agent.name": "rlm_run", "gen_ai.request.model": "gpt-5", "error.type": "failed",
		"gen_ai.provider.name": "azure.ai.openai", "gen_ai.conversation.id": "tickets",
		"input.value": "Which place?", "status": "failed",
	})
}

func TestConversationsAreSentIfTheVariableSaysSo(t *testing.T) {
	for _, value := range []string{"true", "SPAN_ONLY", "span_and_event"} {
		t.Run(value, func(t *testing.T) {
			spans := observed(t, otel.Config{}, map[string]string{capture: value})
			check(t, spans["chat gpt-5"], map[string]string{
				"gen_ai.system_instructions": `[{"type":"text","content":"Be exact."}]`,
				"gen_ai.input.messages": `[{"role":"user","parts":[{"type":"text","content":"Which place?"}]},` +
					`{"role":"assistant","parts":[{"type":"text","content":"Code."}]},` +
					`{"role":"user","parts":[{"type":"text","content":"Its output."}]}]`,
				"gen_ai.output.messages": reply,
			})
		})
	}
	for _, value := range []string{"false", "NO_CONTENT"} {
		t.Run(value, func(t *testing.T) {
			spans := observed(t, otel.Config{}, map[string]string{capture: value})
			for _, name := range []string{"chat gpt-5", "chat small"} {
				check(t, spans[name], map[string]string{
					"gen_ai.system_instructions": "", "gen_ai.input.messages": "",
					"gen_ai.output.messages": "",
				})
			}
		})
	}
}

func TestLongConversationsAreCut(t *testing.T) {
	r := listen(t)
	request := &llm.Request{Model: "m"}
	for range 100 {
		request.Messages = append(request.Messages,
			llm.Message{Role: llm.RoleUser, Content: strings.Repeat("x", 50)})
	}
	request.Messages[99].Images = []llm.Image{{Type: "image/png", Data: []byte("secret")}}

	o, err := otel.New(t.Context(), otel.Config{
		To: otel.OTLP, MaxText: 10, Env: environment(t, map[string]string{
			"OTEL_EXPORTER_OTLP_ENDPOINT": r.URL, capture: "true",
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	o.Event(ledger.Event{Kind: ledger.EventRunStarted, Node: "0"})
	o.Event(ledger.Event{Kind: ledger.EventReply, Node: "0", Model: "p/m", Request: request})
	closed(t, o)
	got := r.span(t, "chat m").Attributes["gen_ai.input.messages"]
	if n := strings.Count(got, `"role"`); n != 40 || !strings.Contains(got, "60 earlier messages left out") ||
		!strings.Contains(got, "1 pictures left out") || len(got) > 10_000 {
		t.Errorf("%d messages, %d bytes: %.200s", n, len(got), got)
	}
}

// TestOpikShowsItsFields checks the names of attributes for Opik, which treats unknown attributes
// as parts of the input.
//
// Source 000, repl/otel/names.go: RROpikStep logs RR traces to Opik.
func TestOpikShowsItsFields(t *testing.T) {
	spans := observed(t, otel.Config{To: otel.Opik}, nil)
	check(t, spans["rlm_run"], map[string]string{
		"opik.metadata.total_iterations": "1", "opik.metadata.rlm.status": "failed",
		"thread_id": "tickets", "session.id": "", "total_iterations": "", "rlm.status": "",
		"opik.metadata.subagent_call_count": "1",
	})
	check(t, spans["rlm_iteration_1"], map[string]string{
		"input.code": "print(1)", "output.stdout": "1\n", "output.stderr": "careful\n", "code": "",
		"opik.metadata.tier": "wasm", "opik.metadata.terminated": "false",
		"input.value": "print(1)", "output.value": "1\ncareful\n",
	})
	check(t, spans["chat gpt-5"], map[string]string{
		"gen_ai.system": "azure.ai.openai", "gen_ai.request.model": "gpt-5",
		"gen_ai.usage.input_tokens": "70", "gen_ai.usage.cost": "",
		"opik.metadata.rlm.cost_usd": "0.5", "opik.metadata.rlm.purpose": "root",
	})
	for name, span := range spans {
		for key := range span {
			known := false
			for _, begin := range []string{
				"gen_ai.", "input.", "output.", "error.", "server.", "thread_id", "opik.metadata.", "status",
			} {
				known = known || strings.HasPrefix(key, begin)
			}
			if !known {
				t.Errorf("%s has %s, which Opik would show as input", name, key)
			}
		}
	}
}
