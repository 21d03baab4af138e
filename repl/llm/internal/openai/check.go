package openai

import (
	"cmp"
	"context"
	"encoding/json"
	"math"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/internal/httpclient"
	"github.com/rlmhq/rlm/repl/llm/internal/kind"
	"github.com/rlmhq/rlm/repl/llm/internal/told"
)

// Description says where a server describes its models, in addition to its list of models.
type Description int

// The places of descriptions.
const (
	InList    Description = iota // only in the list, if anywhere
	AtOllama                     // /api/ps and /api/show
	AtLiteLLM                    // /model/info
)

// Check looks for a model in the server's list and stores the facts that the server reports about
// it, which costs nothing: see [llm.Check] and [told.By].
func (p *Provider) Check(ctx context.Context, model string) error {
	path := "/models"
	if p.options.DeploymentVersion != "" {
		path += "?api-version=" + url.QueryEscape(p.options.DeploymentVersion)
	}
	var list struct {
		Data httpclient.List[listedModel] `json:"data"`
	}
	if err := p.Client.Fetch(ctx, httpclient.Call{Path: path, Model: model}, &list); err != nil {
		return err
	}

	found, isListed := findModel(list.Data, model)
	facts := told.Or(p.describe(ctx, model), found.facts())
	facts.Unlisted = !isListed && !p.options.Unlisted && len(list.Data) > 0
	p.told.Store(model, facts)

	return nil
}

// Models returns the server's names of its models, which costs nothing. It fails if the server does
// not answer with a list of models.
func (p *Provider) Models(ctx context.Context) ([]string, error) {
	var list struct {
		Object string                       `json:"object"`
		Data   httpclient.List[listedModel] `json:"data"` // null if Ollama has none
	}
	if err := p.Client.Fetch(ctx, httpclient.Call{Path: "/models", Once: true}, &list); err != nil {
		return nil, err
	}
	if list.Object != "list" && len(list.Data) == 0 {
		return nil, &llm.Error{Kind: kind.ErrMalformed, Provider: p.options.Name, Message: p.describeNoList()}
	}

	names := make([]string, len(list.Data))
	for i := range list.Data {
		names[i] = strings.TrimPrefix(list.Data[i].ID, geminiPrefix)
	}
	return names, nil
}

// describeNoList explains a reply that is not a list of models.
func (p *Provider) describeNoList() string {
	if strings.HasSuffix(strings.TrimSuffix(p.options.BaseURL, "/"), "/v1") {
		return "no list of models"
	}
	return "no list of models; does the address of the server end with /v1?"
}

// Facts returns the facts that the server reported when the model was checked.
func (p *Provider) Facts(model string) llm.Facts {
	known, _ := p.told.Load(model)
	facts, _ := known.(llm.Facts)
	facts.Local = p.options.Local
	return facts
}

// findModel returns the entry of a model. A server with one model answers for it under any name,
// so its only entry describes the model even if it is not listed.
func findModel(list []listedModel, model string) (found listedModel, isListed bool) {
	for _, listed := range list {
		if listed.serves(model) {
			return listed, true
		}
	}
	if len(list) == 1 {
		return list[0], false
	}

	return found, false
}

// listedModel is an entry in a server's list of models. Servers describe their models in different
// fields; most give no description.
type listedModel struct {
	ID string `json:"id"`

	MaxModelLen count `json:"max_model_len"` // vLLM

	Meta struct { // llama.cpp
		Context count `json:"n_ctx"`
	} `json:"meta"`

	ContextWindow    count `json:"context_window"`     // Groq
	MaxContextLength count `json:"max_context_length"` // Mistral

	ContextLength count `json:"context_length"` // OpenRouter
	TopProvider   struct {
		ContextLength count `json:"context_length"`
		MaxCompletion count `json:"max_completion_tokens"`
	} `json:"top_provider"`
	Pricing struct {
		Prompt     price `json:"prompt"`
		Completion price `json:"completion"`
		CacheRead  price `json:"input_cache_read"`
		CacheWrite price `json:"input_cache_write"`
	} `json:"pricing"`
}

// geminiPrefix is the prefix that Gemini writes before the names of its models; it also accepts
// names without the prefix.
const geminiPrefix = "models/"

// serves reports whether an entry describes a model. A colon may introduce a variant (OpenRouter)
// or a tag (Ollama).
func (l listedModel) serves(model string) bool {
	plain, _, _ := strings.Cut(model, ":")
	id := strings.TrimPrefix(l.ID, geminiPrefix)
	return id == model || id == plain || l.ID == model || strings.HasPrefix(id, model+":")
}

// facts returns the facts in an entry about its model.
func (l listedModel) facts() llm.Facts {
	window := cmp.Or(l.MaxModelLen, l.Meta.Context, l.ContextWindow, l.MaxContextLength,
		l.TopProvider.ContextLength, l.ContextLength)
	return llm.Facts{
		Window: int64(window), MaxOutput: int64(l.TopProvider.MaxCompletion),
		Price: newPrice(l.Pricing.Prompt, l.Pricing.Completion,
			l.Pricing.CacheRead, l.Pricing.CacheWrite),
	}
}

