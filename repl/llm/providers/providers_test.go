package providers_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/llmtest"
	"github.com/rlmhq/rlm/repl/llm/providers"
	"github.com/rlmhq/rlm/repl/llm/scripted"
)

// env is an environment with some variables.
func env(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

func TestWhatIsMissingIsNamed(t *testing.T) {
	for _, c := range []struct {
		name, model string
		config      providers.Config
		kind        llm.KindError
		says        string
	}{
		{"no key", "openai/gpt-5", providers.Config{}, llm.ErrNoKey, "set OPENAI_API_KEY"},
		{"no key, bare name", "gpt-5", providers.Config{}, llm.ErrNoKey, "set OPENAI_API_KEY"},
		{"no key, other default", "claude", providers.Config{Default: "anthropic"}, llm.ErrNoKey, "set ANTHROPIC_API_KEY"},
		{"no key for a router", "openrouter/a/b", providers.Config{}, llm.ErrNoKey, "set OPENROUTER_API_KEY"},
		{"no endpoint", "azure/gpt", providers.Config{}, llm.ErrMisconfigured, "set AZURE_OPENAI_ENDPOINT"},
		{"no key for Azure", "azure/gpt", providers.Config{Env: env("AZURE_OPENAI_ENDPOINT", "https://x.openai.azure.com")}, llm.ErrNoKey, "set AZURE_OPENAI_API_KEY"},
		{"unknown provider", "meta-llama/Llama", providers.Config{}, llm.ErrUnknownName, "openrouter/meta-llama/Llama"},
		{"no model", "openai/", providers.Config{}, llm.ErrUnknownName, "provider/model"},
		{"empty name", "", providers.Config{}, llm.ErrUnknownName, "provider/model"},
		{"no file", "scripted/nowhere.yaml", providers.Config{}, llm.ErrBadFile, "nowhere.yaml"},
		{"no URL", "openai/x", providers.Config{Env: env("OPENAI_BASE_URL", "localhost:80")}, llm.ErrMisconfigured, "http://"},
		{"password in the URL", "openai/x", providers.Config{Env: env("OPENAI_BASE_URL", "https://me:hunter2@host/")}, llm.ErrMisconfigured, "no user"},
		{"query in the URL", "openai/x", providers.Config{Env: env("OPENAI_BASE_URL", "https://host/?key=hunter2")}, llm.ErrMisconfigured, "query"},
		{"file URL", "anthropic/x", providers.Config{Env: env("ANTHROPIC_BASE_URL", "file:///etc", "ANTHROPIC_API_KEY", "hunter2")}, llm.ErrMisconfigured, "http://"},
		{"unparsable URL", "openai/x", providers.Config{Env: env("OPENAI_BASE_URL", "https://hunter2\x7f")}, llm.ErrMisconfigured, "parsed"},
		{"key in the open", "vllm/x", providers.Config{Env: env("VLLM_BASE_URL", "http://gpu.example/v1", "VLLM_API_KEY", "hunter2")}, llm.ErrMisconfigured, "unencrypted"},
		{"key with a line end", "openai/x", providers.Config{Env: env("OPENAI_API_KEY", "hunter2\nX: y")}, llm.ErrMisconfigured, "character"},
		{"bad header", "vllm/x", providers.Config{HTTP: llm.HTTP{Headers: map[string]string{"X": "y\r\nZ: hunter2"}}}, llm.ErrMisconfigured, "header"},
		{"bad host", "ollama/x", providers.Config{Env: env("OLLAMA_HOST", "%zz")}, llm.ErrMisconfigured, "OLLAMA_HOST"},
	} {
		t.Run(c.name, func(t *testing.T) {
			registry, err := providers.New(c.config)
			if err != nil {
				t.Fatal(err)
			}
			defer registry.Close()
			_, err = registry.Resolve(c.model)
			if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) || strings.Contains(err.Error(), "hunter2") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestAddressesAreWhatTheVendorsMean(t *testing.T) {
	var mu sync.Mutex
	var paths []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		paths = append(paths, r.URL.RequestURI()+" "+r.Header.Get("Api-Key")+r.Header.Get("Authorization"))
		fmt.Fprint(w, `{"choices":[{"message":{"content":"x"},"finish_reason":"stop"}]}`)
	}))
	defer server.Close()
	host := strings.TrimPrefix(server.URL, "http://")
	_, port, _ := strings.Cut(host, ":")
	for _, c := range []struct {
		model string
		env   func(string) string
		want  string
	}{
		{"ollama/m", env("OLLAMA_HOST", host), "/v1/chat/completions "},
		{"ollama/m", env("OLLAMA_HOST", "0.0.0.0:"+port), "/v1/chat/completions "},
		{"ollama/m", env("OLLAMA_HOST", server.URL+"/v1/"), "/v1/chat/completions "},
		{"vllm/m", env("VLLM_BASE_URL", server.URL+"/v1/"), "/v1/chat/completions "},
		{"litellm/m", env("LITELLM_PROXY_API_BASE", server.URL, "LITELLM_PROXY_API_KEY", "k"), "/chat/completions Bearer k"},
		{"openai/m", env("OPENAI_BASE_URL", server.URL+"/v1"), "/v1/chat/completions "},
		{"azure/m", env("AZURE_OPENAI_ENDPOINT", server.URL+"/", "AZURE_OPENAI_API_KEY", "k"), "/openai/v1/chat/completions k"},
		{
			"azure/my/m", env("AZURE_OPENAI_ENDPOINT", server.URL, "AZURE_OPENAI_API_KEY", "k", "OPENAI_API_VERSION", "2024-10-21"),
			"/openai/deployments/my%2Fm/chat/completions?api-version=2024-10-21 k",
		},
	} {
		registry, err := providers.New(providers.Config{Env: c.env})
		if err != nil {
			t.Fatal(err)
		}
		model, err := registry.Resolve(c.model)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := (caller{model: model}).ask(t.Context(), llm.Request{}); err != nil {
			t.Error(err)
		}
		if got := paths[len(paths)-1]; got != c.want {
			t.Errorf("%s: asked %q, want %q", c.model, got, c.want)
		}
		if err := registry.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestARedirectTakesNeitherKeyNorPromptElsewhere(t *testing.T) {
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the other host was asked: %v", r.Header)
	}))
	defer thief.Close()
	each(t, quick, reply(long), func(s *llmtest.Server, c caller) {
		t := c.T
		s.Fail(llmtest.Redirect(http.StatusTemporaryRedirect, thief.URL+"/v1/messages"))
		_, _, err := c.ask(t.Context(), llm.Request{})
		if !errors.Is(err, llm.ErrRedirect) || !strings.Contains(err.Error(), thief.URL) {
			t.Errorf("got %v", err)
		}
	})
}

