// Package chat asks model servers for replies, in whatever format they use.
//
// A [Format] writes requests and reads replies. The [Provider] built on it sends them, learns
// what the server's models reject, and counts the use of each call.
package chat

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/rlmhq/rlm/repl/internal/callnotes"
	"github.com/rlmhq/rlm/repl/internal/usage"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/internal/httpclient"
	"github.com/rlmhq/rlm/repl/llm/internal/kind"
)

// Request is a request in a form that the server accepts.
type Request struct {
	llm.Request
	// Shape is the schema to enforce, or nil if there is none or if it is in the prompt.
	Shape *Shape
}

// Format writes requests and reads replies for one kind of server.
type Format interface {
	// Path returns the URL path for requests to a model.
	Path(model string) string
	// Encode returns the body of a request, ready to be marshalled as JSON.
	Encode(r Request, stream bool) any
	// NewReader returns a reader for one reply.
	NewReader() Reader
}

// Reader reads one reply, whole or event by event. Its errors are *llm.Error.
type Reader interface {
	// ReadWhole reads a reply that arrives in one piece.
	ReadWhole(body io.Reader) error
	// ReadEvent reads one event of a streamed reply and returns its text. At the last event it
	// returns [httpclient.ErrDone].
	ReadEvent(data []byte) (text string, err error)
	// Reply returns what has arrived so far.
	Reply() Reply
}

// Reply is a reply, or the part of one that has arrived.
type Reply struct {
	Text    string
	Refusal string // why the model declined, instead of the text
	ID      string // the server's ID of the reply
	Model   string
	Finish  string // empty while the reply has not ended
	Usage   llm.Usage
}

// Provider asks one server. It implements [llm.Provider].
type Provider struct {
	Name   string // for errors
	Format Format
	Client *httpclient.Client

	quirks quirks
}

var _ llm.Provider = (*Provider)(nil)

// Close closes idle connections.
func (p *Provider) Close() error { return p.Client.Close() }

// Complete implements [llm.Provider]. A request with a part that the server rejects is
// repeated without that part.
func (p *Provider) Complete(
	ctx context.Context, r llm.Request, stream func(string),
) (llm.Response, error) {
	if r.Embed {
		return llm.Response{}, &llm.Error{
			Kind: kind.ErrBadRequest, Provider: p.Name, Model: r.Model,
			Message: "this provider has no embeddings: name a model of a provider that speaks OpenAI's format",
		}
	}
	ask := llm.Func(func(r llm.Request) (llm.Response, error) {
		for {
			adapted, give := p.quirks.adapt(r), stream
			if p.quirks.isRejected(streamKey(r)) {
				give = nil
			}
			callnotes.SendAsked(ctx, callnotes.Asked{
				Host: p.Client.Host(), Port: p.Client.Port(), MaxTokens: adapted.MaxTokens,
				Temperature: adapted.Temperature, TopP: adapted.TopP, Seed: adapted.Seed,
			})
			response, err := p.send(ctx, adapted, give)
			if err == nil {
				response = restoreReply(response, adapted)
				if give == nil && stream != nil && response.Text != "" {
					stream(response.Text)
				}
				return response, nil
			}
			again, without := p.quirks.learn(adapted, give != nil, err)
			if !again {
				return llm.Response{}, err
			}
			if without != "" {
				callnotes.SendDropped(ctx, without)
			}
		}
	})
	return ask.Complete(ctx, r, nil) // the function has already streamed
}

// restoreReply extracts the value that a schema requested from its wrapping.
func restoreReply(response llm.Response, r Request) llm.Response {
	response.Structured = r.Shape != nil
	if r.Schema == nil || response.Finish == llm.FinishRefusal {
		return response
	}

	response.Text = removeFence(response.Text)
	if r.Shape != nil && r.Shape.Wrapped {
		response.Text = unwrapValue(response.Text)
	}
	return response
}

// send sends a request, with retries.
func (p *Provider) send(ctx context.Context, r Request, stream func(string)) (llm.Response, error) {
	body, err := json.Marshal(p.Format.Encode(r, stream != nil))
	if err == nil {
		body, err = addExtra(body, r.ExtraBody)
	}
	if err != nil {
		return llm.Response{}, &llm.Error{
			Kind: kind.ErrBadRequest, Provider: p.Name, Model: r.Model, Err: err,
		}
	}

	var reader Reader
	streamed := false
	var give func(string)
	if stream != nil {
		give = func(text string) { streamed = true; stream(text) }
	}
	outcome, err := p.Client.Do(ctx, httpclient.Call{
		Method: http.MethodPost, Path: p.Format.Path(r.Model), Body: body, Model: r.Model,
		EstimateInput: func() int64 { return usage.EstimateInput(r.Request) },
		Restart: func() {
			if streamed {
				streamed = false
				stream("") // see llm.Provider
			}
		},
		Read: func(body io.Reader) error {
			reader = p.Format.NewReader()
			return Read(body, reader, r.Request, give)
		},
	})
	if err != nil {
		return llm.Response{}, err
	}
	return NewResponse(reader.Reply(), r.Request, outcome), nil
}

// Read reads a reply. If give is not nil, it reads a stream and passes the text to give piece by
// piece. The error of a broken stream carries an estimate of its usage.
func Read(body io.Reader, reader Reader, r llm.Request, give func(string)) error {
	if give == nil {
		return reader.ReadWhole(body)
	}

	err := httpclient.ReadEvents(body, func(data string) error {
		text, err := reader.ReadEvent([]byte(data))
		if text != "" {
			give(text)
		}
		return err
	})
	reply := reader.Reply()
	if err == nil && reply.Finish == "" {
		err = &llm.Error{Kind: kind.ErrCut, Message: "the stream ended without a finish reason"}
	}

	var failure *llm.Error
	if reply.Text != "" && errors.As(err, &failure) {
		failure.Usage = usage.Or(llm.Usage{}, r, reply.Text)
	}
	return err
}

// maxName bounds the names that a server sends, in bytes.
const maxName = 200

// NewResponse returns the response for a complete reply. An implausible usage is replaced by an
// estimate, and includes what failed attempts used.
func NewResponse(reply Reply, r llm.Request, outcome httpclient.Outcome) llm.Response {
	text, finish := reply.Text, cmp.Or(reply.Finish, llm.FinishStop)
	if reply.Refusal != "" {
		text, finish = reply.Refusal, llm.FinishRefusal
	}
	model := cmp.Or(reply.Model, r.Model)

	return llm.Response{
		Text:     text,
		Model:    model[:min(len(model), maxName)],
		ID:       reply.ID[:min(len(reply.ID), maxName)],
		Finish:   finish[:min(len(finish), maxName)],
		Usage:    outcome.AddWaste(usage.Or(reply.Usage, r, text)),
		Attempts: outcome.Attempts,
	}
}
