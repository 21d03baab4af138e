// Package llm describes language models and calls to them.
//
// A [Provider] answers a [Request] with a [Response]. [Func] turns a Go function into
// a provider, package scripted reads one from a file of rules, and package providers
// connects to model servers: its registry turns a name such as
// "anthropic/claude-sonnet-4-5" into a [Model].
//
// A failed call returns an [*Error]. A model that declines to answer is not a failure: its
// Response has the finish reason [FinishRefusal]. [Usage] counts the tokens of a call and
// [Facts] holds their price. A [Secret] holds a key and never prints it.
package llm

import (
	"cmp"
	"context"

	"github.com/rlmhq/rlm/repl/internal/finish"
	"github.com/rlmhq/rlm/repl/llm/internal/kind"
)

// Provider answers requests. It is safe for concurrent use.
//
// A provider that can check the availability of a model without paying for a reply also has a
// method Check(ctx context.Context, model string) error: see [Check].
type Provider interface {
	// Complete sends one request and waits for the whole reply.
	//
	// If stream is not nil, it receives the pieces of the text as they arrive, always from one
	// goroutine. If a reply is interrupted after its first piece and is requested again, an empty
	// piece signals that the text starts again. Pieces are passed on unchanged: a value that was
	// wrapped for the server is wrapped in the pieces but not in the Response.
	//
	// The error is an [*Error], or the cause of the context if the context ended.
	Complete(ctx context.Context, r Request, stream func(delta string)) (Response, error)
}

// Check asks a provider whether it can serve a model: whether the server is reachable, accepts the
// key and has the model. It returns nil if the provider cannot determine this. If a model is
// resolved after the check, its [Model.Facts] includes what the server reported.
func Check(ctx context.Context, p Provider, model string) error {
	if c, ok := p.(interface {
		Check(ctx context.Context, model string) error
	}); ok {
		return c.Check(ctx, model)
	}

	return nil
}

// Func is a provider made from a Go function. It checks each request, and fills in what the
// function leaves out of the response: the name of the model, the finish reason and an estimate of
// the usage. It translates a server's finish reason to the terms of this package. If the reason
// means that the server failed, such as "error", the call is an [*Error] of the kind [ErrServer].
type Func func(Request) (Response, error)

var _ Provider = Func(nil)

// Complete calls the function and streams its text in one piece. A request that no
// server could answer fails before the call.
func (f Func) Complete(ctx context.Context, r Request, stream func(string)) (Response, error) {
	if err := context.Cause(ctx); err != nil {
		return Response{}, err
	}
	if err := r.validate(); err != nil {
		return Response{}, err
	}

	response, err := f(r)
	if err != nil {
		return Response{}, err
	}
	response.Model = cmp.Or(response.Model, r.Model)
	if response.Usage == (Usage{}) {
		response.Usage = estimateUsage(r, response.Text)
	}
	reason, ok := finish.Read(cmp.Or(response.Finish, FinishStop))
	if !ok {
		return Response{}, &Error{
			Kind: kind.ErrServer, Model: response.Model, Message: finish.Describe(response.Finish),
			Attempts: response.Attempts, Usage: response.Usage,
		}
	}
	response.Finish = reason

	if stream != nil && response.Text != "" {
		stream(response.Text)
	}
	return response, nil
}