func TestARedirectWithinTheHostIsFollowed(t *testing.T) {
	server, model := setUp(t, "anthropic", quick, reply(long))
	server.Fail(llmtest.Redirect(http.StatusPermanentRedirect, "/v1/messages"))
	if response, _, err := (caller{model: model}).ask(t.Context(), llm.Request{}); err != nil || response.Text != long {
		t.Errorf("got %+v, %v", response, err)
	}
}

func TestASchemaIsEnforcedByTheServer(t *testing.T) {
	for _, c := range []struct{ schema, text, want string }{
		{`{"type":"boolean"}`, `true`, `true`},
		{`{"type":"array","items":{"$ref":"#/$defs/n"},"$defs":{"n":{"type":"integer"}}}`, `[1, 2]`, `[1, 2]`},
		{`{"type":"object","properties":{"a":{"type":"string"}}}`, `{"a":"b"}`, `{"a":"b"}`},
		{`{"type":"boolean"}`, `maybe`, `maybe`}, // an unruly server
	} {
		t.Run(c.schema+c.text, func(t *testing.T) {
			var asked string
			answer := func(r llm.Request) (llm.Response, error) {
				asked = string(r.Schema)
				return llm.Response{Text: c.text}, nil
			}
			each(t, quick, answer, func(_ *llmtest.Server, call caller) {
				t := call.T
				response, _, err := call.ask(t.Context(), llm.Request{Schema: json.RawMessage(c.schema), SchemaName: "a name: ü"})
				if err != nil || response.Text != c.want || !response.Structured || !sameJSON(asked, c.schema) {
					t.Errorf("got %+v, %v; the server was given %s", response, err, asked)
				}
			})
		})
	}
}

