package otel_test

import (
	"context"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/rlmhq/rlm/internal/testing/otlp"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/otel"
	"github.com/rlmhq/rlm/router"
	"github.com/rlmhq/rlm/tiers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// receiver is an OTLP receiver on loopback.
type receiver struct {
	*httptest.Server

	mu       sync.Mutex
	spans    []*otlp.Span
	resource map[string]string
	requests []*http.Request
	raw      strings.Builder
	status   int // status code of its responses; 0 means 200
}

func listen(t *testing.T) *receiver {
	t.Helper()
	r := &receiver{resource: map[string]string{}}
	r.Server = httptest.NewServer(http.HandlerFunc(r.serve))
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) serve(w http.ResponseWriter, req *http.Request) {
	request, err := otlp.Read(req)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests = append(r.requests, req.Clone(context.Background()))
	if r.status != 0 {
		http.Error(w, "no, and not with "+req.Header.Get("Authorization"), r.status)
		return
	}
	maps.Copy(r.resource, request.Resource)
	r.spans = append(r.spans, request.Spans...)
	r.raw.WriteString(request.Raw)
}

// span returns the only span with a name.
func (r *receiver) span(t *testing.T, name string) *otlp.Span {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	var found *otlp.Span
	for _, s := range r.spans {
		if s.Name == name {
			if found != nil {
				t.Fatalf("there are several spans %s", name)
			}
			found = s
		}
	}
	if found == nil {
		t.Fatalf("there is no span %s among %d", name, len(r.spans))
	}
	return found
}

// everything returns all data that arrived, as one string.
func (r *receiver) everything() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.raw.String()
}

// environment returns a function that reads variables from a map, and sets those of
// OpenTelemetry in the process, where its library reads them.
func environment(t *testing.T, variables map[string]string) func(string) string {
	t.Helper()
	for name, value := range variables {
		if strings.HasPrefix(name, "OTEL_") {
			t.Setenv(name, value)
		}
	}
	return func(name string) string { return variables[name] }
}

