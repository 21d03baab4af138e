package server

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/internal/testing/testcache"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/scripted"
	"github.com/rlmhq/rlm/server/internal/access"
	"github.com/rlmhq/rlm/server/internal/runs"
	"github.com/rlmhq/rlm/standard"
	runstore "github.com/rlmhq/rlm/store"
)

func TestMain(m *testing.M) {
	if err := testcache.Use(); err != nil {
		log.Fatal(err)
	}
	os.Exit(m.Run())
}

// oneModel resolves every name to a model, which costs a dollar per thousand tokens.
type oneModel struct{ llm.Provider }

func (m oneModel) Resolve(name string) (llm.Model, error) {
	return llm.Model{
		Name: name, ID: name, Provider: m.Provider,
		Facts: llm.Facts{Price: &llm.Price{Input: 1_000, Output: 1_000}, Window: 100_000},
	}, nil
}

// held is a model that blocks when its prompt tells it to wait, until the test releases it.
type held struct {
	llm.Provider
	asked   chan struct{}
	release chan struct{}
}

func newHeld(p llm.Provider) *held {
	return &held{p, make(chan struct{}, 100), make(chan struct{})}
}

func (h *held) Complete(ctx context.Context, r llm.Request, stream func(string)) (llm.Response, error) {
	if strings.Contains(r.Messages[len(r.Messages)-1].Content, "wait") {
		h.asked <- struct{}{}
		select {
		case <-h.release:
		case <-ctx.Done():
			return llm.Response{}, context.Cause(ctx)
		}
	}
	return h.Provider.Complete(ctx, r, stream)
}

// counting returns a model that answers direct questions, and counts needles in a loop of two
// turns.
func counting(tb testing.TB) llm.Provider {
	tb.Helper()
	hello := "Hello."
	look, final := "```repl\nprint(len(context))\n```", "```repl\nFINAL(str(context.count('needle')))\n```"
	code, first := "NEEDS_CODE", 0
	model, err := scripted.New(
		scripted.Rule{When: scripted.When{Purpose: "direct"}, Reply: &hello},
		scripted.Rule{When: scripted.When{Purpose: "bypass"}, Reply: &code},
		scripted.Rule{When: scripted.When{Said: &first}, Reply: &look},
		scripted.Rule{Reply: &final},
	)
	if err != nil {
		tb.Fatal(err)
	}
	return model
}

// tested is a server for a test, with a client for it.
type tested struct {
	testing.TB
	server *Server
	web    *httptest.Server
	logs   *lockedBuffer
	stop   func() // ends the server, so that another server can use the folder
}

// start starts a server on loopback. If change is set, it changes the options.
func start(tb testing.TB, dir string, model llm.Provider, change func(*Options)) *tested {
	tb.Helper()
	return startWith(tb, dir, rlm.Options{}, model, change)
}

// startWith is like start, with engine options.
func startWith(
	tb testing.TB, dir string, options rlm.Options, model llm.Provider, change func(*Options),
) *tested {
	tb.Helper()
	options.Store = runstore.Folder(Folder(dir).Store())
	if options.Tiers == nil {
		options.Tiers = standard.Tiers(standard.Options{})
	}
	engine, err := rlm.New(options)
	if err != nil {
		tb.Fatal(err)
	}
	var logs lockedBuffer
	o := Options{
		Dir: Folder(dir), AtOnce: 4, Queue: 4, Sessions: 20, OpenSessions: 4,
		MaxBody: 1 << 20, MaxFile: 1 << 20, MaxContext: 1 << 20,
		Long: 1_000, Open: true, Version: "test", Log: slog.New(slog.NewJSONHandler(&logs, nil)),
		Profiles: []runs.Profile{{Name: runs.DefaultProfile}},
	}
	o.Profiles[0].Task.Config.Models, o.Profiles[0].Task.Config.Model = oneModel{model}, "test/any"
	if change != nil {
		change(&o)
	}

	s, err := New(tb.Context(), engine, o)
	if err != nil {
		tb.Fatal(err)
	}
	web := httptest.NewServer(s)
	stop := sync.OnceFunc(func() {
		web.Close()
		ended, cancel := context.WithCancel(context.Background())
		cancel()
		s.manager.Drain(ended)
		if err := s.Close(); err != nil {
			tb.Error(err)
		}
		if err := engine.Close(); err != nil {
			tb.Error(err)
		}
	})
	tb.Cleanup(stop)
	return &tested{tb, s, web, &logs, stop}
}

// answer is a response whose body has been read.
type answer struct {
	status int
	header http.Header
	body   string
}