// sameJSON compares without regard to the order of fields.
func sameJSON(a, b string) bool {
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && fmt.Sprint(x) == fmt.Sprint(y)
}

func TestWhatAServerDoesNotTakeIsLeftOutAndRemembered(t *testing.T) {
	answer := func(r llm.Request) (llm.Response, error) {
		switch {
		case r.Temperature != nil:
			return llm.Response{}, &llm.Error{Kind: llm.ErrBadRequest, Message: "Unsupported parameter: 'temperature'"}
		case r.Schema != nil:
			return llm.Response{}, &llm.Error{Kind: llm.ErrBadRequest, Message: "response_format / output_config: invalid schema"}
		case !strings.Contains(r.Messages[0].Content, `"boolean"`):
			return llm.Response{Text: "what?"}, nil
		}
		return llm.Response{Text: "```json\ntrue\n```"}, nil
	}
	each(t, quick, answer, func(s *llmtest.Server, c caller) {
		t := c.T
		zero := 0.0
		request := llm.Request{Schema: json.RawMessage(`{"type":"boolean"}`), Temperature: &zero}
		for turn, requests := range []int{3, 4} {
			response, _, err := c.ask(t.Context(), request)
			if err != nil || response.Text != "true" || response.Structured || len(s.Seen()) != requests {
				t.Errorf("turn %d: got %+v, %v after %d requests", turn, response, err, len(s.Seen()))
			}
		}
	})
}

func TestCheckTellsWhetherAModelCanBeAsked(t *testing.T) {
	for _, format := range formats {
		t.Run(format, func(t *testing.T) {
			server, model := setUp(t, format, quick, reply("x"))
			if err := llm.Check(t.Context(), model.Provider, "any"); err != nil && format != "azure" {
				t.Error(err)
			}
			if err := llm.Check(t.Context(), model.Provider, "no-such"); format != "azure" && !errors.Is(err, llm.ErrUnknownModel) {
				t.Errorf("got %v", err)
			}
			if len(server.Seen()) != 0 {
				t.Error("a reply was asked for")
			}
			server.Close()
			if err := llm.Check(t.Context(), model.Provider, "any"); !errors.Is(err, llm.ErrUnreachable) {
				t.Errorf("the server is away: %v", err)
			}
		})
	}
}

