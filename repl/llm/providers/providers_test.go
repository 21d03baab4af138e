package providers_test

import (
	"cmp"
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
	"time"

	"github.com/rlmhq/rlm/internal/testing/llmtest"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/internal/kind"
	"github.com/rlmhq/rlm/repl/llm/providers"
	"github.com/rlmhq/rlm/repl/llm/scripted"
)

// env returns an environment of names and values.
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

// with returns options with an environment of names and values.
func with(pairs ...string) providers.Options { return providers.Options{Env: env(pairs...)} }

func TestErrorsNameMissingSettings(t *testing.T) {
	anthropic := providers.Options{Default: "anthropic"}
	header := providers.HTTP{Headers: map[string]string{"X": "y\r\nZ: hunter2"}}
	const endpoint = "https://x.openai.azure.com"
	for _, c := range []struct {
		name, model string
		options     providers.Options
		kind        error
		says        string
	}{
		{"no key", "openai/gpt-5", with(), kind.ErrNoKey, "set OPENAI_API_KEY"},
		{"no key, bare name", "gpt-5", with(), kind.ErrNoKey, "set OPENAI_API_KEY"},
		{"no key, other default", "claude", anthropic, kind.ErrNoKey, "set ANTHROPIC_API_KEY"},
		{"no key, two variables", "gemini/g", with(), kind.ErrNoKey, "set GEMINI_API_KEY or GOOGLE_API_KEY"},
		{"a bare name says what it means", "my-tune", with(), kind.ErrNoKey, "so it means openai/my-tune"},
		{"a provider alone", "ollama", with(), kind.ErrUnknownName, "provider/model, such as ollama/llama3.2"},
		{"a model of another provider", "gemini-2.5-pro", with(), kind.ErrUnknownName, "write gemini/gemini-2.5-pro"},
		{"a local model", "llama3", with(), kind.ErrUnknownName, "write ollama/llama3"},
		{"another word for a provider", "google/g", with(), kind.ErrUnknownName, "write gemini/g"},
		{"a typo", "ollma/x", with(), kind.ErrUnknownName, "did you mean ollama/x?"},
		{
			"an unknown default", "x",
			providers.Options{Default: "nowhere"},
			kind.ErrUnknownName, "\"nowhere\": put one of",
		},
		{"no key for a router", "openrouter/a/b", with(), kind.ErrNoKey, "set OPENROUTER_API_KEY"},
		{"no endpoint", "azure/gpt", with(), kind.ErrMisconfigured, "set AZURE_OPENAI_ENDPOINT"},
		{
			"no key for Azure", "azure/gpt", with("AZURE_OPENAI_ENDPOINT", endpoint),
			kind.ErrNoKey, "set AZURE_OPENAI_API_KEY",
		},
		{"unknown provider", "meta/Llama", with(), kind.ErrUnknownName, "openrouter/meta/Llama"},
		{"upper case", "OpenAI/gpt", with(), kind.ErrUnknownName, "write openai/gpt"},
		{"no model", "openai/", with(), kind.ErrUnknownName, "provider/model"},
		{"empty name", "", with(), kind.ErrUnknownName, "provider/model"},
		{"no file", "scripted/nowhere.yaml", with(), kind.ErrBadFile, "nowhere.yaml"},
		{
			"no URL", "openai/x", with("OPENAI_BASE_URL", "localhost:80"),
			kind.ErrMisconfigured, "http://",
		},
		{
			"password in the URL", "openai/x", with("OPENAI_BASE_URL", "https://me:hunter2@host/"),
			kind.ErrMisconfigured, "a user",
		},
		{
			"query in the URL", "openai/x", with("OPENAI_BASE_URL", "https://host/?key=hunter2"),
			kind.ErrMisconfigured, "query",
		},
		{
			"file URL", "anthropic/x",
			with("ANTHROPIC_BASE_URL", "file:///etc", "ANTHROPIC_API_KEY", "hunter2"),
			kind.ErrMisconfigured, "http://",
		},
		{
			"unparsable URL", "openai/x", with("OPENAI_BASE_URL", "https://hunter2\x7f"),
			kind.ErrMisconfigured, "parse",
		},
		{
			"key in the open", "vllm/x",
			with("VLLM_BASE_URL", "http://gpu.example/v1", "VLLM_API_KEY", "hunter2"),
			kind.ErrMisconfigured, "unencrypted",
		},
		{
			"key with a line end", "openai/x", with("OPENAI_API_KEY", "hunter2\nX: y"),
			kind.ErrMisconfigured, "character",
		},
		{
			"bad header", "vllm/x",
			providers.Options{HTTP: header},
			kind.ErrMisconfigured, "header",
		},
		{
			"bad host", "ollama/x", with("OLLAMA_HOST", "%zz"),
			kind.ErrMisconfigured, "OLLAMA_HOST",
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			registry, err := providers.New(c.options)
			if err != nil {
				t.Fatal(err)
			}
			defer registry.Close()

			_, err = registry.Resolve(c.model)
			if !errors.Is(err, c.kind) || !strings.Contains(err.Error(), c.says) ||
				strings.Contains(err.Error(), "hunter2") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestAddressesAreReadAsTheVendorsDo(t *testing.T) {
	var mu sync.Mutex
	var paths []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		paths = append(paths,
			r.URL.RequestURI()+" "+r.Header.Get("Api-Key")+r.Header.Get("Authorization"))
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
		{
			"litellm/m", env("LITELLM_PROXY_API_BASE", server.URL, "LITELLM_PROXY_API_KEY", "k"),
			"/chat/completions Bearer k",
		},
		{"openai/m", env("OPENAI_BASE_URL", server.URL+"/v1"), "/v1/chat/completions "},
		{
			"azure/m", env("AZURE_OPENAI_ENDPOINT", server.URL+"/", "AZURE_OPENAI_API_KEY", "k"),
			"/openai/v1/chat/completions k",
		},
		{
			"azure/my/m", env("AZURE_OPENAI_ENDPOINT", server.URL, "AZURE_OPENAI_API_KEY", "k",
				"OPENAI_API_VERSION", "2024-10-21"),
			"/openai/deployments/my%2Fm/chat/completions?api-version=2024-10-21 k",
		},
	} {
		t.Run(c.model, func(t *testing.T) {
			registry, err := providers.New(providers.Options{Env: c.env})
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
		})
	}
}

func TestARedirectSendsNeitherKeyNorPromptElsewhere(t *testing.T) {
	thief := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("the other host was asked: %v", r.Header)
	}))
	defer thief.Close()

	each(t, quick, reply(long), func(s *llmtest.Server, c caller) {
		t := c.T
		s.Fail(llmtest.Redirect(http.StatusTemporaryRedirect, thief.URL+"/v1/messages"))
		_, _, err := c.ask(t.Context(), llm.Request{})
		if !errors.Is(err, kind.ErrRedirect) || !strings.Contains(err.Error(), thief.URL) {
			t.Errorf("got %v", err)
		}
	})
}

