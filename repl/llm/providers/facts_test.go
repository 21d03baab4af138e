package providers_test

import (
	"math"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/providers"
)

// describe starts a server that answers each path with a fixed body, and each question with a reply
// whose usage is 10 and 5 tokens at the cost that OpenRouter reports.
func describe(t *testing.T, answers map[string]string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, ok := answers[r.Method+" "+r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		_, _ = w.Write([]byte(answer))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

const openRouterList = `{"data": [{"id": "a/b", "context_length": 200000,
	"top_provider": {"context_length": 131072, "max_completion_tokens": 16384},
	"pricing": {"prompt": "0.000001", "completion": "0.000004", "input_cache_read": "0.0000001"}},
	{"id": "a/varies", "context_length": 1000, "pricing": {"prompt": "-1", "completion": "-1"}},
	{"id": "a/strange", "context_length": -5, "pricing": {"prompt": {}, "completion": "1e99"}}]}`

func TestServersTellWindowsAndPrices(t *testing.T) {
	const ollamaShow = `{"parameters": "stop \"x\"\nnum_ctx  8192", "model_info":
		{"general.architecture": "llama", "llama.context_length": 131072}}`
	for _, c := range []struct {
		name, model, variable, path string
		answers                     map[string]string
		want                        llm.Facts
		in, out                     float64 // per million tokens; -1 if unknown
	}{
		{
			"OpenRouter", "openrouter/a/b", "OPENROUTER_BASE_URL", "/api/v1",
			map[string]string{"GET /api/v1/models": openRouterList},
			llm.Facts{Window: 131072, MaxOutput: 16384},
			1, 4,
		},
		{
			"OpenRouter, a variant", "openrouter/a/b:nitro", "OPENROUTER_BASE_URL", "/api/v1",
			map[string]string{"GET /api/v1/models": openRouterList},
			llm.Facts{Window: 131072, MaxOutput: 16384},
			1, 4,
		},
		{
			"OpenRouter, a price that varies", "openrouter/a/varies", "OPENROUTER_BASE_URL", "/api/v1",
			map[string]string{"GET /api/v1/models": openRouterList},
			llm.Facts{Window: 1000},
			-1, -1,
		},
		{
			"impossible values", "openrouter/a/strange", "OPENROUTER_BASE_URL", "/api/v1",
			map[string]string{"GET /api/v1/models": openRouterList},
			llm.Facts{},
			-1, -1,
		},
		{
			"vLLM", "vllm/x/y", "VLLM_BASE_URL", "/v1",
			map[string]string{"GET /v1/models": `{"data": [{"id": "x/y", "max_model_len": 4096}]}`},
			llm.Facts{Window: 4096, Local: true},
			0, 0,
		},
		{
			"llama.cpp, which lists a path", "openai/smol", "OPENAI_BASE_URL", "/v1",
			map[string]string{"GET /v1/models": `{"data": [
				{"id": "/m/smol.gguf", "meta": {"n_ctx": 2048, "n_ctx_train": 8192}}]}`},
			llm.Facts{Window: 2048, Unlisted: true, Local: true},
			0, 0,
		},
		{
			"Ollama, loaded", "ollama/m", "OLLAMA_HOST", "",
			map[string]string{
				"GET /v1/models": `{"data": [{"id": "m:latest"}]}`,
				"GET /api/ps":    `{"models": [{"name": "m:latest", "context_length": 4096}]}`,
				"POST /api/show": ollamaShow,
			},
			llm.Facts{Window: 4096, Local: true},
			0, 0,
		},
		{
			"Ollama, with a parameter", "ollama/m", "OLLAMA_HOST", "",
			map[string]string{
				"GET /v1/models": `{"data": [{"id": "m:latest"}]}`, "POST /api/show": ollamaShow,
			},
			llm.Facts{Window: 8192, Local: true},
			0, 0,
		},
		{
			"Ollama, the model's own", "ollama/m", "OLLAMA_HOST", "",
			map[string]string{
				"GET /v1/models": `{"data": [{"id": "m:latest"}]}`,
				"POST /api/show": `{"model_info":
					{"general.architecture": "llama", "llama.context_length": 131072}}`,
			},
			llm.Facts{Window: 131072, Local: true},
			0, 0,
		},
		{
			"LiteLLM", "litellm/mine", "LITELLM_PROXY_API_BASE", "",
			map[string]string{
				"GET /models": `{"data": []}`,
				"GET /model/info": `{"data": [{"model_name": "mine", "model_info": {"max_tokens": 999,
					"max_input_tokens": 64000, "input_cost_per_token": 3e-06,
					"output_cost_per_token": 1.5e-05}}]}`,
			},
			llm.Facts{Window: 64000, MaxOutput: 999},
			3, 15,
		},
		{
			"nothing told", "vllm/x", "VLLM_BASE_URL", "/v1",
			map[string]string{"GET /v1/models": `{"data": [{"id": "x"}, {"id": "y"}]}`},
			llm.Facts{Local: true},
			0, 0,
		},
		{
			"Gemini, which prefixes its names", "gemini/gemini-x", "GEMINI_BASE_URL", "/v1beta/openai",
			map[string]string{"GET /v1beta/openai/models": `{"object": "list", "data": [
				{"id": "models/gemini-x"}, {"id": "models/gemini-y"}]}`},
			llm.Facts{},
			-1, -1,
		},
		{
			"Groq", "groq/m", "GROQ_BASE_URL", "/openai/v1",
			map[string]string{"GET /openai/v1/models": `{"data": [{"id": "m", "context_window": 131072}]}`},
			llm.Facts{Window: 131072},
			-1, -1,
		},
		{
			"Mistral", "mistral/m", "MISTRAL_BASE_URL", "/v1",
			map[string]string{"GET /v1/models": `{"data": [{"id": "m", "max_context_length": 32768}]}`},
			llm.Facts{Window: 32768},
			-1, -1,
		},
		{
			"a proxy on this machine may cost money", "litellm/other", "LITELLM_PROXY_API_BASE", "",
			map[string]string{"GET /models": `{"data": []}`},
			llm.Facts{},
			-1, -1,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			registry, err := providers.New(with(c.variable, describe(t, c.answers)+c.path))
			if err != nil {
				t.Fatal(err)
			}
			defer registry.Close()

			got := check(t, registry, c.model).Facts
			if plain := (llm.Facts{
				Window: got.Window, MaxOutput: got.MaxOutput, Unlisted: got.Unlisted, Local: got.Local,
			}); plain != c.want {
				t.Errorf("got %+v", plain)
			}
			million := llm.Usage{InputTokens: 1e6}
			in, known := got.Cost(million)
			out, _ := got.Cost(llm.Usage{OutputTokens: 1e6})
			if known != (c.in >= 0) || known && (!near(in, c.in) || !near(out, c.out)) {
				t.Errorf("a million tokens cost %v and %v, known: %v", in, out, known)
			}
		})
	}
}

// check checks a model with its server and resolves it again.
func check(t *testing.T, registry *providers.Registry, name string) llm.Model {
	t.Helper()
	model, err := registry.Resolve(name)
	if err != nil {
		t.Fatal(err)
	}
	if err := llm.Check(t.Context(), model.Provider, model.ID); err != nil {
		t.Fatal(err)
	}
	if model, err = registry.Resolve(name); err != nil {
		t.Fatal(err)
	}
	return model
}

func near(a, b float64) bool { return math.Abs(a-b) < 1e-9 }

func TestSettingsWinOverServersAndServersOverTheTable(t *testing.T) {
	url := describe(t, map[string]string{
		"GET /v1/models": `{"data": [{"id": "gpt-5", "max_model_len": 4096}]}`,
	})
	options := with("OPENAI_BASE_URL", url+"/v1")
	registry, err := providers.New(options)
	if err != nil {
		t.Fatal(err)
	}
	defer registry.Close()
	told := check(t, registry, "openai/gpt-5").Facts
	if told.Window != 4096 || told.Price == nil || told.Price.Input != 1.25 {
		t.Errorf("got %+v", told)
	}

	options.Windows = map[string]int64{"*": 7, "openai/gpt-5": 8}
	options.Rates = map[string]llm.Price{"openai/*": {Input: 2, Output: 3}}
	own, err := providers.New(options)
	if err != nil {
		t.Fatal(err)
	}
	defer own.Close()
	given := check(t, own, "openai/gpt-5").Facts
	if given.Window != 8 || given.Price.Output != 3 || given.MaxOutput == 0 {
		t.Errorf("got %+v", given)
	}

	options.Windows = map[string]int64{"x": -1}
	if _, err := providers.New(options); err == nil {
		t.Error("a negative window is taken")
	}
}

func TestTheCostThatTheServerTellsIsTaken(t *testing.T) {
	const reply = `{"choices": [{"message": {"content": "x"}, "finish_reason": "stop"}],
		"usage": {"prompt_tokens": 10, "completion_tokens": 5, `
	for name, c := range map[string]struct {
		usage string
		want  float64
	}{
		"a cost":          {`"cost": 0.25`, 0.25},
		"the user's key":  {`"cost": 0.01, "is_byok": true, "cost_details": {"upstream_inference_cost": 0.2}`, 0.21},
		"no cost":         {`"cost": null`, 0},
		"impossible cost": {`"cost": -3`, 0},
	} {
		t.Run(name, func(t *testing.T) {
			url := describe(t, map[string]string{
				"POST /v1/chat/completions": reply + c.usage + `}}`,
			})
			registry, err := providers.New(with("OPENROUTER_BASE_URL", url+"/v1"))
			if err != nil {
				t.Fatal(err)
			}
			defer registry.Close()
			model, err := registry.Resolve("openrouter/a/b")
			if err != nil {
				t.Fatal(err)
			}

			response, _, err := caller{model: model}.ask(t.Context(), llm.Request{})
			usd, known := model.Facts.Cost(response.Usage)
			if err != nil || !near(usd, c.want) || known != (c.want > 0) {
				t.Errorf("got %v (known: %v), %v", usd, known, err)
			}
		})
	}
}

func TestARecordKeepsWhatServersTold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run.jsonl")
	options := with("VLLM_BASE_URL", describe(t, map[string]string{
		"GET /v1/models": `{"data": [{"id": "x", "max_model_len": 4096}]}`,
	})+"/v1")
	options.Record = path
	for _, o := range []providers.Options{options, {Replay: path}} {
		registry, err := providers.New(o)
		if err != nil {
			t.Fatal(err)
		}
		if got := check(t, registry, "vllm/x").Facts.Window; got != 4096 {
			t.Errorf("the window is %d", got)
		}
		if err := registry.Close(); err != nil {
			t.Error(err)
		}
	}
}

func TestAModelThatIsNotListedCanBeAsked(t *testing.T) {
	url := describe(t, map[string]string{
		"GET /v1/models": `{"data": [{"id": "/models/smol.gguf"}]}`,
		"POST /v1/chat/completions": `{"choices": [{"message": {"content": "x"},
			"finish_reason": "stop"}]}`,
	})
	registry, err := providers.New(with("OPENAI_BASE_URL", url+"/v1"))
	if err != nil {
		t.Fatal(err)
	}
	defer registry.Close()
	model := check(t, registry, "openai/smol")
	if !model.Facts.Unlisted {
		t.Error("nothing says that the model is not listed")
	}

	if response, _, err := (caller{model: model}).ask(t.Context(), llm.Request{}); err != nil ||
		response.Text != "x" {
		t.Errorf("got %+v, %v", response, err)
	}
}