func TestCheckWithAWrongKey(t *testing.T) {
	server := llmtest.Start(reply("x"))
	defer server.Close()
	registry, err := providers.New(providers.Config{Env: server.Env, Keys: map[string]llm.Secret{
		"openai": llm.NewSecret("sk-wrong"), "anthropic": llm.NewSecret("sk-wrong"),
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer registry.Close()
	for _, name := range []string{"openai/any", "anthropic/any"} {
		model, err := registry.Resolve(name)
		if err != nil {
			t.Fatal(err)
		}
		checked := llm.Check(t.Context(), model.Provider, "any")
		_, _, asked := caller{model: model}.ask(t.Context(), llm.Request{})
		if !errors.Is(checked, llm.ErrAuth) || !errors.Is(asked, llm.ErrAuth) || strings.Contains(asked.Error(), "sk-wrong") {
			t.Errorf("got %v and %v", checked, asked)
		}
	}
}

func TestAScriptBehindBothFormatsGivesTheSameConversation(t *testing.T) {
	script, err := scripted.Parse(strings.NewReader(`
version: 1
rules:
  - when: {said: 0, last: 'count (?P<what>\w+)'}
    expand: "I look for ${what}."
  - when: {said: 1}
    reply: FINAL(3)
`))
	if err != nil {
		t.Fatal(err)
	}
	direct := converse(t, script, "any")
	server := llmtest.Start(func(r llm.Request) (llm.Response, error) { return script.Complete(t.Context(), r, nil) })
	defer server.Close()
	registry, err := providers.New(providers.Config{Env: server.Env})
	if err != nil {
		t.Fatal(err)
	}
	defer registry.Close()
	for _, name := range []string{"openai", "anthropic", "azure", "openrouter", "ollama", "vllm", "litellm"} {
		model, err := registry.Resolve(name + "/any")
		if err != nil {
			t.Fatal(err)
		}
		if got := converse(t, model.Provider, model.ID); got != direct {
			t.Errorf("%s: got\n%s\nwant\n%s", name, got, direct)
		}
	}
}

// converse has a conversation of two turns and returns what was said and used.
func converse(t *testing.T, p llm.Provider, model string) string {
	t.Helper()
	messages := []llm.Message{{Role: llm.RoleSystem, Content: "Count."}, {Role: llm.RoleUser, Content: "count foxes"}}
	var all strings.Builder
	for range 2 {
		response, err := p.Complete(t.Context(), llm.Request{Model: model, Messages: messages}, func(string) {})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&all, "%s %d %d %s\n", response.Text, response.Usage.InputTokens, response.Usage.OutputTokens, response.Finish)
		messages = append(messages, llm.Message{Role: llm.RoleAssistant, Content: response.Text}, llm.Message{Role: llm.RoleUser, Content: "go on"})
	}
	return all.String()
}

func TestARecordedRunIsPlayedAgainWithoutServerAndKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.jsonl")
	server := llmtest.Start(func(r llm.Request) (llm.Response, error) {
		if r.Messages[0].Content == "fail" {
			return llm.Response{}, &llm.Error{Kind: llm.ErrContextLength, Message: "too long, " + llmtest.Key}
		}
		return reply(long)(r)
	})
	defer server.Close()
	run := func(c providers.Config) string {
		registry, err := providers.New(c)
		if err != nil {
			t.Fatal(err)
		}
		defer registry.Close()
		model, err := registry.Resolve("anthropic/any")
		if err != nil {
			t.Fatal(err)
		}
		said := converse(t, model.Provider, model.ID)
		_, _, err = caller{model: model}.ask(t.Context(), llm.Request{Messages: []llm.Message{{Role: llm.RoleUser, Content: "fail"}}})
		if !errors.Is(err, llm.ErrContextLength) {
			t.Fatalf("got %v", err)
		}
		return said
	}
	recorded := run(providers.Config{Env: server.Env, Record: path})
	if played := run(providers.Config{Replay: path}); played != recorded {
		t.Errorf("played %q, recorded %q", played, recorded)
	}
	text, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(text), llmtest.Key) || strings.Count(string(text), "\n") != 4 {
		t.Errorf("the record is %v\n%s", err, text)
	}
}

func TestPricesOfTheCallerComeFirst(t *testing.T) {
	own, err := llm.ParsePrices(strings.NewReader("version: 1\nmodels: [{match: scripted/*, input: 3, output: 4}]"))
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "s.yaml")
	if err := os.WriteFile(path, []byte("version: 1\nrules: [{reply: x}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	registry, err := providers.New(providers.Config{Prices: own})
	if err != nil {
		t.Fatal(err)
	}
	model, err := registry.Resolve("scripted/" + path)
	if err != nil || model.Facts.Price.Input != 3 || model.Facts.Window == 0 {
		t.Errorf("got %+v, %v", model.Facts, err)
	}
}
