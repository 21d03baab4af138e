// Package chat asks model servers for replies, independently of their formats.
//
// A [Format] writes requests and reads replies. The [Provider] built on it sends them, learns what
// the server's models reject, and counts the tokens of each call.
package chat

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/rlmhq/rlm/repl/internal/callnotes"
	"github.com/rlmhq/rlm/repl/internal/finish"
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
	// Limit is the name under which the limit of the reply is sent: one of [Format.Limits], or
	// another string if the limit is not sent.
	Limit string
	// AsksOneCall asks the server for at most one call of the tools.
	AsksOneCall bool
	// NoStreamOptions leaves out the options of a stream.
	NoStreamOptions bool
}

// Format writes requests and reads replies for one kind of server.
type Format interface {
	// Path returns the URL path for requests to a model.
	Path(model string) string
	// Limits returns the names of the limit of a reply, the usual one first.
	Limits() []string
	// Encode returns the body of a request, ready to be marshalled as JSON.
	Encode(r Request, stream bool) any
	// NewReader returns a reader for one reply.
	NewReader() Reader
}

// Reader reads one reply, whole or event by event. Its errors are *llm.Error.
type Reader interface {
	// ReadWhole reads a reply that arrives in one piece.
	ReadWhole(body io.Reader) error
	// ReadEvent reads one event of a streamed reply. At the last event it returns
	// [httpclient.ErrDone].
	ReadEvent(data []byte) error
	// Reply returns the part of the reply that has arrived.
	Reply() Reply
}

// Reply is a reply, or the part of one that has arrived.
type Reply struct {
	Text    string
	Settled string // the beginning of the text that no later piece changes
	Refusal string // the model's reason to decline, in place of the text
	ID      string // the server's ID of the reply
	Model   string
	Finish  string // the server's word; empty while the reply has not ended
	Unclear bool   // the pieces may mean different texts: see [Pieces]
	Usage   llm.Usage
	Calls   []Call // of the request's tools
}

// Provider asks one server. It implements [llm.Provider].
type Provider struct {
	Name   string // for errors
	Format Format
	Client *httpclient.Client

	quirks  quirks
	dropped callnotes.Dropped
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
	ask := llm.Func(func(r llm.Request) (llm.Response, error) { return p.ask(ctx, r, stream) })
	return ask.Complete(ctx, r, nil) // the stream function has been called already
}

// maxChanges bounds the changes of one request. It exceeds the number of changes that can be
// learned.
const maxChanges = 16

// ask asks the model, and asks again without the parts that the server refuses. If the model then
// answers, it remembers these changes.
func (p *Provider) ask(
	ctx context.Context, r llm.Request, stream func(string),
) (llm.Response, error) {
	known, limits := p.quirks.of(r.Model), p.Format.Limits()
	var changes []change
	isShown := false // the caller has received pieces
	for {
		adapted := p.quirks.adapt(r, known, limits)
		for _, part := range parts {
			if part.isSet(&r.Sampling) && known.lacks(part.name) {
				p.dropped.Send(ctx, r.Model, part.name)
			}
		}
		var give func(string)
		if stream != nil && !known.lacks(streamPart) {
			give = func(piece string) { isShown = piece != ""; stream(piece) }
		} else if known.lacks(wholePart) && !known.lacks(streamPart) {
			give = func(string) {}
		}
		callnotes.SendAsked(ctx, callnotes.Asked{
			Host: p.Client.Host(), Port: p.Client.Port(), MaxTokens: adapted.MaxTokens,
			Temperature: adapted.Temperature, TopP: adapted.TopP, Seed: adapted.Seed,
		})
		var next change
		response, err := p.send(ctx, adapted, give, func(failure *llm.Error) bool {
			next = learn(adapted, give != nil, limits, failure)
			return next.apply != nil
		})

		var failure *llm.Error
		switch {
		case err == nil:
			p.quirks.noteSuccess(adapted)
			p.quirks.keep(r.Model, changes)
			response = restoreReply(response, adapted)
			if give == nil && stream != nil && response.Text != "" {
				stream(response.Text)
			}
			return response, nil
		case !errors.As(err, &failure):
			return llm.Response{}, err
		case next.apply == nil || len(changes) == maxChanges:
			p.blameLength(adapted.Request, failure)
			return llm.Response{}, err
		}
		next.apply(&known)
		changes = append(changes, next)
		if isShown {
			isShown = false
			stream("") // see llm.Provider
		}
	}
}