func TestARedirectWithinTheHostIsFollowed(t *testing.T) {
	server, model := setUp(t, "anthropic", quick, reply(long))
	server.Fail(llmtest.Redirect(http.StatusPermanentRedirect, "/v1/messages"))
	if response, _, err := (caller{model: model}).ask(t.Context(), llm.Request{}); err != nil ||
		response.Text != long {
		t.Errorf("got %+v, %v", response, err)
	}
}

func TestASchemaIsEnforcedByTheServer(t *testing.T) {
	for _, c := range []struct{ schema, text, want, given string }{
		{`{"type":"boolean"}`, `true`, `true`, ""},
		{
			`{"type":"array","items":{"$ref":"#/$defs/n"},"$defs":{"n":{"type":"integer"}}}`,
			`[1, 2]`,
			`[1, 2]`,
			"",
		},
		{
			`{"type":"object","properties":{"a":{"type":"string"}}}`, `{"a":"b"}`, `{"a":"b"}`,
			`{"type":"object","properties":{"a":{"anyOf":[{"type":"string"},{"type":"null"}]}},` +
				`"required":["a"],"additionalProperties":false}`,
		},
		{`{"type":"object","additionalProperties":{"type":"string"}}`, `{"a":"b"}`, `{"a":"b"}`, ""},
		{`{"type":"boolean"}`, `maybe`, `maybe`, ""}, // an unruly server
	} {
		t.Run(c.schema+c.text, func(t *testing.T) {
			var asked string
			answer := func(r llm.Request) (llm.Response, error) {
				asked = string(r.Schema)
				return llm.Response{Text: c.text}, nil
			}
			each(t, quick, answer, func(_ *llmtest.Server, call caller) {
				t := call.T
				response, _, err := call.ask(t.Context(),
					llm.Request{Schema: json.RawMessage(c.schema), SchemaName: "a name: ü"})
				if err != nil || response.Text != c.want || !response.Structured ||
					!sameJSON(asked, cmp.Or(c.given, c.schema)) {
					t.Errorf("got %+v, %v; the server was given %s", response, err, asked)
				}
			})
		})
	}
}

