package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rlmhq/rlm/tiers"
)

// Direct is a tool that a host calls without a snippet.
type Direct struct {
	// Tool is the server's description, under a unique name.
	Tool *mcp.Tool
	// Call calls the tool for a host's request. Like a snippet's call, it counts and requires
	// permission.
	Call func(ctx context.Context, r *mcp.CallToolRequest) (*mcp.CallToolResult, error)
}

// Direct returns the tools that hosts call without a snippet.
func (g *Gateway) Direct() []Direct { return g.direct }

// addDirect makes a tool direct. The tool keeps its name if the name is unique.
func (g *Gateway) addDirect(t *tool) (err error) {
	shown := *t.origin
	shown.InputSchema = plainSchema(shown.InputSchema)
	has := func(d Direct) bool { return d.Tool.Name == shown.Name }
	if strings.HasPrefix(shown.Name, "rlm_") || slices.ContainsFunc(g.direct, has) {
		shown.Name = t.function()
	}
	if slices.ContainsFunc(g.direct, has) {
		return errors.New("another has the same name")
	}

	// The library panics if a schema does not describe an object.
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("it cannot be offered: %v", p)
		}
	}()
	mcp.NewServer(&mcp.Implementation{Name: "check", Version: "1"}, nil).AddTool(&shown, nil)

	g.direct = append(g.direct, Direct{&shown, func(
		ctx context.Context, r *mcp.CallToolRequest,
	) (*mcp.CallToolResult, error) {
		return g.callDirect(ctx, t, r)
	}})
	return nil
}

// callDirect passes on a host's call, and passes the server's messages back.
func (g *Gateway) callDirect(
	ctx context.Context, t *tool, r *mcp.CallToolRequest,
) (*mcp.CallToolResult, error) {
	args := map[string]tiers.Value{}
	if len(r.Params.Arguments) > 0 {
		if err := json.Unmarshal(r.Params.Arguments, &args); err != nil {
			return nil, fmt.Errorf("the arguments are no JSON object: %w", err)
		}
	}
	ctx, cancel, err := g.begin(ctx, t.server, t.name, args)
	if err != nil {
		return nil, err
	}
	defer cancel()
	if err := take(ctx, t); err != nil {
		return nil, err
	}

	if t.server.session == nil { // an API
		value, err := t.run(ctx, tiers.Call{Named: args})
		return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: string(value)}}}, err
	}
	params := &mcp.CallToolParams{Name: t.origin.Name, Arguments: r.Params.Arguments}
	done := t.server.heard.listen(ctx, params, r)
	defer done()
	return t.server.callTool(ctx, params)
}

// heard passes on a server's messages other than results. The server does not wait for the hosts,
// so messages that they receive too slowly are dropped.
type heard struct {
	mu      sync.Mutex
	last    int                  // token
	calls   map[string]*listener // by token
	update  func(ctx context.Context, uri string)
	waiting chan func() // messages to pass on, one after another; nil before the first one
	closed  bool
}

// Limits on messages that hosts have not received yet.
const (
	maxWaiting = 100
	maxPassed  = 64 << 10 // bytes of one
)

// pass passes on a message, unless too many are waiting.
func (h *heard) pass(message func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return
	}
	if h.waiting == nil {
		waiting := make(chan func(), maxWaiting)
		h.waiting = waiting
		go func() {
			for next := range waiting {
				next()
			}
		}()
	}

	select {
	case h.waiting <- message:
	default:
	}
}

// close stops passing on messages. It does not wait for a host that does not receive.
func (h *heard) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.waiting != nil && !h.closed {
		close(h.waiting)
	}
	h.closed = true
}

// listener is a host's waiting call.
type listener struct {
	ctx     context.Context //nolint:containedctx // the context of the request to which messages belong
	request *mcp.CallToolRequest
	some    bool // at least one message has arrived
}

// settleTime is how long messages that arrived before a result may still be handled after it.
const settleTime = 20 * time.Millisecond

// listen gives a call a progress token. The caller calls done after the call.
func (h *heard) listen(ctx context.Context, params *mcp.CallToolParams, r *mcp.CallToolRequest) (done func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.last++
	token := fmt.Sprintf("rlm-%d", h.last)
	if h.calls == nil {
		h.calls = map[string]*listener{}
	}
	mine := &listener{ctx: ctx, request: r}
	h.calls[token] = mine
	if r.Params.GetProgressToken() != nil {
		params.SetProgressToken(token)
	}

	return func() {
		h.mu.Lock()
		some := mine.some
		h.mu.Unlock()
		if some {
			settled := time.NewTimer(settleTime)
			select {
			case <-settled.C:
			case <-ctx.Done():
			}
			settled.Stop()
		}
		h.mu.Lock()
		delete(h.calls, token)
		h.mu.Unlock()
	}
}

func (h *heard) onUpdate(tell func(ctx context.Context, uri string)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.update = tell
}

// hear adds handlers to a client's options that pass on messages.
func (h *heard) hear(options *mcp.ClientOptions) {
	options.ResourceUpdatedHandler = func(ctx context.Context, r *mcp.ResourceUpdatedNotificationRequest) {
		h.mu.Lock()
		tell := h.update
		h.mu.Unlock()
		if tell != nil {
			ctx = context.WithoutCancel(ctx) // this context would end with the function
			h.pass(func() { tell(ctx, r.Params.URI) })
		}
	}

	options.ProgressNotificationHandler = func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
		if len(r.Params.Message) > maxPassed {
			return
		}
		if one := h.find(func(token string) bool { return token == r.Params.ProgressToken }); one != nil {
			progress := *r.Params
			progress.Meta, progress.ProgressToken = nil, one.request.Params.GetProgressToken()
			// If the host is gone, the message is lost.
			h.pass(func() { _ = one.request.Session.NotifyProgress(one.ctx, &progress) })
		}
	}

	//nolint:staticcheck // servers and hosts of earlier generations use it
	options.LoggingMessageHandler = func(_ context.Context, r *mcp.LoggingMessageRequest) {
		data, err := json.Marshal(r.Params.Data)
		if err != nil || len(data) > maxPassed {
			return
		}
		// The message does not identify its call, and must not reach another host.
		if one := h.find(func(string) bool { return true }); one != nil {
			message := *r.Params
			message.Meta, message.Data = nil, json.RawMessage(data)
			h.pass(func() { _ = one.request.Session.Log(one.ctx, &message) })
		}
	}
}

// find returns the only call with a matching token, or nil if there is none or more than one.
func (h *heard) find(fits func(token string) bool) (found *listener) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for token, one := range h.calls {
		if !fits(token) {
			continue
		}
		if found != nil {
			return nil
		}
		found = one
	}
	if found != nil {
		found.some = true
	}
	return found
}
