package agents

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/coder/acp-go-sdk"

	"github.com/rlmhq/rlm/internal/text/texts"
	"github.com/rlmhq/rlm/repl/internal/callnotes"
	"github.com/rlmhq/rlm/repl/internal/usage"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/internal/chat"
	"github.com/rlmhq/rlm/repl/llm/internal/kind"
)

// Bounds of a program.
const (
	maxLine   = 8 << 20  // bytes of a message; the library accepts 10 MiB
	maxText   = 16 << 20 // bytes of a reply
	maxOthers = 100_000  // messages that are not part of a reply, such as noise and requests
	maxShown  = 1_000    // bytes of an error

	beginTime = time.Minute      // until initialize ends; npx may have to download the program
	callTime  = 10 * time.Minute // for a reply, unless the caller sets a timeout
	endTime   = 2 * time.Second  // from the end of stdin to the kill
)

// Agent is an agent program as a model. It implements [llm.Provider].
type Agent struct {
	name    string // of the provider
	command string
	words   []string
	timeout time.Duration

	mu      sync.Mutex // guards the fields below
	running *process   // nil if the program is not running
	closed  bool
	dropped callnotes.Dropped
}

var _ llm.Provider = (*Agent)(nil)

// New returns the agent behind a command: the path or name of a program and its arguments,
// separated by spaces. A reply takes at most the timeout; 0 means 10 minutes. Close the agent
// after use.
func New(name, command string, timeout time.Duration) (*Agent, error) {
	words := strings.Fields(command)
	if len(words) == 0 {
		return nil, &llm.Error{
			Kind: kind.ErrMisconfigured, Provider: name,
			Message: "the name has no command: write " + name + "/COMMAND, such as " + name + "/claude-agent-acp",
		}
	}
	if _, err := exec.LookPath(words[0]); err != nil {
		return nil, &llm.Error{
			Kind: kind.ErrMisconfigured, Provider: name, Model: command,
			Message: "cannot find the program: install it, and log in with it", Err: err,
		}
	}

	return &Agent{
		name: name, command: command, words: words, timeout: cmp.Or(timeout, callTime),
	}, nil
}

// Close ends the program.
func (a *Agent) Close() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.closed = true
	if a.running == nil {
		return nil
	}
	err := a.running.close()
	a.running = nil
	return err
}

// Check starts the program.
func (a *Agent) Check(ctx context.Context, _ string) error {
	_, err := a.start(ctx)
	return err
}

// Complete implements [llm.Provider].
func (a *Agent) Complete(ctx context.Context, r llm.Request, stream func(string)) (llm.Response, error) {
	if r.Embed || len(r.ExtraBody) > 0 {
		return llm.Response{}, a.fail(kind.ErrBadRequest,
			"an agent program has neither embeddings nor an extra body: leave out --extra-body")
	}
	ask := llm.Func(func(r llm.Request) (llm.Response, error) {
		ctx, cancel := context.WithTimeoutCause(ctx, a.timeout,
			a.fail(kind.ErrTimeout, fmt.Sprintf("no whole reply within %v", a.timeout)))
		defer cancel()
		return a.ask(ctx, r, stream)
	})

	return ask.Complete(ctx, r, nil) // the stream function has been called already
}

// ask makes a call.
func (a *Agent) ask(ctx context.Context, r llm.Request, stream func(string)) (llm.Response, error) {
	a.tellDropped(ctx, r)
	callnotes.SendAsked(ctx, callnotes.Asked{})
	p, err := a.start(ctx)
	if err != nil {
		return llm.Response{}, err
	}

	blocks, err := promptOf(r, p.takesImages)
	if err != nil {
		return llm.Response{}, a.fail(kind.ErrBadRequest, err.Error())
	}

	s, err := p.open(ctx, stream)
	if err != nil {
		return llm.Response{}, a.explain(ctx, p, err)
	}
	defer s.close()
	response, err := p.prompt(ctx, s, blocks)
	text, broken := s.end()
	switch {
	case broken != nil:
		return llm.Response{}, broken
	case err != nil:
		failure := a.explain(ctx, p, err)
		var known *llm.Error
		if text != "" && errors.As(failure, &known) {
			known.Usage = usage.Or(llm.Usage{}, r, text)
		}
		return llm.Response{}, failure
	}

	finish, err := a.finishOf(response.StopReason)
	if err != nil {
		return llm.Response{}, err
	}

	used := usage.Or(usageOf(response.Usage), r, text)
	text, isStopped := cutAtStop(text, r.Stop)
	if isStopped {
		finish = llm.FinishStop
	}
	if r.Schema != nil && finish != llm.FinishRefusal {
		text = chat.ReadUnenforced(text)
	}

	return llm.Response{Text: text, Finish: finish, Usage: used, Attempts: 1}, nil
}