// observe returns an observer that sends to r by OTLP.
func (r *receiver) observe(t *testing.T, cfg otel.Config) *otel.Observer {
	t.Helper()
	cfg.To = otel.OTLP
	cfg.Env = environment(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": r.URL})
	if cfg.Log == nil {
		cfg.Log = func(err error) { t.Error(err) }
	}
	o, err := otel.New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func closed(t *testing.T, o *otel.Observer) {
	t.Helper()
	if err := o.Close(context.Background()); err != nil {
		t.Error(err)
	}
}

// ran returns a snippet that ended.
func ran(source, stdout string, status tiers.Status) *ledger.Snippet {
	return &ledger.Snippet{
		Language: tiers.Python,
		Source:   source,
		Result: router.Result{
			Result: tiers.Result{Stdout: stdout, Stderr: "careful\n", Status: status},
			Tier:   "wasm",
		},
	}
}

// reflected emits the events of a run of the Recursive Reflector in three iterations, with two
// sub-calls in the second.
func reflected(o *otel.Observer) {
	begun := time.Now().Add(-time.Minute)
	at := func(seconds int) time.Time { return begun.Add(time.Duration(seconds) * time.Second) }
	used := &ledger.Spending{Calls: 1, InputTokens: 100, OutputTokens: 20, USD: 0.5}
	o.Event(ledger.Event{
		Time: at(0), Kind: ledger.EventRunStarted, Node: "0", Model: "openai/gpt-5",
		Text: "What went wrong?",
	})
	for i := range 3 {
		o.Event(ledger.Event{
			Time: at(10*i + 1), Kind: ledger.EventTurnStarted, Node: "0", Turn: i + 1,
			Model: "openai/gpt-5",
		})
		o.Event(ledger.Event{
			Time:    at(10*i + 4),
			Elapsed: 2 * time.Second,
			Kind:    ledger.EventReply,
			Node:    "0",
			Turn:    i + 1,
			Model:   "openai/gpt-5",
			Purpose: "root",
			Text:    "```python\nprint(1)\n```",
			Status:  llm.FinishStop,
			Used:    used,
		})
		if i == 1 {
			for n, question := range []string{"Why?", "And then?"} {
				call := &ledger.SubCall{
					Model:         "openai/small",
					Prompt:        question + "\n\nContext:\nabc",
					Question:      question,
					ContextLength: 3,
					Mode:          "deep_dive",
					Response:      "because ü",
				}
				o.Event(ledger.Event{
					Time:    at(16 + n),
					Elapsed: time.Second,
					Kind:    ledger.EventCall,
					Node:    "0",
					Turn:    i + 1,
					Model:   call.Model,
					Purpose: "leaf",
					Text:    call.Response,
					Used:    used,
					Call:    call,
				})
			}
		}
		status := tiers.StatusOK
		if i == 0 {
			status = tiers.StatusRaised
		}
		o.Event(ledger.Event{
			Time: at(10*i + 9), Kind: ledger.EventSnippet, Node: "0", Turn: i + 1,
			Tier: "wasm", Status: string(status), Ran: ran("print(1)", "1\n", status),
		})
	}
	o.Event(ledger.Event{
		Time: at(30), Kind: ledger.EventWarning, Node: "0", Turn: 3, Error: "a tier broke",
	})
	o.Event(ledger.Event{Time: at(30), Kind: ledger.EventAnswer, Node: "0", Turn: 3, Text: "done"})
	o.Event(ledger.Event{
		Time: at(31), Kind: ledger.EventRunEnded, Node: "0", Status: "answered",
		Text: "done", Spent: &ledger.Spending{InputTokens: 500, OutputTokens: 100, USD: 2.5},
	})
}

// TestTraceHierarchy checks the tree of spans and their attributes.
//
// Source 000, repl/otel/spans.go: Creates one trace per RR invocation with child spans per
// iteration: rr_reflect above rr_iteration_0 with code, stdout, stderr.
func TestTraceHierarchy(t *testing.T) {
	r := listen(t)
	o := r.observe(t, otel.Config{Loop: "reflect", Version: "1.2.3"})
	reflected(o)
	if err := o.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	root := r.span(t, "rr_reflect")
	if root.ParentID != "" || len(r.spans) != 9 {
		t.Errorf("%d spans, and the root is below %x", len(r.spans), root.ParentID)
	}
	for i, name := range []string{"rr_iteration_0", "rr_iteration_1", "rr_iteration_2"} {
		s := r.span(t, name)
		if s.ParentID != root.ID || s.TraceID != root.TraceID {
			t.Errorf("%s is not below the root", name)
		}
		if s.End <= s.Start || s.End > root.End {
			t.Errorf("%s lasts from %d to %d", name, s.Start, s.End)
		}
		got := s.Attributes
		if got["code"] != "print(1)" || got["stdout"] != "1\n" || got["stderr"] != "careful\n" ||
			got["tier"] != "wasm" {
			t.Errorf("%s: %v", name, got)
		}
		if want := map[bool]string{
			true:  "true",
			false: "false",
		}[i == 2]; got["terminated"] != want {
			t.Errorf("%s: terminated is %q, not %q", name, got["terminated"], want)
		}
	}
	if events := r.span(t, "rr_iteration_2").Events; len(events) != 1 ||
		events[0] != "warning" {
		t.Errorf("events: %v", events)
	}
	calls := map[string]int{}
	for _, s := range r.spans {
		if strings.HasPrefix(s.Name, "chat ") {
			calls[s.Name+" "+s.ParentID]++
		}
	}
	if n := calls["chat small "+r.span(t, "rr_iteration_1").ID]; n != 2 {
		t.Errorf("the second iteration has %d sub-calls", n)
	}
	if r.resource["service.name"] != "rlm" || r.resource["service.version"] != "1.2.3" {
		t.Errorf("resource: %v", r.resource)
	}
	closed(t, o)
}

// TestMetadata checks the metadata on the span of a run.
//
// Source 000, repl/otel/spans.go: Parent trace metadata includes total_iterations, and
// subagent_call_count and subagent_calls only when sub-agent calls exist.
func TestMetadata(t *testing.T) {
	r := listen(t)
	o := r.observe(t, otel.Config{Loop: "reflect"})
	reflected(o)
	closed(t, o)
	got := r.span(t, "rr_reflect").Attributes
	for key, want := range map[string]string{
		"total_iterations":    "3",
		"subagent_call_count": "2",
		"subagent_calls": `[{"call_number":1,"question":"Why?",` +
			`"context_length":3,"response_length":9,"mode":"deep_dive"},` +
			`{"call_number":2,"question":"And then?",` +
			`"context_length":3,"response_length":9,"mode":"deep_dive"}]`,
		"rlm.total_input_tokens": "500",
		"rlm.status":             "answered",
		"input.value":            "What went wrong?",
		"output.value":           "done",
	} {
		if got[key] != want {
			t.Errorf("%s is %q, not %q", key, got[key], want)
		}
	}

	// Without sub-calls, the metadata does not mention them.
	r = listen(t)
	o = r.observe(t, otel.Config{Loop: "reflect"})
	o.Event(ledger.Event{Kind: ledger.EventRunStarted, Node: "0"})
	o.Event(ledger.Event{Kind: ledger.EventRunEnded, Node: "0", Status: "failed", Error: "no tier"})
	closed(t, o)
	root := r.span(t, "rr_reflect")
	got = root.Attributes
	if _, ok := got["subagent_call_count"]; ok || got["total_iterations"] != "0" {
		t.Errorf("without sub-calls: %v", got)
	}
	if !root.Failed || root.Message != "no tier" {
		t.Errorf("status: %v, %q", root.Failed, root.Message)
	}
}

func TestGenAINames(t *testing.T) {
	r := listen(t)
	o := r.observe(t, otel.Config{})
	o.Event(ledger.Event{Kind: ledger.EventRunStarted, Node: "0", Model: "anthropic/claude"})
	o.Event(ledger.Event{Kind: ledger.EventTurnStarted, Node: "0", Turn: 1})
	o.Event(ledger.Event{
		Kind:    ledger.EventReply,
		Node:    "0",
		Turn:    1,
		Model:   "anthropic/claude",
		Purpose: "root",
		Text:    `say "hi"`,
		Status:  "length",
		Used:    &ledger.Spending{InputTokens: 7, OutputTokens: 5},
		Elapsed: time.Second,
	})
	o.Event(ledger.Event{
		Kind: ledger.EventReply, Node: "0", Turn: 1, Model: "plain", Error: "server away",
	})
	closed(t, o)
	s := r.span(t, "chat claude")
	got := s.Attributes
	for key, want := range map[string]string{
		"gen_ai.operation.name": "chat", "gen_ai.provider.name": "anthropic",
		"gen_ai.request.model":      "claude",
		"gen_ai.usage.input_tokens": "7", "gen_ai.usage.output_tokens": "5",
		"gen_ai.output.messages": `[{"role":"assistant","parts":[{"type":"text","content":"say \"hi\""}],` +
			`"finish_reason":"length"}]`,
	} {
		if got[key] != want {
			t.Errorf("%s is %q, not %q", key, got[key], want)
		}
	}
	if !strings.Contains(got["gen_ai.response.finish_reasons"], "length") ||
		s.Kind != otlp.KindClient {
		t.Errorf("%v, kind %v", got, s.Kind)
	}
	if failed := r.span(t, "chat plain"); failed.Message != "server away" {
		t.Errorf("status: %q", failed.Message)
	}
}

func TestSubLoopsAreBelowTheIterationThatStartedThem(t *testing.T) {
	r := listen(t)
	o := r.observe(t, otel.Config{})
	o.Event(ledger.Event{Kind: ledger.EventRunStarted, Node: "0"})
	o.Event(ledger.Event{Kind: ledger.EventTurnStarted, Node: "0", Turn: 1})
	o.Event(ledger.Event{Kind: ledger.EventLoopStarted, Node: "0.1", Depth: 1, Text: "part"})
	o.Event(ledger.Event{Kind: ledger.EventTurnStarted, Node: "0.1", Depth: 1, Turn: 7})
	o.Event(ledger.Event{Kind: ledger.EventLoopEnded, Node: "0.1", Depth: 1, Status: "answered"})
	// The second sub-loop has no event for its end.
	o.Event(ledger.Event{Kind: ledger.EventLoopStarted, Node: "0.2", Depth: 1})
	o.Event(ledger.Event{
		Kind: ledger.EventRunEnded, Node: "0", Status: "partial",
		Error: "the budget was used up",
	})
	closed(t, o)
	first := r.span(t, "rlm_iteration_1")
	if first.ParentID != r.span(t, "rlm_run").ID {
		t.Error("the iteration is not below the run")
	}
	var sub *otlp.Span
	for _, s := range r.spans {
		if s.Name != "rlm_sub_loop" {
			continue
		}
		if s.ParentID != first.ID {
			t.Error("a sub-loop is not below the iteration")
		}
		if s.Attributes["rlm.node"] == "0.1" {
			sub = s
		}
	}
	if sub == nil || r.span(t, "rlm_iteration_7").ParentID != sub.ID {
		t.Error("the sub-loop's iteration is not below it")
	}
	if root := r.span(t, "rlm_run"); root.Failed ||
		root.Attributes["rlm.reason"] == "" {
		t.Errorf("a partial run: %v", root)
	}
}

func TestHostileTextsAreBoundedAndWithoutSecrets(t *testing.T) {
	const key = "sk-very-secret-0123456789"
	r := listen(t)
	o := r.observe(
		t, otel.Config{Loop: "reflect", Secrets: []llm.Secret{llm.NewSecret(key)}, MaxText: 100},
	)
	hostile := "\xff\x00" + key + strings.Repeat("long ", 10_000)
	o.Event(
		ledger.Event{Kind: ledger.EventRunStarted, Node: "0", Text: hostile, Model: hostile[:30]},
	)
	o.Event(ledger.Event{Kind: ledger.EventTurnStarted, Node: "0"})
	for range 100 {
		o.Event(ledger.Event{
			Kind: ledger.EventSnippet, Node: "0", Ran: ran(hostile, hostile, tiers.StatusOK),
		})
		o.Event(ledger.Event{Kind: ledger.EventWarning, Node: "0", Error: hostile})
	}
	for range 300 {
		o.Event(ledger.Event{
			Kind: ledger.EventCall,
			Node: "0",
			Text: hostile,
			Call: &ledger.SubCall{
				Prompt: hostile, Question: hostile, Response: hostile, Mode: hostile,
			},
		})
	}
	o.Event(ledger.Event{Kind: ledger.EventSnippet, Node: "0.9.9", Text: "of nobody"})
	o.Event(ledger.Event{
		Kind: ledger.EventRunEnded, Node: "0", Text: hostile, Error: hostile,
		Status: "failed",
	})
	closed(t, o)
	all := r.everything()
	if strings.Contains(all, key) {
		t.Error("a secret went out")
	}
	if !strings.Contains(all, "TRUNCATED") {
		t.Error("texts were not cut")
	}
	for _, s := range r.spans {
		if size := s.Size; size > 100_000 {
			t.Errorf("the span %s has %d bytes", s.Name, size)
		}
	}
	if got := r.span(t, "rr_reflect").Attributes["subagent_call_count"]; got != "300" {
		t.Errorf("%s sub-calls", got)
	}
}

// TestExportFailingIsLoggedAndEndsNothing checks that a failed export does not end a run.
//
// Source 000, repl/otel/otel.go: Gracefully degrades to a no-op.
func TestExportFailingIsLoggedAndEndsNothing(t *testing.T) {
	const key = "opik-key-0123456789abcdef"
	r := listen(t)
	r.status = http.StatusForbidden
	var mu sync.Mutex
	var logged []error
	o, err := otel.New(t.Context(), otel.Config{
		To:   otel.Opik,
		Loop: "reflect",
		Env:  environment(t, map[string]string{"OPIK_URL_OVERRIDE": r.URL, "OPIK_API_KEY": key}),
		Log: func(err error) {
			mu.Lock()
			defer mu.Unlock()
			logged = append(logged, err)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	reflected(o)
	if err := o.Flush(t.Context()); err != nil {
		t.Error(err)
	}
	closed(t, o)
	mu.Lock()
	defer mu.Unlock()
	if len(logged) == 0 || !strings.Contains(logged[0].Error(), "cannot export 9 spans") ||
		!strings.Contains(logged[0].Error(), "403") {
		t.Errorf("logged: %v", logged)
	}
	for _, err := range logged {
		if strings.Contains(err.Error(), key) {
			t.Error("the log has the key")
		}
	}
}

// TestFlushAndCloseEndWithTheirContext checks both with a server that does not answer.
//
// Source 000, repl/otel/otel.go: flush() drains buffered traces before the process exits.
func TestFlushAndCloseEndWithTheirContext(t *testing.T) {
	release := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		select {
		case <-release:
		case <-req.Context().Done():
		}
	}))
	defer server.Close()
	defer close(release)
	o, err := otel.New(t.Context(), otel.Config{
		To:  otel.OTLP,
		Env: environment(t, map[string]string{"OTEL_EXPORTER_OTLP_ENDPOINT": server.URL}),
		Log: func(error) {},
	})
	if err != nil {
		t.Fatal(err)
	}
	reflected(o)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := o.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Flush: %v", err)
	}
	reflected(o)
	if err := o.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Close: %v", err)
	}
}