// describe queries the server's own interface for a model. Some versions of a server lack this
// interface, and a model can be used without a description, so a missing answer is not a failure.
func (p *Provider) describe(ctx context.Context, model string) llm.Facts {
	switch p.options.Describes {
	case AtOllama:
		return p.describeByOllama(ctx, model)
	case AtLiteLLM:
		return p.describeByLiteLLM(ctx, model)
	case InList:
	}
	return llm.Facts{}
}

// describeByOllama returns the window of a model: the window of the loaded model, else the window
// with which it will be loaded, else the largest possible one.
func (p *Provider) describeByOllama(ctx context.Context, model string) llm.Facts {
	var running struct {
		Models httpclient.List[struct {
			Name    string `json:"name"`
			Context count  `json:"context_length"`
		}] `json:"models"`
	}
	_ = p.Client.Fetch(ctx, httpclient.Call{Path: "/../api/ps", Model: model, Once: true}, &running)
	for _, m := range running.Models {
		if (m.Name == model || m.Name == model+":latest") && m.Context > 0 {
			return llm.Facts{Window: int64(m.Context)}
		}
	}

	var shown struct {
		Parameters string                     `json:"parameters"` // lines such as "num_ctx 4096"
		Info       map[string]json.RawMessage `json:"model_info"`
	}
	body, err := json.Marshal(map[string]string{"model": model})
	if err != nil {
		return llm.Facts{}
	}
	_ = p.Client.Fetch(ctx, httpclient.Call{
		Method: http.MethodPost, Path: "/../api/show", Body: body, Model: model, Once: true,
	}, &shown)
	for line := range strings.Lines(shown.Parameters) {
		if name, value, _ := strings.Cut(strings.TrimSpace(line), " "); name == "num_ctx" {
			var n count
			_ = n.UnmarshalJSON([]byte(strings.TrimSpace(value)))
			return llm.Facts{Window: int64(n)}
		}
	}

	var architecture string
	_ = json.Unmarshal(shown.Info["general.architecture"], &architecture)
	var n count
	_ = n.UnmarshalJSON(shown.Info[architecture+".context_length"])
	return llm.Facts{Window: int64(n)}
}

// describeByLiteLLM returns the facts that the proxy has about a model.
func (p *Provider) describeByLiteLLM(ctx context.Context, model string) llm.Facts {
	var list struct {
		Data httpclient.List[struct {
			Name string `json:"model_name"`
			Info struct {
				MaxInput   count `json:"max_input_tokens"`
				MaxTokens  count `json:"max_tokens"`
				MaxOutput  count `json:"max_output_tokens"`
				Input      price `json:"input_cost_per_token"`
				Output     price `json:"output_cost_per_token"`
				CacheRead  price `json:"cache_read_input_token_cost"`
				CacheWrite price `json:"cache_creation_input_token_cost"`
			} `json:"model_info"`
		}] `json:"data"`
	}
	_ = p.Client.Fetch(ctx, httpclient.Call{Path: "/model/info", Model: model, Once: true}, &list)

	for _, m := range list.Data {
		if m.Name == model {
			i := m.Info
			return llm.Facts{
				Window: int64(i.MaxInput), MaxOutput: int64(cmp.Or(i.MaxOutput, i.MaxTokens)),
				Price: newPrice(i.Input, i.Output, i.CacheRead, i.CacheWrite),
			}
		}
	}
	return llm.Facts{}
}

// mostTokens is more than any model accepts. A larger number is treated as a mistake.
const mostTokens = 1 << 28

// count is a number of tokens as reported by a server: 0 for any implausible value.
type count int64

// UnmarshalJSON never fails, so that an implausible count does not hide the rest of a description.
func (c *count) UnmarshalJSON(text []byte) error {
	n, err := strconv.ParseFloat(strings.Trim(string(text), `"`), 64)
	if *c = 0; err == nil && n >= 1 && n <= mostTokens {
		*c = count(n)
	}
	return nil
}

// mostPerToken is more than any token costs, in US dollars.
const mostPerToken = 1

// price is the price of a token in US dollars, as reported by a server in a number or a string. It
// is nil for any implausible value; OpenRouter uses -1 for a price that varies.
type price struct{ perToken *float64 }

// UnmarshalJSON never fails, for the reason given at count.
func (p *price) UnmarshalJSON(text []byte) error {
	n, err := strconv.ParseFloat(strings.Trim(string(text), `"`), 64)
	if p.perToken = nil; err == nil && n >= 0 && n <= mostPerToken && !math.IsNaN(n) {
		p.perToken = &n
	}
	return nil
}

// perMillion returns the price of a million tokens, or nil if unknown.
func (p price) perMillion() *float64 {
	if p.perToken == nil {
		return nil
	}
	n := *p.perToken * 1e6
	return &n
}

// newPrice returns the price of a model, or nil if the server does not report it.
func newPrice(input, output, cached, write price) *llm.Price {
	if input.perToken == nil || output.perToken == nil {
		return nil
	}
	return &llm.Price{
		Input: *input.perMillion(), Output: *output.perMillion(),
		Cached: cached.perMillion(), CacheWrite: write.perMillion(),
	}
}
