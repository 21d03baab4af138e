package providers_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/providers"
)

// away sets addresses at which nothing listens for all local servers, so that tests ask none of
// them.
var away = []string{
	"OLLAMA_HOST", "127.0.0.1:1", "LM_STUDIO_API_BASE", "http://127.0.0.1:1/v1",
	"LLAMACPP_BASE_URL", "http://127.0.0.1:1/v1", "VLLM_BASE_URL", "http://127.0.0.1:1/v1",
	"LITELLM_PROXY_API_BASE", "http://127.0.0.1:1",
}

// find returns the offer of a provider among the offers for some options.
func find(t *testing.T, o providers.Options, provider string, named ...string) providers.Offer {
	t.Helper()
	offers, err := providers.Offers(t.Context(), o, named...)
	if err != nil {
		t.Fatal(err)
	}
	for _, offer := range offers {
		if offer.Provider == provider {
			return offer
		}
	}
	return providers.Offer{}
}

func TestKeysAreNamedAndTheirServersAreNotAsked(t *testing.T) {
	asked := roundTrip(func(r *http.Request) (*http.Response, error) {
		if r.URL.Hostname() != "127.0.0.1" {
			t.Errorf("%s was asked", r.URL)
		}
		return nil, http.ErrServerClosed
	})
	o := providers.Options{
		Env:  env(append([]string{"OPENAI_API_KEY", "sk-1", "GOOGLE_API_KEY", "sk-2"}, away...)...),
		Keys: map[string]llm.Secret{"groq": llm.NewSecret("sk-3")},
		HTTP: providers.HTTP{Transport: asked},
	}
	for provider, key := range map[string]string{
		"openai": "OPENAI_API_KEY", "gemini": "GOOGLE_API_KEY", "groq": "the settings", "mistral": "",
	} {
		if got := find(t, o, provider); got.Key != key || (key != "") != got.Example || got.Problem != "" {
			t.Errorf("%s: got %+v", provider, got)
		}
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements [http.RoundTripper].
func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestServersOfThisMachineListTheirModels(t *testing.T) {
	hang := make(chan struct{})
	defer close(hang)
	for _, c := range []struct {
		name, answer string
		models       []string
		problem      string
	}{
		{"a list", `{"object": "list", "data": [{"id": "a/b"}, {"id": "c"}]}`, []string{"vllm/a/b", "vllm/c"}, ""},
		{"an empty list", `{"object": "list", "data": null}`, nil, ""},
		{"hostile names", `{"object": "list", "data": [{"id": "\u001b[2J"}, {"id": ""}, {"id": "` +
			strings.Repeat("x", 300) + `"}, {"id": "ok"}]}`, []string{"vllm/ok"}, ""},
		{"another program", `<html>`, nil, "malformed reply"},
		{"other JSON", `{"status": "ok"}`, nil, "no list of models"},
		{"a flood", strings.Repeat(" ", 5<<20), nil, "reply too large"},
		{"nothing", "", nil, "no reply in time"},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				if c.answer == "" {
					select {
					case <-hang:
					case <-r.Context().Done():
					}
				}
				_, _ = w.Write([]byte(c.answer))
			}))
			defer server.Close()

			o := with(append([]string{"VLLM_BASE_URL", server.URL + "/v1"}, away...)...)
			got := find(t, o, "vllm")
			if strings.Join(got.Models, " ") != strings.Join(c.models, " ") || got.Example ||
				!strings.Contains(got.Problem, c.problem) || (c.problem == "") != (got.Problem == "") {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestAllServersAreAskedAtOnce(t *testing.T) {
	// Each server waits until every server has been asked or the test has failed.
	all := make(chan struct{}, 4)
	met := make(chan struct{})
	go func() {
		for range 4 {
			<-all
		}
		close(met)
	}()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		all <- struct{}{}
		select {
		case <-met:
			_, _ = w.Write([]byte(`{"object": "list", "data": [{"id": "m"}]}`))
		case <-time.After(time.Minute):
		case <-r.Context().Done():
		}
	}))
	defer server.Close()

	offers, err := providers.Offers(t.Context(), with(
		"OLLAMA_HOST", server.URL, "LM_STUDIO_API_BASE", server.URL, "LLAMACPP_BASE_URL", server.URL,
		"VLLM_BASE_URL", server.URL, "LITELLM_PROXY_API_BASE", "http://127.0.0.1:1"))
	if err != nil {
		t.Fatal(err)
	}
	answered := 0
	for _, offer := range offers {
		answered += len(offer.Models)
	}
	if answered != 4 {
		t.Errorf("got %+v", offers)
	}
}

func TestNamedProvidersAreAskedWithTheirKeys(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Authorization") != "Bearer sk-right" && r.Header.Get("X-Api-Key") != "sk-right" {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		_, _ = w.Write([]byte(`{"object": "list", "data": [{"id": "models/g"}, {"id": "h"}]}`))
	}))
	defer server.Close()

	o := with("GEMINI_BASE_URL", server.URL, "GEMINI_API_KEY", "sk-right", "GOOGLE_API_KEY", "sk-wrong")
	if got := find(t, o, "gemini", "gemini"); strings.Join(got.Models, " ") != "gemini/g gemini/h" {
		t.Errorf("got %+v", got)
	}
	o = with("ANTHROPIC_BASE_URL", server.URL, "ANTHROPIC_API_KEY", "sk-right")
	if got := find(t, o, "anthropic", "anthropic"); len(got.Models) != 2 {
		t.Errorf("got %+v", got)
	}
	o = with("OPENAI_BASE_URL", server.URL, "OPENAI_API_KEY", "sk-wrong")
	if got := find(t, o, "openai", "openai"); !strings.Contains(got.Problem, "key refused") ||
		strings.Contains(got.Problem, "sk-wrong") {
		t.Errorf("got %+v", got)
	}
	if _, err := providers.Offers(t.Context(), o, "google"); err == nil ||
		!strings.Contains(err.Error(), "did you mean gemini?") {
		t.Errorf("got %v", err)
	}
}

func TestStoredKeysAreUsedAfterTheEnvironment(t *testing.T) {
	file := filepath.Join(t.TempDir(), "keys.json")
	const text = `{"version": 1, "keys": {"groq": {"in": "file", "key": "sk-stored"}}}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}

	var got string
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		got = r.Header.Get("Authorization")
	}))
	defer server.Close()
	for want, o := range map[string]providers.Options{
		"Bearer sk-stored": with("GROQ_BASE_URL", server.URL),
		"Bearer sk-env":    with("GROQ_BASE_URL", server.URL, "GROQ_API_KEY", "sk-env"),
	} {
		o.KeyFile, o.HTTP.Outage = file, -1
		registry, err := providers.New(o)
		if err != nil {
			t.Fatal(err)
		}
		model, err := registry.Resolve("groq/m")
		if err != nil {
			t.Fatal(err)
		}
		_ = llm.Check(t.Context(), model.Provider, model.ID) // only the request matters
		if got != want {
			t.Errorf("got %q, want %q", got, want)
		}
		if err := registry.Close(); err != nil {
			t.Error(err)
		}
	}

	if err := os.Chmod(file, 0o644); err != nil { //nolint:gosec // what is tested
		t.Fatal(err)
	}
	if _, err := providers.Offers(t.Context(), providers.Options{KeyFile: file}); err == nil {
		t.Error("keys that others can read were used")
	}
}