// start returns the running program.
func (a *Agent) start(ctx context.Context) (*process, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case a.closed:
		return nil, a.fail(kind.ErrMisconfigured, "the agent is closed")
	case a.running != nil && a.running.isUsable():
		return a.running, nil
	case a.running != nil:
		_ = a.running.close() // the program has failed already
		a.running = nil
	}

	p, err := startProcess(ctx, a)
	if err != nil {
		return nil, err
	}
	a.running = p
	return p, nil
}

// tellDropped reports each part of a request that the protocol does not support, once.
func (a *Agent) tellDropped(ctx context.Context, r llm.Request) {
	for name, isSet := range map[string]bool{
		"temperature": r.Temperature != nil, "top_p": r.TopP != nil, "seed": r.Seed != nil,
		"effort": r.ReasoningEffort != "",
	} {
		if isSet {
			a.dropped.Send(ctx, a.name, name)
		}
	}
}

// finishOf returns the finish reason of a reply.
func (a *Agent) finishOf(reason acp.StopReason) (string, error) {
	switch reason {
	case acp.StopReasonEndTurn:
		return llm.FinishStop, nil
	case acp.StopReasonMaxTokens, acp.StopReasonMaxTurnRequests:
		return llm.FinishLength, nil
	case acp.StopReasonRefusal:
		return llm.FinishRefusal, nil
	case acp.StopReasonCancelled:
	}

	return "", a.fail(kind.ErrCut, fmt.Sprintf("the agent stopped early: %.100q", reason))
}

// usageOf returns the usage that an agent reports.
func usageOf(u *acp.Usage) (used llm.Usage) {
	if u == nil {
		return used
	}
	used = llm.Usage{InputTokens: int64(u.InputTokens), OutputTokens: int64(u.OutputTokens)}
	for _, one := range []struct {
		from *int
		to   *int64
	}{
		{u.CachedReadTokens, &used.CachedTokens},
		{u.CachedWriteTokens, &used.CacheWriteTokens},
		{u.ThoughtTokens, &used.ReasoningTokens},
	} {
		if one.from != nil {
			*one.to = int64(*one.from)
		}
	}

	return used
}

// authRequired is the protocol's error code if the user has not logged in.
const authRequired = -32000

// explain turns an error of the library into the error of a call.
func (a *Agent) explain(ctx context.Context, p *process, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	var known *llm.Error
	if errors.As(err, &known) {
		return err
	}
	if failure := p.failure(); failure != nil {
		return failure
	}
	var refused *acp.RequestError
	if errors.As(err, &refused) {
		text := texts.Truncate(refused.Error(), maxShown)
		switch refused.Code {
		case authRequired:
			if p.logins != "" {
				text = p.logins + ": " + text
			}
			return a.fail(kind.ErrAuth, "log in with the program itself: "+text)
		case -32600, -32602:
			return a.fail(kind.ErrBadRequest, text)
		}
		if !p.isUsable() {
			return a.fail(kind.ErrServer, p.describeEnd())
		}
		return a.fail(kind.ErrServer, text)
	}

	return a.fail(kind.ErrServer, p.describeEnd())
}

// fail returns the error of a call.
func (a *Agent) fail(kind kind.Error, message string) *llm.Error {
	return &llm.Error{Kind: kind, Provider: a.name, Model: a.command, Message: message}
}