// do sends a request. The body is a string, or a value that becomes JSON. Header alternates names
// and values.
func (s *tested) do(method, path, key string, body any, header ...string) answer {
	s.Helper()
	var content io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		content = strings.NewReader(b)
	default:
		data, err := json.Marshal(b)
		if err != nil {
			s.Fatal(err)
		}
		content = bytes.NewReader(data)
	}
	r, err := http.NewRequestWithContext(s.Context(), method, s.web.URL+path, content)
	if err != nil {
		s.Fatal(err)
	}
	if key != "" {
		r.Header.Set("Authorization", "Bearer "+key)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
		if header[i] == "Host" {
			r.Host = header[i+1]
		}
	}

	got, err := s.web.Client().Do(r)
	if err != nil {
		s.Fatal(err)
	}
	defer got.Body.Close()
	data, err := io.ReadAll(got.Body)
	if err != nil {
		s.Fatal(err)
	}
	return answer{got.StatusCode, got.Header, string(data)}
}

// want fails the test unless the answer has the given status and contains text.
func (s *tested) want(got answer, status int, text string) {
	s.Helper()
	if got.status != status || !strings.Contains(got.body, text) {
		s.Errorf("the answer is %d %s, want %d with %q", got.status, got.body, status, text)
	}
}

// field returns the member of the answer's JSON at a path.
func (s *tested) field(got answer, path ...string) any {
	s.Helper()
	var value any
	if err := json.Unmarshal([]byte(got.body), &value); err != nil {
		s.Fatalf("%v: %s", err, got.body)
	}
	for _, name := range path {
		object, _ := value.(map[string]any)
		value = object[name]
	}
	return value
}

func (s *tested) text(got answer, path ...string) string {
	s.Helper()
	text, _ := s.field(got, path...).(string)
	return text
}

// key creates a key and returns its secret.
func (s *tested) key(k access.Key) string {
	s.Helper()
	if k.Scopes == nil {
		k.Scopes = []access.Scope{access.Read, access.Run}
	}
	_, secret, err := s.server.keys.Create(s.Context(), k)
	if err != nil {
		s.Fatal(err)
	}
	return secret
}

type object = map[string]any

// chat returns the body of a request for a chat completion.
func chat(parts ...string) object {
	content := []object{}
	for _, text := range parts {
		content = append(content, object{"type": "text", "text": text})
	}
	return object{"model": "rlm/default", "messages": []object{{"role": "user", "content": content}}}
}

var hay = strings.Repeat("hay needle ", 200)

func TestAShortMessageIsAnsweredDirectly(t *testing.T) {
	s := start(t, t.TempDir(), counting(t), nil)
	got := s.do("POST", "/v1/chat/completions", "", chat("hi"))
	s.want(got, 200, `"content":"Hello."`)
	if s.field(got, "rlm", "run") != nil {
		t.Errorf("a run answers: %s", got.body)
	}
	if usd, _ := s.field(got, "rlm", "usd").(float64); usd == 0 {
		t.Errorf("it costs nothing: %s", got.body)
	}
}

func TestALongMessageBecomesTheContext(t *testing.T) {
	s := start(t, t.TempDir(), counting(t), nil)
	got := s.do("POST", "/v1/chat/completions", "", chat(hay, "how many?"))
	s.want(got, 200, `"content":"200"`)
	if turns, _ := s.field(got, "rlm", "turns").(float64); turns != 2 {
		t.Errorf("it took another number of turns than 2: %s", got.body)
	}
	s.want(s.do("POST", "/v1/chat/completions", "", chat(hay)), 200, `"content":"200"`)
}

func TestAStreamedResponseContinuesBehindAnyEvent(t *testing.T) {
	s := start(t, t.TempDir(), counting(t), nil)
	body := object{"model": "rlm/default", "stream": true, "background": true, "input": []object{{
		"role":    "user",
		"content": []object{{"type": "input_text", "text": hay}, {"type": "input_text", "text": "how many?"}},
	}}}
	whole := s.do("POST", "/v1/responses", "", body).body
	events := strings.SplitAfter(whole, "\n\n")
	var created struct{ Response struct{ ID string } }
	_, data, _ := strings.Cut(events[0], "data: ")
	if err := json.Unmarshal([]byte(data), &created); err != nil || created.Response.ID == "" {
		t.Fatalf("no response was created: %v, %s", err, whole)
	}

	for after := range len(events) - 2 { // the last two are [DONE] and an empty one
		path := "/v1/responses/" + created.Response.ID + "?stream=true&starting_after=" + jsonNumber(after)
		rest := s.do("GET", path, "", nil).body
		if want := strings.Join(events[after+1:], ""); rest != want {
			t.Fatalf("behind event %d come\n%s\nwant\n%s", after, rest, want)
		}
	}
}

func jsonNumber(n int) string { data, _ := json.Marshal(n); return string(data) }

