package openai

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/rlmhq/rlm/repl/internal/callnotes"
	estimate "github.com/rlmhq/rlm/repl/internal/usage"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/internal/chat"
	"github.com/rlmhq/rlm/repl/llm/internal/httpclient"
	"github.com/rlmhq/rlm/repl/llm/internal/kind"
)

// longestVector bounds the length of a vector. The longest vectors of known models have 8,192
// numbers.
const longestVector = 16_384

// Complete implements [llm.Provider], with embeddings.
func (p *Provider) Complete(
	ctx context.Context, r llm.Request, stream func(string),
) (llm.Response, error) {
	if !r.Embed {
		return p.Provider.Complete(ctx, r, stream)
	}
	embed := llm.Func(func(r llm.Request) (llm.Response, error) { return p.embed(ctx, r) })
	return embed.Complete(ctx, r, nil)
}

// embed requests the vectors of the messages. The format is described at
// https://platform.openai.com/docs/api-reference/embeddings.
func (p *Provider) embed(ctx context.Context, r llm.Request) (llm.Response, error) {
	texts := make([]string, len(r.Messages))
	for i, m := range r.Messages {
		texts[i] = m.Content
	}
	body, err := json.Marshal(map[string]any{
		"model": r.Model, "input": texts, "encoding_format": "float",
	})
	if err == nil {
		body, err = chat.AddExtra(body, r.ExtraBody)
	}
	if err != nil {
		return llm.Response{}, &llm.Error{
			Kind: kind.ErrBadRequest, Provider: p.Name, Model: r.Model, Err: err,
		}
	}

	callnotes.SendAsked(ctx, callnotes.Asked{Host: p.Client.Host(), Port: p.Client.Port()})
	var vectors [][]float32
	var used llm.Usage
	outcome, err := p.Client.Do(ctx, httpclient.Call{
		Method: http.MethodPost, Path: p.embedPath(r.Model), Body: body, Model: r.Model,
		EstimateInput: func() int64 { return estimate.EstimateInput(r) },
		Read: func(body io.Reader) (err error) {
			vectors, used, err = readVectors(body, len(texts))
			return err
		},
	})
	if err != nil {
		return llm.Response{}, err
	}

	text, err := json.Marshal(vectors)
	if err != nil {
		return llm.Response{}, &llm.Error{Kind: kind.ErrMalformed, Provider: p.Name, Model: r.Model, Err: err}
	}
	return llm.Response{
		Text: string(text), Attempts: outcome.Attempts,
		Usage: outcome.AddWaste(estimate.Or(used, r, "")),
	}, nil
}

// embedPath returns the URL path for requests for vectors of a model.
func (p *Provider) embedPath(model string) string {
	if p.options.DeploymentVersion == "" {
		return "/embeddings"
	}
	return "/deployments/" + url.PathEscape(model) +
		"/embeddings?api-version=" + url.QueryEscape(p.options.DeploymentVersion)
}

// readVectors reads a reply with n vectors, in any order.
func readVectors(body io.Reader, n int) ([][]float32, llm.Usage, error) {
	var reply struct {
		Data httpclient.List[struct {
			Index  int                      `json:"index"`
			Vector httpclient.List[float32] `json:"embedding"`
		}] `json:"data"`
		Usage struct {
			Prompt int64 `json:"prompt_tokens"`
		} `json:"usage"`
	}
	if err := httpclient.ReadJSON(body, &reply); err != nil {
		return nil, llm.Usage{}, err
	}
	malformed := func(format string, a ...any) error {
		return &llm.Error{Kind: kind.ErrMalformed, Message: fmt.Sprintf(format, a...)}
	}
	if len(reply.Data) != n {
		return nil, llm.Usage{}, malformed("it has %d vectors for %d texts", len(reply.Data), n)
	}

	vectors := make([][]float32, n)
	for i, item := range reply.Data {
		switch {
		case item.Index < 0 || item.Index >= n || vectors[item.Index] != nil:
			return nil, llm.Usage{}, malformed("vector %d has the index %d", i, item.Index)
		case len(item.Vector) == 0 || len(item.Vector) > longestVector:
			return nil, llm.Usage{}, malformed("vector %d has %d numbers", i, len(item.Vector))
		case len(item.Vector) != len(reply.Data[0].Vector):
			return nil, llm.Usage{}, malformed("vector %d has %d numbers, the first one has %d",
				i, len(item.Vector), len(reply.Data[0].Vector))
		}
		vectors[item.Index] = item.Vector
	}
	return vectors, llm.Usage{InputTokens: reply.Usage.Prompt}, nil
}
