// Package llm is how rlm asks language models.
//
// A [Provider] answers a [Request] with a [Response]. What the providers are
// lies below this folder, one package each: openai (everything that speaks the
// OpenAI chat completions format), anthropic, scripted (replies from a file)
// and record (writes what was asked and answered, and plays it again). Package
// providers wires them into a [Registry], which turns the name of a model, such
// as "anthropic/claude-sonnet-4-5", into something that can be asked.
//
// A failure is an [*Error] of one kind, such as [ErrRateLimited]; a model that
// declines to answer is no failure but a Response with [FinishRefusal]. What a
// call used is a [Usage], what it cost is looked up in a [PriceTable], and a key
// is a [Secret], which does not print.
package llm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
)

// Role says who speaks in a [Message].
type Role string

// The roles that every provider understands.
const (
	RoleSystem    Role = "system"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
)

// Message is one utterance of a conversation.
type Message struct {
	Role    Role   `json:"role"`
	Content string `json:"content"`
}

// Request is one prompt. The zero value of an optional field means that the
// server's own default holds.
type Request struct {
	Model    string    `json:"model,omitempty"` // as the provider names it, without the provider
	Messages []Message `json:"messages"`

	// Schema is the JSON Schema that the reply should meet, nil for free text.
	// A server that can enforce it is asked to; others are told by a prompt.
	// The caller checks the reply in either case.
	Schema     json.RawMessage `json:"schema,omitempty"`
	SchemaName string          `json:"schema_name,omitempty"` // letters, digits, - and _; "reply" if empty

	MaxTokens   int      `json:"max_tokens,omitempty"`  // of the reply; 0 is the provider's default
	Temperature *float64 `json:"temperature,omitempty"` // left out where a model takes none
	Stop        []string `json:"stop,omitempty"`

	// Metadata is for scripts, records and logs. It is never sent.
	Metadata Metadata `json:"-"`
}

// Metadata says where in a run a request was made.
type Metadata struct {
	Purpose string `json:"purpose,omitempty"` // what the caller calls it, such as "root" or "leaf"
	Depth   int    `json:"depth,omitempty"`   // 0 at the root
	Turn    int    `json:"turn,omitempty"`    // counted from 1
	Slot    int    `json:"slot,omitempty"`    // the place in a fan-out, from 0
}

// The reasons why a reply ended. A server may have others, which are passed on.
const (
	FinishStop    = "stop"    // the model was done
	FinishLength  = "length"  // the limit of tokens cut the reply
	FinishRefusal = "refusal" // the model or a filter of the server declined; Text says what it said
)

// Response is a model's reply.
type Response struct {
	Text   string
	Usage  Usage
	Model  string // as the server names what answered
	Finish string // FinishStop, FinishLength, FinishRefusal, or the server's own word
	// Structured is set if the server was made to enforce the request's schema,
	// unset if the schema was only part of the prompt.
	Structured bool
	Attempts   int // requests made, retries included; 0 if none was needed
}

// Provider answers requests. It is safe for concurrent use.
type Provider interface {
	// Complete sends one request and waits for the whole reply. If stream is
	// not nil it gets the text piece by piece as it arrives, from one goroutine;
	// a piece once given is not taken back, so a reply that breaks after its
	// first piece is not asked for again. Pieces are as the server sends them: a
	// value that had to be wrapped for the server is still wrapped in them, and
	// not in the Response. A failure is an [*Error], or the
	// context's cause if the context ended.
	Complete(ctx context.Context, r Request, stream func(delta string)) (Response, error)
}

// Checker is a [Provider] that can tell, without paying for a reply, whether a
// request has a chance: the server is there, takes the key and has the model.
type Checker interface {
	Check(ctx context.Context, model string) error
}

// Check asks a provider whether it can serve a model, and returns nil if the
// provider has no way to tell.
func Check(ctx context.Context, p Provider, model string) error {
	if c, ok := p.(Checker); ok {
		return c.Check(ctx, model)
	}
	return nil
}

// Func is a provider made of a Go function, for tests and for embedders. What
// the function leaves out of the Response is filled in: the model's name, the
// ending, and an estimate of what was used.
type Func func(Request) (Response, error)

var _ Provider = Func(nil)

// Complete calls the function and streams its text in one piece.
func (f Func) Complete(ctx context.Context, r Request, stream func(string)) (Response, error) {
	if err := context.Cause(ctx); err != nil {
		return Response{}, err
	}
	if err := r.Validate(); err != nil {
		return Response{}, err
	}
	response, err := f(r)
	if err != nil {
		return Response{}, err
	}
	response = response.Filled(r)
	if stream != nil && response.Text != "" {
		stream(response.Text)
	}
	return response, nil
}

// Filled returns the response with what is missing filled in from the request:
// the model, the ending, and an estimate of what was used.
func (r Response) Filled(request Request) Response {
	if r.Model == "" {
		r.Model = request.Model
	}
	if r.Finish == "" {
		r.Finish = FinishStop
	}
	if r.Usage == (Usage{}) {
		r.Usage = EstimateUsage(request, r.Text)
	}
	return r
}

// Validate returns an [ErrBadRequest] if no server could answer the request.
func (r Request) Validate() error {
	if err := r.invalid(); err != nil {
		return &Error{Kind: ErrBadRequest, Model: r.Model, Err: err}
	}
	return nil
}

// invalid returns what is wrong with a request.
func (r Request) invalid() error {
	spoken := 0
	for i, m := range r.Messages {
		switch m.Role {
		case RoleSystem:
		case RoleUser, RoleAssistant:
			spoken++
		default:
			return fmt.Errorf("message %d has role %q: it must be system, user or assistant", i, m.Role)
		}
	}
	switch {
	case spoken == 0:
		return errors.New("there is no message of a user or an assistant")
	case r.MaxTokens < 0:
		return fmt.Errorf("the limit of %d tokens is negative", r.MaxTokens)
	case r.Schema != nil && !json.Valid(r.Schema):
		return errors.New("the schema is not JSON")
	}
	return nil
}
