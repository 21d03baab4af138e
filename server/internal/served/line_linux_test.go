//go:build amd64 || arm64

package served

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"

	"github.com/coder/websocket"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/tiers"
)

// lineBox is a session of a WebSocket, with the functions of a host.
type lineBox struct {
	conn  *websocket.Conn
	host  tiers.Host
	ended context.Context //nolint:containedctx // when the connection has

	mu      sync.Mutex
	last    int
	waiting map[int]chan lineMessage
}

// lineMessage is a message from the server.
type lineMessage struct {
	ID     int             `json:"id"`
	Method string          `json:"method"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
		Data    struct {
			Kind string `json:"kind"`
			Lost *struct {
				Snippets []int  `json:"snippets"`
				Reason   string `json:"reason"`
			} `json:"lost"`
		} `json:"data"`
	} `json:"error"`
	Params struct {
		ID       int                        `json:"id"`
		Function string                     `json:"function"`
		Args     []json.RawMessage          `json:"args"`
		Named    map[string]json.RawMessage `json:"named"`
	} `json:"params"`
}

// dialBox opens a connection with one session.
func (a *apiTier) dialBox(ctx context.Context, key string, host tiers.Host, settings object) (tiers.Sandbox, error) {
	head := http.Header{"Authorization": {"Bearer " + key}}
	//nolint:bodyclose // the package has read it
	conn, _, err := websocket.Dial(ctx, a.address+"/v1/sessions/connect", &websocket.DialOptions{
		HTTPHeader: head, HTTPClient: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}},
	})
	if err != nil {
		return nil, err
	}
	conn.SetReadLimit(1 << 28)
	ended, end := context.WithCancel(context.Background())
	b := &lineBox{conn: conn, host: host, ended: ended, waiting: map[int]chan lineMessage{}}
	go b.read(end)
	if host != nil {
		settings["functions"] = []object{{"name": "ask"}}
	}
	_, err = b.call(ctx, "initialize", object{"protocol": 1, "client": object{"name": "test"}})
	if err == nil {
		_, err = b.call(ctx, "session/open", settings)
	}
	if err != nil {
		return nil, errors.Join(err, b.Close())
	}
	return b, nil
}

// read receives the server's messages.
func (b *lineBox) read(end func()) {
	defer end()
	calls := map[int]context.CancelFunc{}
	defer func() {
		for _, cancel := range calls {
			cancel()
		}
	}()
	for {
		_, data, err := b.conn.Read(context.Background())
		var m lineMessage
		if err == nil {
			err = json.Unmarshal(data, &m)
		}
		if err != nil {
			return
		}
		switch {
		case m.Method == "host/call":
			ctx, cancel := context.WithCancel(b.ended)
			calls[m.ID] = cancel
			go b.answer(ctx, &m)
		case m.Method == "$/cancel" && calls[m.Params.ID] != nil:
			calls[m.Params.ID]()
		case m.Method == "":
			b.mu.Lock()
			if waiting := b.waiting[m.ID]; waiting != nil {
				waiting <- m
				delete(b.waiting, m.ID)
			}
			b.mu.Unlock()
		}
	}
}

// answer passes a call to the host and sends its answer.
func (b *lineBox) answer(ctx context.Context, m *lineMessage) {
	call := tiers.Call{Function: m.Params.Function, Named: map[string]tiers.Value{}}
	call.Args = append(call.Args, m.Params.Args...)
	for name, arg := range m.Params.Named {
		call.Named[name] = arg
	}
	value, err := b.host.Call(ctx, call)
	message := object{"jsonrpc": "2.0", "id": m.ID, "result": object{"value": value}}
	if err != nil {
		message = object{"jsonrpc": "2.0", "id": m.ID, "error": object{"code": 1, "message": err.Error()}}
	}
	_ = b.write(message) // the session may have ended
}

func (b *lineBox) write(message object) error {
	data, err := json.Marshal(message)
	if err != nil {
		return err
	}
	return b.conn.Write(b.ended, websocket.MessageText, data)
}

// call sends a request and waits for its answer. If the context ends, it cancels the request.
func (b *lineBox) call(ctx context.Context, method string, params object) (json.RawMessage, error) {
	answered := make(chan lineMessage, 1)
	b.mu.Lock()
	b.last++
	id := b.last
	b.waiting[id] = answered
	b.mu.Unlock()
	if err := b.write(object{"jsonrpc": "2.0", "id": id, "method": method, "params": params}); err != nil {
		return nil, broken(err)
	}

	stop := context.AfterFunc(ctx, func() {
		_ = b.write(object{"jsonrpc": "2.0", "method": "$/cancel", "params": object{"id": id}}) // or over
	})
	defer stop()
	select {
	case m := <-answered:
		if m.Error == nil {
			return m.Result, nil
		}
		if m.Error.Data.Kind == "no_tier" {
			return nil, &tiers.RejectedError{Tier: rlm.TierWasm, Reason: m.Error.Message}
		}
		failed := &tiers.BrokenError{Tier: rlm.TierWasm, Err: errors.Join(errors.New(m.Error.Message), ctx.Err())}
		if lost := m.Error.Data.Lost; lost != nil {
			failed.Lost = &tiers.Loss{Snippets: lost.Snippets, Reason: lost.Reason}
		}
		return nil, failed
	case <-b.ended.Done():
		return nil, broken(errors.New("the connection has ended"))
	}
}

// Run implements [tiers.Sandbox].
func (b *lineBox) Run(ctx context.Context, job tiers.Job) (tiers.Result, error) {
	got, err := b.call(ctx, "session/run", object{"session": "1", "source": job.Source, "language": "python"})
	if err != nil {
		return tiers.Result{}, err
	}
	return resultOf(got)
}

// Close implements [tiers.Sandbox]. It closes the connection, with which the session ends.
func (b *lineBox) Close() error {
	err := b.conn.Close(websocket.StatusNormalClosure, "")
	<-b.ended.Done()
	return err
}
