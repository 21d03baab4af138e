// Package anthropic implements Anthropic's messages format, described at
// https://docs.anthropic.com/en/api/messages.
package anthropic

import (
	"context"
	"encoding/json"
	"maps"
	"net/url"
	"strings"

	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/internal/chat"
	"github.com/rlmhq/rlm/repl/llm/internal/httpclient"
)

// version is the version of the format.
const version = "2023-06-01"

// defaultMaxTokens is sent if the caller sets no limit, because the format requires one.
const defaultMaxTokens = 8192

// Options configure a provider for one server.
type Options struct {
	Name    string     // the provider's name
	BaseURL string     // without the version: https://api.anthropic.com
	Key     llm.Secret // may be empty
	KeyFrom string     // the origin of the key, for errors
	// Learned is the folder for the learned traits of servers; empty for none.
	Learned string
	HTTP    httpclient.HTTP
}

// Provider asks one server.
type Provider struct{ chat.Provider }

// New returns a provider. The error is of the kind "bad configuration".
func New(o Options) (*Provider, error) {
	headers := map[string]string{}
	maps.Copy(headers, o.HTTP.Headers)
	headers["Anthropic-Version"] = version
	o.HTTP.Headers = headers

	client, err := httpclient.New(httpclient.Options{
		Name: o.Name, BaseURL: o.BaseURL,
		Key: o.Key, KeyFrom: o.KeyFrom, KeyHeader: "X-Api-Key", HTTP: o.HTTP,
	})
	if err != nil {
		return nil, err
	}
	p := &Provider{chat.Provider{Name: o.Name, Format: format{}, Client: client}}
	p.Keep(o.Learned)
	return p, nil
}

// Check requests the model's description, which costs nothing: see [llm.Check].
func (p *Provider) Check(ctx context.Context, model string) error {
	var ignored json.RawMessage
	return p.Client.Fetch(ctx, httpclient.Call{
		Path: "/v1/models/" + url.PathEscape(model), Model: model,
	}, &ignored)
}

// Models returns the server's names of its models, which costs nothing.
func (p *Provider) Models(ctx context.Context) ([]string, error) {
	var list struct {
		Data httpclient.List[struct {
			ID string `json:"id"`
		}] `json:"data"`
	}
	if err := p.Client.Fetch(ctx, httpclient.Call{Path: "/v1/models?limit=1000", Once: true}, &list); err != nil {
		return nil, err
	}

	names := make([]string, len(list.Data))
	for i := range list.Data {
		names[i] = list.Data[i].ID
	}
	return names, nil
}

// format implements [chat.Format].
type format struct{}

// Path implements [chat.Format].
func (format) Path(string) string { return "/v1/messages" }

// Limits implements [chat.Format].
func (format) Limits() []string { return []string{"max_tokens"} }

// request is the body of a request.
type request struct {
	Model        string        `json:"model"`
	MaxTokens    int           `json:"max_tokens"`
	System       string        `json:"system,omitempty"`
	Messages     []turn        `json:"messages"`
	Temperature  *float64      `json:"temperature,omitempty"`
	TopP         *float64      `json:"top_p,omitempty"`
	Stop         []string      `json:"stop_sequences,omitempty"`
	Stream       bool          `json:"stream"`
	OutputConfig *outputConfig `json:"output_config,omitempty"`
	CacheControl *cacheControl `json:"cache_control,omitempty"`
	Tools        []tool        `json:"tools,omitempty"`
	ToolChoice   *toolChoice   `json:"tool_choice,omitempty"`
}

// outputConfig requests that the server enforce a schema, and sets the model's thinking effort.
type outputConfig struct {
	Format *outputFormat `json:"format,omitempty"`
	Effort string        `json:"effort,omitempty"`
}

// outputFormat is a schema.
type outputFormat struct {
	Type   string          `json:"type"`
	Schema json.RawMessage `json:"schema"`
}

// cacheControl requests that the server cache the conversation for the next turn.
type cacheControl struct {
	Type string `json:"type"`
}

// turn is a message whose content is a string, or blocks if it has pictures.
type turn struct {
	Role    llm.Role `json:"role"`
	Content any      `json:"content"`
}

// block is a string or a picture in a message.
type block struct {
	Type   string  `json:"type"`
	Text   string  `json:"text,omitempty"`
	Source *source `json:"source,omitempty"`
}

type source struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      []byte `json:"data"`
}

// encodeMessage puts pictures before the text, as the format's documentation recommends.
func encodeMessage(m llm.Message) turn {
	if len(m.Images) == 0 {
		return turn{m.Role, m.Content}
	}

	var blocks []block
	for _, image := range m.Images {
		blocks = append(blocks, block{
			Type: "image", Source: &source{Type: "base64", MediaType: image.Type, Data: image.Data},
		})
	}
	return turn{m.Role, append(blocks, block{Type: "text", Text: m.Content})}
}

// noText replaces a message without text, which the server rejects.
const noText = "(no text)"

// Encode implements [chat.Format]. System messages go into a separate field.
//
// A conversation that contains a reply is cached, because it will be sent again. A single question
// is not cached, because writing to the cache costs money.
func (format) Encode(r chat.Request, stream bool) any {
	out := request{
		Model: r.Model, MaxTokens: r.MaxTokens,
		Temperature: r.Temperature, TopP: r.TopP, Stop: r.Stop, Stream: stream,
		Tools: encodeTools(r.Tools),
	}
	if out.MaxTokens == 0 {
		out.MaxTokens = defaultMaxTokens
	}

	if r.AsksOneCall {
		out.ToolChoice = &toolChoice{Type: "auto", IsSingle: true}
	}

	var system []string
	for _, m := range r.Messages {
		if m.Role == llm.RoleSystem {
			system = append(system, m.Content)
			continue
		}
		if m.Role == llm.RoleAssistant {
			out.CacheControl = &cacheControl{Type: "ephemeral"}
		}
		if strings.TrimSpace(m.Content) == "" {
			m.Content = noText
		}
		out.Messages = append(out.Messages, encodeMessage(m))
	}
	out.System = strings.Join(system, "\n\n")

	if r.Shape != nil || r.ReasoningEffort != "" {
		out.OutputConfig = &outputConfig{Effort: r.ReasoningEffort}
	}
	if r.Shape != nil {
		out.OutputConfig.Format = &outputFormat{Type: "json_schema", Schema: r.Shape.Schema}
	}
	return out
}