func TestEventsMayComeAtOnce(t *testing.T) {
	r := listen(t)
	o := r.observe(t, otel.Config{})
	o.Event(ledger.Event{Kind: ledger.EventRunStarted, Node: "0"})
	o.Event(ledger.Event{Kind: ledger.EventTurnStarted, Node: "0", Turn: 1})
	var group sync.WaitGroup
	for range 20 {
		group.Go(func() {
			for range 20 {
				o.Event(ledger.Event{
					Kind: ledger.EventCall, Node: "0", Turn: 1, Model: "m",
					Call: &ledger.SubCall{},
				})
			}
		})
	}
	group.Wait()
	o.Event(ledger.Event{Kind: ledger.EventRunEnded, Node: "0"})
	closed(t, o)
	if len(r.spans) != 402 {
		t.Errorf("%d spans", len(r.spans))
	}
}

func BenchmarkEvent(b *testing.B) {
	server := httptest.NewServer(
		http.HandlerFunc(
			func(_ http.ResponseWriter, req *http.Request) { _, _ = io.Copy(io.Discard, req.Body) },
		),
	)
	defer server.Close()
	b.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	o, err := otel.New(b.Context(), otel.Config{To: otel.OTLP})
	if err != nil {
		b.Fatal(err)
	}
	o.Event(ledger.Event{Kind: ledger.EventRunStarted, Node: "0"})
	call := &ledger.SubCall{
		Prompt: strings.Repeat("x", 20_000), Response: strings.Repeat("y", 2_000),
	}
	for b.Loop() {
		o.Event(ledger.Event{
			Kind: ledger.EventCall, Node: "0", Model: "m", Text: call.Response, Call: call,
		})
	}
	if err := o.Close(context.Background()); err != nil {
		b.Fatal(err)
	}
}

func TestLabelsAreOnEverySpan(t *testing.T) {
	r := listen(t)
	o := r.observe(t, otel.Config{Loop: "run", Secrets: []llm.Secret{llm.NewSecret("hunter22")}})
	labels := map[string]string{"tenant": "acme", "request": "with hunter22"}
	for _, kind := range []ledger.EventKind{
		ledger.EventRunStarted, ledger.EventTurnStarted, ledger.EventReply, ledger.EventCall,
		ledger.EventRunEnded,
	} {
		o.Event(ledger.Event{
			Kind: kind, Node: "0", Turn: 1, Time: time.Now(), Model: "a/b", Labels: labels,
		})
	}
	closed(t, o)
	if len(r.spans) < 4 {
		t.Fatalf("%d spans", len(r.spans))
	}
	for _, s := range r.spans {
		got := s.Attributes
		if got["rlm.label.tenant"] != "acme" ||
			strings.Contains(got["rlm.label.request"], "hunter22") ||
			got["rlm.label.request"] == "" {
			t.Errorf("%s: %v", s.Name, got)
		}
	}
}