// sameJSON compares values, ignoring the order of members.
func sameJSON(a, b string) bool {
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil &&
		fmt.Sprint(x) == fmt.Sprint(y)
}

func TestRejectedPartsAreLeftOutAndRemembered(t *testing.T) {
	answer := func(r llm.Request) (llm.Response, error) {
		switch {
		case r.Temperature != nil:
			return llm.Response{}, &llm.Error{
				Kind:    kind.ErrBadRequest,
				Message: "Unsupported parameter: 'temperature'",
			}

		case r.Schema != nil:
			return llm.Response{}, &llm.Error{
				Kind:    kind.ErrBadRequest,
				Message: "response_format / output_config: invalid schema",
			}

		case !strings.Contains(r.Messages[0].Content, `"boolean"`):
			return llm.Response{Text: "what?"}, nil
		}

		return llm.Response{Text: "```json\ntrue\n```"}, nil
	}
	each(t, quick, answer, func(s *llmtest.Server, c caller) {
		t := c.T
		zero := 0.0
		request := llm.Request{
			Schema:   json.RawMessage(`{"type":"boolean"}`),
			Sampling: llm.Sampling{Temperature: &zero},
		}
		for turn, requests := range []int{3, 4} {
			response, _, err := c.ask(t.Context(), request)
			if err != nil || response.Text != "true" || response.Structured ||
				len(s.Seen()) != requests {
				t.Errorf("turn %d: got %+v, %v after %d requests", turn, response, err,
					len(s.Seen()))
			}
		}
	})
}

func TestCheckTellsWhetherAModelCanBeAsked(t *testing.T) {
	for _, format := range formats {
		t.Run(format, func(t *testing.T) {
			hasty := providers.HTTP{Outage: time.Millisecond}
			server, model := setUp(t, format, hasty, reply("x"))
			if err := llm.Check(t.Context(), model.Provider, "any"); err != nil &&
				format != "azure" {
				t.Error(err)
			}

			err := llm.Check(t.Context(), model.Provider, "no-such")
			if errors.Is(err, kind.ErrUnknownModel) != (format == "anthropic") {
				t.Errorf("got %v", err)
			}

			if len(server.Seen()) != 0 {
				t.Error("a reply was asked for")
			}
			server.Close()
			err = llm.Check(t.Context(), model.Provider, "any")
			if !errors.Is(err, kind.ErrUnreachable) {
				t.Errorf("the server is away: %v", err)
			}
		})
	}
}

