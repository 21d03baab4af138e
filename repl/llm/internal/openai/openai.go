// Package openai implements OpenAI's chat completions format. Azure, OpenRouter, vLLM, Ollama,
// LiteLLM and many other servers also use it, with other base URLs and a few options.
//
// The format is described at https://platform.openai.com/docs/api-reference/chat.
package openai

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"
	"sync"

	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/internal/chat"
	"github.com/rlmhq/rlm/repl/llm/internal/httpclient"
)

// Options configure a provider and describe how its server differs from OpenAI's own.
type Options struct {
	Name    string     // the provider's name, as in "openrouter/…"
	BaseURL string     // including the version: https://api.openai.com/v1
	Key     llm.Secret // may be empty
	KeyFrom string     // the origin of the key, for errors
	// Azure sends the key in the header api-key, as Azure requires.
	Azure bool
	// DeploymentVersion is the version of Azure's older interface, such as "2024-10-21", in
	// which the model is part of the path. It is empty for the newer interface.
	DeploymentVersion string
	// OldTokenLimit sends the limit of a reply as max_tokens. OpenAI's newer models reject it;
	// the other servers expect it.
	OldTokenLimit bool
	// Unlisted reports that the server's list of models is incomplete.
	Unlisted bool
	// Local reports that the server is the user's own: see [llm.Facts].
	Local bool
	// Advice says what to do if the server cannot be reached; it may be empty.
	Advice string
	// Learned is the folder for the learned traits of servers; empty for none.
	Learned string
	// Describes is the further place where the server describes its models.
	Describes Description
	HTTP      httpclient.HTTP
}

// Provider asks one server.
type Provider struct {
	chat.Provider
	options Options
	told    sync.Map // llm.Facts by model
}

// New returns a provider. The error is of the kind "bad configuration".
func New(o Options) (*Provider, error) {
	header, prefix := "Authorization", "Bearer "
	if o.Azure {
		header, prefix = "Api-Key", ""
	}

	client, err := httpclient.New(httpclient.Options{
		Name: o.Name, BaseURL: o.BaseURL,
		Key: o.Key, KeyFrom: o.KeyFrom, KeyHeader: header, KeyPrefix: prefix, Advice: o.Advice, HTTP: o.HTTP,
	})
	if err != nil {
		return nil, err
	}
	p := &Provider{
		Provider: chat.Provider{Name: o.Name, Format: format{o}, Client: client}, options: o,
	}
	p.Keep(o.Learned)
	return p, nil
}

// format implements [chat.Format].
type format struct{ options Options }

// Path implements [chat.Format].
func (f format) Path(model string) string {
	if f.options.DeploymentVersion == "" {
		return "/chat/completions"
	}
	return "/deployments/" + url.PathEscape(model) +
		"/chat/completions?api-version=" + url.QueryEscape(f.options.DeploymentVersion)
}

// The names of the limit of a reply.
const (
	oldLimit = "max_tokens"
	newLimit = "max_completion_tokens"
)

// Limits implements [chat.Format].
func (f format) Limits() []string {
	if f.options.OldTokenLimit {
		return []string{oldLimit, newLimit}
	}
	return []string{newLimit, oldLimit}
}

// request is the body of a request.
type request struct {
	Model               string          `json:"model"`
	Messages            []message       `json:"messages"`
	MaxCompletionTokens int             `json:"max_completion_tokens,omitempty"`
	MaxTokens           int             `json:"max_tokens,omitempty"`
	Temperature         *float64        `json:"temperature,omitempty"`
	TopP                *float64        `json:"top_p,omitempty"`
	Seed                *int64          `json:"seed,omitempty"`
	ReasoningEffort     string          `json:"reasoning_effort,omitempty"`
	Stop                []string        `json:"stop,omitempty"`
	ResponseFormat      *responseFormat `json:"response_format,omitempty"`
	Tools               []tool          `json:"tools,omitempty"`
	ParallelToolCalls   *bool           `json:"parallel_tool_calls,omitempty"`
	Stream              bool            `json:"stream"` // always sent: some stream by default
	StreamOptions       *streamOptions  `json:"stream_options,omitempty"`
}

// streamOptions requests the usage at the end of a stream.
type streamOptions struct {
	IncludeUsage bool `json:"include_usage"`
}

// responseFormat requests that the server enforce a schema.
type responseFormat struct {
	Type       string     `json:"type"`
	JSONSchema jsonSchema `json:"json_schema"`
}

// jsonSchema is a schema under the name that the server requires.
type jsonSchema struct {
	Name   string          `json:"name"`
	Schema json.RawMessage `json:"schema"`
	Strict bool            `json:"strict"`
}

// Encode implements [chat.Format].
func (f format) Encode(r chat.Request, stream bool) any {
	out := request{
		Model: r.Model, Messages: encodeMessages(r.Messages),
		Temperature: r.Temperature, TopP: r.TopP, Seed: r.Seed,
		ReasoningEffort: r.ReasoningEffort, Stop: r.Stop, Stream: stream, Tools: encodeTools(r.Tools),
	}
	switch r.Limit {
	case oldLimit:
		out.MaxTokens = r.MaxTokens
	case newLimit:
		out.MaxCompletionTokens = r.MaxTokens
	}
	if stream && !r.NoStreamOptions {
		out.StreamOptions = &streamOptions{IncludeUsage: true}
	}

	if r.AsksOneCall {
		out.ParallelToolCalls = new(bool)
	}
	if r.Shape != nil {
		schema := jsonSchema{
			Name: cleanSchemaName(r.SchemaName), Schema: r.Shape.Schema, Strict: r.Shape.Strict,
		}
		out.ResponseFormat = &responseFormat{Type: "json_schema", JSONSchema: schema}
	}
	return out
}

// message is a message whose content is a string, or pieces if it has pictures.
type message struct {
	Role    llm.Role `json:"role"`
	Content any      `json:"content"`
}

// piece is a string or a picture in a message.
type piece struct {
	Type     string    `json:"type"`
	Text     string    `json:"text,omitempty"`
	ImageURL *imageURL `json:"image_url,omitempty"`
}

type imageURL struct {
	URL string `json:"url"`
}

func encodeMessages(messages []llm.Message) []message {
	all := make([]message, len(messages))
	for i, m := range messages {
		all[i] = message{m.Role, m.Content}
		if len(m.Images) > 0 {
			all[i].Content = encodePieces(m)
		}
	}
	return all
}

func encodePieces(m llm.Message) []piece {
	pieces := []piece{{Type: "text", Text: m.Content}}
	for _, image := range m.Images {
		url := "data:" + image.Type + ";base64," + base64.StdEncoding.EncodeToString(image.Data)
		pieces = append(pieces, piece{Type: "image_url", ImageURL: &imageURL{url}})
	}
	return pieces
}

// maxSchemaName is the longest schema name that the server accepts, in bytes.
const maxSchemaName = 64

// cleanSchemaName returns a name that the server accepts.
func cleanSchemaName(name string) string {
	if name == "" {
		return "reply"
	}

	name = strings.Map(func(r rune) rune {
		switch {
		case r == '_', r == '-', '0' <= r && r <= '9', 'a' <= r && r <= 'z', 'A' <= r && r <= 'Z':
			return r
		}
		return '_'
	}, name)
	return name[:min(len(name), maxSchemaName)]
}