func TestRequestsAreRefusedWithAReason(t *testing.T) {
	s := start(t, t.TempDir(), counting(t), nil)
	with := func(name string, value any) object {
		body := chat("hi")
		body[name] = value
		return body
	}
	for _, c := range []struct {
		path   string
		body   any
		status int
		text   string
	}{
		{"/v1/chat/completions", "{", 400, "not JSON"},
		{"/v1/chat/completions", with("model", "gpt-5"), 404, "ask for rlm/default"},
		{"/v1/chat/completions", with("model", "rlm/none"), 404, "this server has [default]"},
		{"/v1/chat/completions", with("messages", "hi"), 400, "messages is a string"},
		{"/v1/chat/completions", with("messages", []object{}), 400, "the last message is not the user's"},
		{"/v1/chat/completions", with("n", 2), 400, "omit n"},
		{"/v1/chat/completions", with("tools", []object{{"type": "web_search"}}), 400, "function and custom"},
		{"/v1/chat/completions", with("tools", []object{{"type": "function"}}), 400, "a function has the name"},
		{"/v1/chat/completions", with("functions", []object{{"name": "f"}}), 400, "give tools"},
		{"/v1/chat/completions", with("tool_choice", "any"), 400, "unknown choice"},
		{"/v1/chat/completions", with("response_format", object{"type": "json_schema"}), 400, "has no schema"},
		{"/v1/chat/completions", with("metadata", object{"rlm_budget_usd": "much"}), 400, "no amount of US dollars"},
		{"/v1/chat/completions", with("metadata", object{"rlm_budget_calls": "0"}), 400, "whole number"},
		{"/v1/chat/completions", chat(strings.Repeat("x", 2<<20)), 413, "more than 1048576 bytes"},
		{"/v1/responses", object{"model": "rlm/default", "conversation": "c"}, 404, "no conversation"},
		{"/v1/responses", object{"model": "rlm/default", "previous_response_id": "r"}, 404, "no response"},
		{"/v1/files", "x", 400, "multipart/form-data"},
		{"/v1/other", "x", 404, "there is no POST /v1/other"},
	} {
		s.want(s.do("POST", c.path, "", c.body), c.status, c.text)
	}
}

func TestARequestTwiceIsOneRun(t *testing.T) {
	s := start(t, t.TempDir(), counting(t), nil)
	send := func(text, word string) answer {
		return s.do("POST", "/v1/chat/completions", "", chat(hay, text), "Idempotency-Key", word)
	}
	first, second := send("how many?", "a"), send("how many?", "a")
	if s.text(first, "rlm", "run") == "" || s.text(first, "rlm", "run") != s.text(second, "rlm", "run") {
		t.Errorf("the runs differ:\n%s\n%s", first.body, second.body)
	}
	s.want(send("another?", "a"), 422, "take a new one")
}

func TestAFullQueueRefusesAtOnce(t *testing.T) {
	model := newHeld(counting(t))
	s := start(t, t.TempDir(), model, func(o *Options) { o.AtOnce, o.Queue = 1, 1 })
	background := object{"model": "rlm/default", "input": "wait", "background": true}
	s.want(s.do("POST", "/v1/responses", "", background), 200, "queued")
	<-model.asked // one request has reached the model
	s.want(s.do("POST", "/v1/responses", "", background), 200, "queued")
	for waiting := 0; waiting != 1; _, waiting = s.server.manager.Load() { // until one waits
		time.Sleep(time.Millisecond)
	}

	got := s.do("POST", "/v1/chat/completions", "", chat("hi"))
	s.want(got, 503, "1 direct answers go on and 1 wait")
	if got.header.Get("Retry-After") == "" {
		t.Error("the answer does not say when to try again")
	}
	close(model.release)
}

func TestAnInterruptedRunGoesOnInTheNextServer(t *testing.T) {
	dir, model := t.TempDir(), newHeld(counting(t))
	s := start(t, dir, model, nil)
	body := object{"model": "rlm/default", "background": true, "input": []object{{
		"role":    "user",
		"content": []object{{"type": "input_text", "text": hay}, {"type": "input_text", "text": "wait"}},
	}}}
	id := s.text(s.do("POST", "/v1/responses", "", body), "id")
	<-model.asked
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	s.server.manager.Drain(ended)
	s.want(s.do("POST", "/v1/chat/completions", "", chat("hi")), 503, "stopping")
	s.want(s.do("GET", "/v1/responses/"+id, "", nil), 200, `"status":"in_progress"`)
	s.stop()

	next := start(t, dir, counting(t), nil)
	if err := next.server.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := next.do("GET", "/v1/responses/"+id+"?stream=true", "", nil)
	next.want(got, 200, `"delta":"200"`)
	next.want(next.do("GET", "/v1/responses/"+id, "", nil), 200, `"status":"completed"`)
}