// Keep stores the learned facts about the server's models in a folder, for other processes. It must
// be called before the first request.
func (p *Provider) Keep(folder string) { p.quirks.open(folder, p.Client.Base()) }

// Learned returns the server's address, and sentences that describe the learned facts about a
// model.
func (p *Provider) Learned(model string) (server string, what []string, err error) {
	server = p.Client.Base()
	if p.quirks.file != "" {
		if _, err := readTraits(p.quirks.file, server); err != nil {
			return server, nil, err
		}
	}
	known := p.quirks.of(model)
	return server, known.sentences(), nil
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
	if r.Shape != nil && r.Shape.Strict {
		response.Text = dropNulls(response.Text, r.Schema)
	}
	return response
}

// send sends a request, with retries, unless giveUp returns true for a failure.
func (p *Provider) send(
	ctx context.Context, r Request, stream func(string), giveUp func(*llm.Error) bool,
) (llm.Response, error) {
	body, err := json.Marshal(p.Format.Encode(r, stream != nil))
	if err == nil {
		body, err = AddExtra(body, r.ExtraBody)
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
		GiveUp: giveUp,
		Read: func(body io.Reader) error {
			reader = p.Format.NewReader()
			if err := Read(body, reader, r.Request, give); err != nil {
				return err
			}
			return checkFinish(reader.Reply(), r.Request)
		},
	})
	if err != nil {
		return llm.Response{}, err
	}
	return NewResponse(reader.Reply(), r.Request, outcome), nil
}

// checkFinish returns an error if the server did not complete a reply. The call may succeed if it
// is repeated, but the reply's tokens are paid for.
func checkFinish(reply Reply, r llm.Request) error {
	if _, ok := finish.Read(cmp.Or(reply.Finish, finish.Stop)); ok {
		return nil
	}
	return &llm.Error{
		Kind: kind.ErrServer, Message: finish.Describe(reply.Finish),
		Usage: usage.Or(reply.Usage, r, reply.Text),
	}
}

// maxName bounds the names that a server sends, in bytes.
const maxName = 200

// NewResponse returns the response for a complete reply. An implausible usage is replaced by an
// estimate, and includes the tokens of failed attempts.
func NewResponse(reply Reply, r llm.Request, outcome httpclient.Outcome) llm.Response {
	text := reply.Text
	reason, _ := finish.Read(cmp.Or(reply.Finish, finish.Stop)) // see checkFinish
	switch {
	case reply.Refusal != "":
		text, reason = reply.Refusal, llm.FinishRefusal
	case reason == llm.FinishRefusal:
		text = finish.DescribeFilter(reply.Finish)
	}
	if isWhole := reason == llm.FinishStop || reason == finish.ToolCalls; isWhole && len(r.Tools) > 0 &&
		len(reply.Calls) > 0 {
		calls := reply.Calls
		if r.OneCall {
			calls = calls[:1]
		}
		text, reason = writeCalls(text, calls), llm.FinishStop
	}
	model := cmp.Or(reply.Model, r.Model)

	return llm.Response{
		Text:     text,
		Model:    model[:min(len(model), maxName)],
		ID:       reply.ID[:min(len(reply.ID), maxName)],
		Finish:   reason,
		Usage:    outcome.AddWaste(usage.Or(reply.Usage, r, reply.Text+reply.Refusal)),
		Attempts: outcome.Attempts,
	}
}
