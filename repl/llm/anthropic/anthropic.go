// Package anthropic asks Claude models by Anthropic's messages format, described
// at https://docs.anthropic.com/en/api/messages.
package anthropic

import (
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/url"
	"strings"

	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/internal/httpclient"
)

// version is the version of the format.
const version = "2023-06-01"

// defaultMaxTokens is sent if the caller sets no limit: the format wants one.
const defaultMaxTokens = 8192

// Config says which server to ask.
type Config struct {
	Name    string     // of the provider; "anthropic" if empty
	BaseURL string     // without the version, such as https://api.anthropic.com
	Key     llm.Secret // empty if the server wants none
	HTTP    llm.HTTP
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
		c.Name = "anthropic"
	}
	c.HTTP.Headers = maps.Clone(c.HTTP.Headers)
	if c.HTTP.Headers == nil {
		c.HTTP.Headers = map[string]string{}
	}
	c.HTTP.Headers["Anthropic-Version"] = version
	client, err := httpclient.New(httpclient.Config{Name: c.Name, BaseURL: c.BaseURL, Key: c.Key, KeyHeader: "X-Api-Key", HTTP: c.HTTP})
	if err != nil {
		return nil, err
	}
	return &Provider{config: c, wire: client}, nil
}

// Close closes idle connections.
func (p *Provider) Close() error { return p.wire.Close() }

// Check implements [llm.Checker] by asking for the model's description.
func (p *Provider) Check(ctx context.Context, model string) error {
	var ignored json.RawMessage
	return p.wire.Ask(ctx, "/v1/models/"+url.PathEscape(model), model, &ignored)
}

// Complete implements [llm.Provider].
func (p *Provider) Complete(ctx context.Context, r llm.Request, stream func(string)) (llm.Response, error) {
	return p.habits.Complete(r, func(ask httpclient.Ask) (llm.Response, error) {
		body, err := json.Marshal(encode(ask, stream != nil))
		if err != nil {
			return llm.Response{}, &llm.Error{Kind: llm.ErrBadRequest, Provider: p.config.Name, Model: r.Model, Err: err}
		}
		var got *gathered
		given := false
		outcome, err := p.wire.Do(ctx, httpclient.Call{
			Method: http.MethodPost, Path: "/v1/messages", Body: body, Model: r.Model,
			Input: func() int64 { return llm.EstimateInput(ask.Request) },
			Given: func() bool { return given },
			Read: func(body io.Reader) error {
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

// request is what goes over the wire.
type request struct {
	Model        string        `json:"model"`
	MaxTokens    int           `json:"max_tokens"`
	System       string        `json:"system,omitempty"`
	Messages     []llm.Message `json:"messages"`
	Temperature  *float64      `json:"temperature,omitempty"`
	Stop         []string      `json:"stop_sequences,omitempty"`
	Stream       bool          `json:"stream,omitempty"`
	OutputConfig *outputConfig `json:"output_config,omitempty"`
	CacheControl *cacheControl `json:"cache_control,omitempty"`
}

// outputConfig asks the server to enforce a schema.
type outputConfig struct {
	Format outputFormat `json:"format"`
}

// outputFormat is the schema.
type outputFormat struct {
	Type   string          `json:"type"`
	Schema json.RawMessage `json:"schema"`
}

// cacheControl asks the server to keep the conversation so far for the next turn.
type cacheControl struct {
	Type string `json:"type"`
}

// noText stands for an utterance without text, which the server does not take.
const noText = "(no text)"

// encode puts a request into the server's form: system messages apart, no
// message empty. A conversation that has gone on for a turn is cached, since it
// will be sent again; a single question is not, since writing to the cache costs.
func encode(ask httpclient.Ask, stream bool) request {
	out := request{
		Model: ask.Model, MaxTokens: ask.MaxTokens, Temperature: ask.Temperature, Stop: ask.Stop, Stream: stream,
	}
	if out.MaxTokens == 0 {
		out.MaxTokens = defaultMaxTokens
	}
	var system []string
	for _, m := range ask.Messages {
		switch {
		case m.Role == llm.RoleSystem:
			system = append(system, m.Content)
			continue
		case strings.TrimSpace(m.Content) == "":
			m.Content = noText
		}
		if m.Role == llm.RoleAssistant {
			out.CacheControl = &cacheControl{Type: "ephemeral"}
		}
		out.Messages = append(out.Messages, m)
	}
	out.System = strings.Join(system, "\n\n")
	if ask.Shape != nil {
		out.OutputConfig = &outputConfig{Format: outputFormat{Type: "json_schema", Schema: ask.Shape.Schema}}
	}
	return out
}