func TestCheckWithAWrongKey(t *testing.T) {
	server := llmtest.Start(reply("x"))
	defer server.Close()
	registry, err := providers.New(providers.Options{Env: server.Env, Keys: map[string]llm.Secret{
		"openai": llm.NewSecret("sk-wrong"), "anthropic": llm.NewSecret("sk-wrong"),
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer registry.Close()

	for _, name := range []string{"openai/any", "anthropic/any"} {
		t.Run(name, func(t *testing.T) {
			model, err := registry.Resolve(name)
			if err != nil {
				t.Fatal(err)
			}
			checked := llm.Check(t.Context(), model.Provider, "any")
			_, _, asked := caller{model: model}.ask(t.Context(), llm.Request{})
			if !errors.Is(checked, kind.ErrAuth) || !errors.Is(asked, kind.ErrAuth) ||
				strings.Contains(asked.Error(), "sk-wrong") {
				t.Errorf("got %v and %v", checked, asked)
			}
		})
	}
}

func TestAScriptBehindBothFormatsGivesTheSameConversation(t *testing.T) {
	zero, one := 0, 1
	look, final := "I look for ${what}.", "FINAL(3)"
	script, err := scripted.New(
		scripted.Rule{When: scripted.When{Said: &zero, Last: `count (?P<what>\w+)`}, Expand: &look},
		scripted.Rule{When: scripted.When{Said: &one}, Reply: &final},
	)
	if err != nil {
		t.Fatal(err)
	}
	direct := converse(t, script, "any")
	server := llmtest.Start(func(r llm.Request) (llm.Response, error) {
		return script.Complete(t.Context(), r, nil)
	})
	defer server.Close()

	registry, err := providers.New(providers.Options{Env: server.Env})
	if err != nil {
		t.Fatal(err)
	}
	defer registry.Close()

	for _, name := range []string{
		"openai", "anthropic", "azure", "openrouter", "ollama", "vllm",
		"litellm",
	} {
		t.Run(name, func(t *testing.T) {
			model, err := registry.Resolve(name + "/any")
			if err != nil {
				t.Fatal(err)
			}
			if got := converse(t, model.Provider, model.ID); got != direct {
				t.Errorf("%s: got\n%s\nwant\n%s", name, got, direct)
			}
		})
	}
}

// converse holds a conversation of two turns and returns its replies and usage.
func converse(t *testing.T, p llm.Provider, model string) string {
	t.Helper()
	messages := []llm.Message{
		{Role: llm.RoleSystem, Content: "Count."},
		{Role: llm.RoleUser, Content: "count foxes"},
	}
	var all strings.Builder
	for range 2 {
		response, err := p.Complete(t.Context(), llm.Request{Model: model, Messages: messages},
			func(string) {})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&all, "%s %d %d %s\n", response.Text, response.Usage.InputTokens,
			response.Usage.OutputTokens, response.Finish)
		messages = append(messages, llm.Message{Role: llm.RoleAssistant, Content: response.Text},
			llm.Message{Role: llm.RoleUser, Content: "go on"})
	}

	return all.String()
}

func TestARecordedRunIsReplayedWithoutServerAndKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.jsonl")
	server := llmtest.Start(func(r llm.Request) (llm.Response, error) {
		if r.Messages[0].Content == "fail" {
			return llm.Response{}, &llm.Error{
				Kind:    kind.ErrContextLength,
				Message: "too long, " + llmtest.Key,
			}
		}

		return reply(long)(r)
	})
	defer server.Close()

	run := func(c providers.Options) string {
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
		_, _, err = caller{model: model}.ask(t.Context(),
			llm.Request{Messages: []llm.Message{{Role: llm.RoleUser, Content: "fail"}}})
		if !errors.Is(err, kind.ErrContextLength) {
			t.Fatalf("got %v", err)
		}

		return said
	}
	recorded := run(providers.Options{Env: server.Env, Record: path})
	if played := run(providers.Options{Replay: path}); played != recorded {
		t.Errorf("played %q, recorded %q", played, recorded)
	}
	text, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(text), llmtest.Key) ||
		strings.Count(string(text), "\n") != 4 {
		t.Errorf("the record is %v\n%s", err, text)
	}
}

func TestPricesOfTheCallerComeFirst(t *testing.T) {
	own := filepath.Join(t.TempDir(), "prices.yaml")
	table := "version: 1\nmodels: [{match: scripted/*, input: 3, output: 4}]"
	if err := os.WriteFile(own, []byte(table), 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "s.yaml")
	if err := os.WriteFile(path, []byte("version: 1\nrules: [{reply: x}]"), 0o600); err != nil {
		t.Fatal(err)
	}
	registry, err := providers.New(providers.Options{Prices: own})
	if err != nil {
		t.Fatal(err)
	}
	model, err := registry.Resolve("scripted/" + path)
	if err != nil || model.Facts.Price.Input != 3 || model.Facts.Window == 0 {
		t.Errorf("got %+v, %v", model.Facts, err)
	}
}

func TestAModelThatMayNotBeStreamedIsAskedForTheWhole(t *testing.T) {
	each(t, quick, reply(long), func(s *llmtest.Server, c caller) {
		t := c.T
		refuse := llmtest.Status(400, "unsupported_value",
			"You must be verified to stream this model.", "")
		s.Fail(llmtest.Fault{Times: -1, Alter: func(r *llmtest.Reply, e llmtest.Exchange) {
			if e.Stream {
				refuse.Alter(r, e)
			}
		}})
		want := 1
		for range 2 {
			response, streamed, err := c.ask(t.Context(), llm.Request{})
			if c.streamed && want == 1 {
				want = 2 // the registry remembers the refusal
			}
			if err != nil || response.Text != long || streamed != long || len(s.Seen()) != want {
				t.Errorf("got %+v, %v, streamed %q after %d requests", response, err, streamed,
					len(s.Seen()))
			}
			want++
		}
	})
}
