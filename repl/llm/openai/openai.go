// Package openai asks servers that speak the chat completions format of OpenAI:
// OpenAI itself, Azure, OpenRouter, vLLM, Ollama, LiteLLM and many more, told
// apart by their base URL and a few traits.
//
// The format is described at https://platform.openai.com/docs/api-reference/chat.
package openai

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"

	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/internal/httpclient"
)

// Config says which server to ask, and what sets it apart.
type Config struct {
	Name    string     // of the provider, as in "openrouter/…"; "openai" if empty
	BaseURL string     // up to and with the version, such as https://api.openai.com/v1
	Key     llm.Secret // empty if the server wants none
	// Azure sends the key in the header api-key, as Azure wants it.
	Azure bool
	// Deployments is the version of Azure's older interface, in which a model
	// is a part of the path, such as "2024-10-21". It is empty for the newer one.
	Deployments string
	// OldTokenLimit sends the limit of a reply as max_tokens, which OpenAI's own
	// newer models refuse and the other servers know best.
	OldTokenLimit bool
	// Unlisted is set if the server's list of models does not have all of them.
	Unlisted bool
	HTTP     llm.HTTP
}

// Provider asks one server.
type Provider struct {
	config Config
	wire   *httpclient.Client
	habits httpclient.Habits
}

var (
	_ llm.Provider = (*Provider)(nil)
	_ llm.Checker  = (*Provider)(nil)
	_ io.Closer    = (*Provider)(nil)
)

// New returns a provider. The error is of kind [llm.ErrMisconfigured].
func New(c Config) (*Provider, error) {
	if c.Name == "" {
		c.Name = "openai"
	}
	header, prefix := "Authorization", "Bearer "
	if c.Azure {
		header, prefix = "Api-Key", ""
	}
	client, err := httpclient.New(httpclient.Config{
		Name: c.Name, BaseURL: c.BaseURL, Key: c.Key, KeyHeader: header, KeyPrefix: prefix, HTTP: c.HTTP,
	})
	if err != nil {
		return nil, err
	}
	return &Provider{config: c, wire: client}, nil
}

// Close closes idle connections.
func (p *Provider) Close() error { return p.wire.Close() }

// Complete implements [llm.Provider].
func (p *Provider) Complete(ctx context.Context, r llm.Request, stream func(string)) (llm.Response, error) {
	return p.habits.Complete(r, func(ask httpclient.Ask) (llm.Response, error) {
		body, err := json.Marshal(p.encode(ask, stream != nil))
		if err != nil {
			return llm.Response{}, &llm.Error{Kind: llm.ErrBadRequest, Provider: p.config.Name, Model: r.Model, Err: err}
		}
		var got *gathered
		given := false
		outcome, err := p.wire.Do(ctx, httpclient.Call{
			Method: http.MethodPost, Path: p.path(r.Model), Body: body, Model: r.Model,
			Input: func() int64 { return llm.EstimateInput(ask.Request) },
			Given: func() bool { return given },
			Read: func(body io.Reader) (err error) {
				got = &gathered{request: ask.Request}
				if stream == nil {
					return got.readWhole(body)
				}
				return got.readStream(body, func(piece string) { given = true; stream(piece) })
			},
		})
		if err != nil {
			return llm.Response{}, err
		}
		return got.response(outcome), nil
	})
}

// path returns where completions are asked for.
func (p *Provider) path(model string) string {
	if p.config.Deployments == "" {
		return "/chat/completions"
	}
	return "/deployments/" + url.PathEscape(model) + "/chat/completions?api-version=" + url.QueryEscape(p.config.Deployments)
}

// request is what goes over the wire.
type request struct {
	Model               string          `json:"model"`
	Messages            []llm.Message   `json:"messages"`
	MaxCompletionTokens int             `json:"max_completion_tokens,omitempty"`
	MaxTokens           int             `json:"max_tokens,omitempty"`
	Temperature         *float64        `json:"temperature,omitempty"`
	Stop                []string        `json:"stop,omitempty"`
	ResponseFormat      *responseFormat `json:"response_format,omitempty"`
	Stream              bool            `json:"stream,omitempty"`
	StreamOptions       *streamOptions  `json:"stream_options,omitempty"`
}

// streamOptions asks for the usage at a stream's end.
type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

// responseFormat asks the server to enforce a schema.
type responseFormat struct {
	Type       string     `json:"type"`
	JSONSchema jsonSchema `json:"json_schema"`
}

// jsonSchema is a schema with the name that the server wants.
type jsonSchema struct {
	Name   string          `json:"name"`
	Schema json.RawMessage `json:"schema"`
	Strict bool            `json:"strict"`
}

// encode puts a request into the server's form.
func (p *Provider) encode(ask httpclient.Ask, stream bool) request {
	out := request{Model: ask.Model, Messages: ask.Messages, Temperature: ask.Temperature, Stop: ask.Stop, Stream: stream}
	if p.config.OldTokenLimit {
		out.MaxTokens = ask.MaxTokens
	} else {
		out.MaxCompletionTokens = ask.MaxTokens
	}
	if stream {
		out.StreamOptions = &streamOptions{IncludeUsage: true}
	}
	if ask.Shape != nil {
		out.ResponseFormat = &responseFormat{
			Type:       "json_schema",
			JSONSchema: jsonSchema{Name: schemaName(ask.SchemaName), Schema: ask.Shape.Schema, Strict: ask.Shape.Strict},
		}
	}
	return out
}

// maxSchemaName is how long the server lets a schema's name be.
const maxSchemaName = 64

// schemaName returns a name that the server takes.
func schemaName(name string) string {
	name = strings.Map(func(r rune) rune {
		if r == '_' || r == '-' || '0' <= r && r <= '9' || 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' {
			return r
		}
		return '_'
	}, name)
	if name == "" {
		return "reply"
	}
	return name[:min(len(name), maxSchemaName)]
}

// Check implements [llm.Checker] by the server's list of models.
func (p *Provider) Check(ctx context.Context, model string) error {
	path := "/models"
	if p.config.Deployments != "" {
		path += "?api-version=" + url.QueryEscape(p.config.Deployments)
	}
	var list struct {
		Data httpclient.List[struct {
			ID string `json:"id"`
		}] `json:"data"`
	}
	failure := p.wire.Ask(ctx, path, model, &list)
	if failure != nil || p.config.Unlisted || len(list.Data) == 0 {
		return failure
	}
	plain, _, _ := strings.Cut(model, ":") // OpenRouter's variants, Ollama's tags
	for _, entry := range list.Data {
		if entry.ID == model || entry.ID == plain || strings.HasPrefix(entry.ID, model+":") {
			return nil
		}
	}
	return &llm.Error{
		Kind: llm.ErrUnknownModel, Provider: p.config.Name, Model: model,
		Message: "the server at " + p.config.BaseURL + " does not list it",
	}
}
