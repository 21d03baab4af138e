package native

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"time"

	"github.com/coder/websocket"
	"github.com/danielgtaylor/huma/v2"

	"github.com/rlmhq/rlm/internal/text/problem"
	"github.com/rlmhq/rlm/server/internal/access"
	"github.com/rlmhq/rlm/server/internal/connect"
	"github.com/rlmhq/rlm/server/internal/failures"
	"github.com/rlmhq/rlm/server/internal/gate"
	"github.com/rlmhq/rlm/server/internal/sessions"
)

// These are the bounds of WebSockets.
const (
	linesOfTenant = 32
	linesInAll    = 256
	// heldOfLine bounds the active requests of a connection, in bytes.
	heldOfLine = 128 << 20
	// patience is how long a client may take to send a message, to receive one, and to answer a
	// ping.
	patience  = time.Minute
	pingEvery = 30 * time.Second
)

const connectPath = "/v1/sessions/connect"

// addConnect adds the WebSocket of the session protocol.
func (a *api) addConnect(h huma.API, mux gate.Mux) {
	mux.HandleFunc("GET "+connectPath, a.connect)
	h.OpenAPI().AddOperation(&huma.Operation{
		OperationID: "connect", Method: http.MethodGet, Path: connectPath,
		Summary: "Hold sessions over a WebSocket, in the session protocol",
		Description: "Needs a key with the scope run. " +
			"Each text message is one message of docs/reference/session-protocol.md.",
		Parameters: []*huma.Param{{
			Name: "profile", In: "query", Description: "default if it is not given",
			Schema: &huma.Schema{Type: huma.TypeString},
		}},
		Responses: map[string]*huma.Response{"101": {Description: "the connection is a WebSocket"}},
	})
}

// connect answers GET /v1/sessions/connect.
func (a *api) connect(w http.ResponseWriter, r *http.Request) {
	k := access.Caller(r.Context())
	err := access.Need(r.Context(), access.Run)
	var allowed sessions.Terms
	if err == nil {
		allowed, err = a.Sessions.Terms(r.URL.Query().Get("profile"))
	}
	var life context.Context
	if err == nil {
		var leave func()
		if life, leave, err = a.Sessions.Join(); err == nil {
			defer leave()
			err = a.takeLine(k.Tenant)
		}
	}
	if err != nil {
		failures.Write(w, err)
		return
	}
	defer a.lines.Give(k.Tenant, 1)

	// The gate has checked the origin.
	conn, err := websocket.Accept(w, r, &websocket.AcceptOptions{InsecureSkipVerify: true})
	if err != nil {
		a.Log.Debug("no WebSocket", "request", gate.ID(r.Context()), "error", err)
		return
	}
	conn.SetReadLimit(a.MaxBody)
	defer context.AfterFunc(life, func() {
		_ = conn.Close(websocket.StatusGoingAway, "the server is stopping") // it may be gone
	})()
	a.serveLine(r.Context(), conn, &sessions.Holder{Manager: a.Sessions, Key: k, Profile: allowed.Profile}, &allowed)
}

// serveLine serves a client until its connection or the server ends.
func (a *api) serveLine(
	ctx context.Context, conn *websocket.Conn, holder *sessions.Holder, allowed *sessions.Terms,
) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var pinging sync.WaitGroup
	pinging.Go(func() { keepAlive(ctx, conn) })

	hold := func(n int) error { return gate.Hold(ctx, n) }
	s := &lineStream{ctx: ctx, conn: conn, hold: hold}
	err := connect.Serve(ctx, a.Sessions.Engine, s, s, connect.Options{
		Version: a.Version, Limits: allowed.Limits, Policy: allowed.Policy, Deterministic: allowed.Deterministic,
		Admit:   func(ctx context.Context) error { return a.Door.Again(ctx, holder.Key.ID) },
		Reserve: holder.Reserve, Keeper: holder, MaxHeld: heldOfLine, Hold: hold,
		Note: func(method, session, outcome string) {
			err := a.Audit.Note(&holder.Key, gate.ID(ctx), "WS "+method, session, outcome)
			if err != nil {
				a.Log.Error("cannot write the audit log", "error", err)
			}
		},
		Labels: map[string]string{"tenant": holder.Key.Tenant}, Log: a.Log,
	})
	if err != nil {
		a.Log.Debug("a connection broke", "request", gate.ID(ctx), "error", err)
	}
	_ = conn.Close(websocket.StatusNormalClosure, "") // the client may have gone away
	cancel()
	pinging.Wait()
}

// keepAlive ends the connection of a client that does not answer pings.
func keepAlive(ctx context.Context, conn *websocket.Conn) {
	ticker := time.NewTicker(pingEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		limited, cancel := context.WithTimeout(ctx, patience)
		err := conn.Ping(limited)
		cancel()
		if err != nil {
			_ = conn.CloseNow() // the client may have gone away
			return
		}
	}
}

// takeLine reserves a place for a WebSocket of a tenant, or refuses it.
func (a *api) takeLine(tenant string) error {
	if a.lines.Take(tenant, 1) {
		return nil
	}

	all, mine := a.lines.Load(tenant)
	return problem.Later(http.StatusServiceUnavailable, "too_many_connections", time.Second,
		"there are %d WebSockets, %d of them of this tenant: close one", all, mine)
}

// lineStream presents a WebSocket as a stream of lines: each text message is a line.
type lineStream struct {
	ctx     context.Context //nolint:containedctx // the connection's context
	conn    *websocket.Conn
	hold    func(n int) error // counts bytes in memory
	held    int               // bytes of the last message
	message io.Reader         // the unread rest of the current message, or nil
	isWhole bool              // the message was read, except for its line end
	late    *time.Timer
}

// Read implements [io.Reader].
func (s *lineStream) Read(into []byte) (int, error) {
	if len(into) == 0 {
		return 0, nil
	}
	if s.message == nil {
		_ = s.hold(-s.held) // the previous message was consumed
		s.held = 0
		kind, message, err := s.conn.Reader(s.ctx)
		switch {
		case err != nil && websocket.CloseStatus(err) != -1:
			return 0, io.EOF // the client has closed the connection
		case err != nil:
			return 0, err
		case kind != websocket.MessageText:
			return 0, errors.Join(errNoText, s.conn.Close(websocket.StatusUnsupportedData, "send text messages"))
		}
		s.message = message
		s.late = time.AfterFunc(patience, func() { _ = s.conn.CloseNow() })
	}

	n := 0
	if !s.isWhole {
		var err error
		n, err = s.message.Read(into)
		if full := s.hold(n); full != nil {
			return 0, errors.Join(full, s.conn.Close(websocket.StatusTryAgainLater, "too much is under way"))
		}
		s.held += n
		for i := range into[:n] {
			if into[i] == '\n' { // white space between JSON tokens, since strings cannot contain it
				into[i] = ' '
			}
		}
		if !errors.Is(err, io.EOF) {
			return n, err
		}
		s.isWhole = true
		s.late.Stop()
	}
	if n == len(into) {
		return n, nil
	}
	s.message, s.isWhole = nil, false
	into[n] = '\n'
	return n + 1, nil
}

var errNoText = errors.New("a message is no text")

// Write implements [io.Writer] for whole lines.
func (s *lineStream) Write(line []byte) (int, error) {
	ctx, cancel := context.WithTimeout(s.ctx, patience)
	defer cancel()
	if err := s.conn.Write(ctx, websocket.MessageText, bytes.TrimSuffix(line, []byte{'\n'})); err != nil {
		return 0, err
	}
	return len(line), nil
}
