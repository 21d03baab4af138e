package mcp

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rlmhq/rlm/internal/text/texts"
	"github.com/rlmhq/rlm/repl"
)

// Limits on a call.
const (
	maxNote     = 300 // bytes of a progress message
	progressGap = 100 * time.Millisecond

	maxAsked   = 4_000 // bytes of a question to a person
	maxParked  = 64
	answerTime = 10 * time.Minute
)

var errUndecided = fmt.Errorf("nobody has decided within %v", answerTime)

// call is a call of a tool. Its work may span several requests of the protocol, because newer
// clients receive a question to a person as the result of one request, and send the answer with the
// next request.
type call struct {
	mu      sync.Mutex
	request *mcp.CallToolRequest
	ctx     context.Context //nolint:containedctx // the context of the request with the progress messages
	sent    time.Time
	count   float64
	task    *task // that the call may become; nil if the client does not support tasks

	questions chan *question
	done      chan finished
	cancel    context.CancelCauseFunc
}

type finished struct {
	result *mcp.CallToolResult
	out    any
	err    error
}

// question is a question to a person.
type question struct {
	text   string
	answer chan error
}

type callKey struct{}

// calls are the calls that wait for a person.
type calls struct {
	mu     sync.Mutex
	parked map[string]*parked
	closed bool
}

type parked struct {
	call     *call
	question *question
	expiry   *time.Timer
}

// run performs the work of a tool request.
func run[Out any](
	ctx context.Context, s *Server, req *mcp.CallToolRequest,
	work func(ctx context.Context, c *call) (*mcp.CallToolResult, Out, error),
) (result *mcp.CallToolResult, out Out, err error) {
	var c *call
	if state := req.Params.RequestState; state != "" {
		if c, err = s.calls.resume(ctx, state, req); err != nil {
			return nil, out, err
		}
	} else {
		c = &call{request: req, ctx: ctx, questions: make(chan *question), done: make(chan finished, 1)}

		c.task, _ = ctx.Value(taskKey{}).(*task)
		inner := context.WithoutCancel(ctx)
		if !s.cfg.NoQuestions {
			inner = context.WithValue(inner, callKey{}, c)
		}
		inner, c.cancel = context.WithCancelCause(inner)
		go func() {
			result, out, err := work(inner, c)
			c.done <- finished{result, out, err}
		}()
	}

	select {
	case q := <-c.questions:
		result, err := s.calls.park(c, q)
		return result, out, err
	case end := <-c.done:
		out, _ := end.out.(Out)
		c.cancel(nil)
		return end.result, out, end.err
	case <-ctx.Done():
		c.cancel(context.Cause(ctx))
		<-c.done
		return nil, out, context.Cause(ctx)
	}
}

// park keeps a call until its client sends the answer to a question.
func (cs *calls) park(c *call, q *question) (*mcp.CallToolResult, error) {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	if cs.closed {
		c.cancel(errServerClosed)
		return nil, errServerClosed
	}
	if len(cs.parked) >= maxParked {
		q.answer <- repl.ErrLater
		return nil, errors.New("too many calls wait for a decision: answer some of them first")
	}
	if cs.parked == nil {
		cs.parked = map[string]*parked{}
	}

	state := rand.Text()
	cs.parked[state] = &parked{c, q, time.AfterFunc(answerTime, func() {
		if p := cs.take(state); p != nil {
			p.question.answer <- fmt.Errorf("%w: %w", errUndecided, repl.ErrLater)
			p.call.cancel(errors.New("the client has not come back"))
		}
	})}

	return &mcp.CallToolResult{
		InputRequests: mcp.InputRequestMap{"decision": elicitation(q.text)}, RequestState: state,
	}, nil
}

func (cs *calls) take(state string) *parked {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	p := cs.parked[state]
	delete(cs.parked, state)
	return p
}

// resume passes a request's answer to a call.
func (cs *calls) resume(ctx context.Context, state string, req *mcp.CallToolRequest) (*call, error) {
	p := cs.take(state)
	if p == nil {
		return nil, errors.New("no call waits with this requestState: call the tool again without it")
	}

	p.expiry.Stop()
	p.call.mu.Lock()
	p.call.request, p.call.ctx = req, ctx
	p.call.mu.Unlock()

	answer, _ := req.Params.InputResponses["decision"].(*mcp.ElicitResult)
	p.question.answer <- decisionOf(answer)
	return p.call, nil
}

// abandon ends a call that will never receive an answer.
func (cs *calls) abandon(state string, cause error) {
	if p := cs.take(state); p != nil {
		p.expiry.Stop()
		p.call.cancel(cause)
	}
}

// close ends the waiting calls.
func (cs *calls) close() {
	cs.mu.Lock()
	defer cs.mu.Unlock()
	cs.closed = true
	for _, p := range cs.parked {
		p.expiry.Stop()
		p.call.cancel(errServerClosed)
	}
	cs.parked = nil
}

// elicitation returns the protocol's question whether to make a call.
func elicitation(text string) *mcp.ElicitParams {
	return &mcp.ElicitParams{Mode: "form", Message: text, RequestedSchema: json.RawMessage(`{"type": "object",
		"properties": {"allow": {"type": "boolean", "title": "Make the call?"}}, "required": ["allow"]}`)}
}

// decisionOf returns nil if a person allowed a call.
func decisionOf(r *mcp.ElicitResult) error {
	switch {
	case r == nil || r.Action == "cancel":
		return repl.ErrLater
	case r.Action == "accept" && r.Content["allow"] == true:
		return nil
	}
	return errors.New("the user has denied it")
}

// Ask asks the person who uses the client of the context's call. It returns nil if the person
// allows the action that the text describes, and [repl.ErrLater] if no person can be asked.
func Ask(ctx context.Context, text string) error {
	c, ok := ctx.Value(callKey{}).(*call)
	if !ok {
		return repl.ErrLater
	}
	if len(text) > maxAsked {
		return fmt.Errorf("the call is too long to show: %w", repl.ErrLater)
	}
	c.mu.Lock()
	req := c.request
	c.mu.Unlock()

	if known := req.ClientCapabilities(); known == nil || known.Elicitation == nil {
		return repl.ErrLater
	}

	if p := req.Session.InitializeParams(); p != nil && p.ProtocolVersion < firstStateless {
		ctx, cancel := context.WithTimeoutCause(ctx, answerTime, errUndecided)
		defer cancel()
		answer, err := req.Session.Elicit(ctx, elicitation(text))
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		if err != nil {
			return fmt.Errorf("cannot ask: %w: %w", err, repl.ErrLater)
		}
		return decisionOf(answer)
	}

	q := &question{text: text, answer: make(chan error, 1)}
	select {
	case c.questions <- q:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	select {
	case err := <-q.answer:
		return err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// note reports the progress of a call to the client, at a limited rate.
func (c *call) note(text string) {
	if c.task != nil {
		c.task.note(text)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	token := c.request.Params.GetProgressToken()
	if token == nil || time.Since(c.sent) < progressGap {
		return
	}

	c.sent = time.Now()
	c.count++
	// If the client no longer listens, only this message is lost.
	_ = c.request.Session.NotifyProgress(c.ctx, &mcp.ProgressNotificationParams{
		ProgressToken: token, Progress: c.count, Message: texts.Truncate(text, maxNote),
	})
}
