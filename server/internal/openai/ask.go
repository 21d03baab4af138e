package openai

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/rlmhq/rlm/server/internal/access"
)

// A wire with a different format for conversations converts its requests to chat completions, so
// the same checks and bounds apply to it.
type (
	// Chat is a chat completion.
	Chat = chatRequest
	// Message is a message of a chat completion.
	Message = chatMessage
	// Part is a part of a message.
	Part = part
	// Count is a number of tokens.
	Count = whole
	// Call is a call of a client's function in a message.
	Call = chatCall
	// Function is the function of a call, with its arguments.
	Function = call
	// Tool is a tool that a client offers.
	Tool = tool
	// Format is the requested format of the answer.
	Format = format
)

// These are the types of a [Tool]: a client's function, and the server's sandbox.
const (
	KindFunction = kindFunction
	KindSandbox  = "code_interpreter"
)

// FunctionChoice returns the tool choice that allows only one function.
func FunctionChoice(name string) (json.RawMessage, error) {
	return marshal(fields{"type": kindFunction, "name": name})
}

// Answer is the answer to a chat completion.
type Answer struct {
	Text  string
	Calls []call // calls of the client's functions
	// Finish is the finish reason, in the terms of chat completions.
	Finish                    string
	InputTokens, OutputTokens int64
	// Details are data that only this server provides. Run is the run's ID; it is empty for a
	// direct answer.
	Details any
	Run     string
}

// Question is a decoded request for a chat completion.
type Question struct {
	// ID is the ID of the answer that has begun: the given one, or that of an earlier request with
	// the same Idempotency-Key.
	ID   string
	api  *API
	asks *asked
	work work
}

// Read reads a chat completion into which another wire has converted a request.
func (a *API) Read(r *http.Request, c *Chat) (*Question, error) {
	ctx := r.Context()
	asks, err := c.read(r, a.lookUp(ctx, access.Caller(ctx).Tenant))
	return &Question{api: a, asks: asks}, err
}

// Begin begins an answer with an ID in the format of the wire. Afterwards, the caller calls Answer.
func (q *Question) Begin(ctx context.Context, id, model string) error {
	base := chunk{ID: id, Created: time.Now().Unix(), Model: model}
	do, err := q.api.workOnce(ctx, access.Caller(ctx), q.asks, &base)
	q.ID, q.work = base.ID, do
	return err
}

// Answer asks the model, or makes a run. Stream, if set, receives the pieces of a direct answer; an
// empty piece means that the text starts over. Accepted, if set, is called before the question
// waits for other work.
func (q *Question) Answer(stream func(string), accepted func()) (Answer, error) {
	got, finish, err := q.work(stream, accepted)
	return Answer{
		Text: got.text, Calls: got.calls, Finish: finish, InputTokens: got.in, OutputTokens: got.out,
		Details: got.details, Run: got.details.Run,
	}, err
}

// CountTokens estimates the tokens of the prompt, without asking the model.
func (q *Question) CountTokens(ctx context.Context) (int64, error) {
	return q.api.Runs.CountInput(ctx, q.asks.ask())
}
