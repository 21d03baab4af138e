// Package gate is the first handler of every request of a server: it assigns the ID for the logs,
// checks Host, Origin and key, and bounds the body.
package gate

import (
	"cmp"
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/rlmhq/rlm/internal/text/lazyregexp"
	"github.com/rlmhq/rlm/internal/text/problem"
	"github.com/rlmhq/rlm/server/internal/access"
	"github.com/rlmhq/rlm/server/internal/shares"
)

// Options configure a gate.
type Options struct {
	Door  access.Door
	Audit *access.Audit
	// Hosts are the names by which clients may call the server, without ports. This machine's
	// loopback addresses are always allowed unless Hosts are given.
	Hosts []string
	// Origins are the browser pages, such as https://chat.example.org, that may send requests in
	// addition to the server's own.
	Origins []string
	// MaxBody bounds the body of a request, in bytes. MaxLarge bounds the bodies of paths that
	// begin with LargePath, which are never kept in memory.
	MaxBody, MaxLarge int64
	LargePath         string
	// Requests is the maximum number of active requests. Zero means 3,000.
	Requests int
	// Patience is how long a client may be idle, without sending or receiving. Zero means 30
	// seconds.
	Patience time.Duration
	// Public are paths that need no key.
	Public []string
	Log    *slog.Logger
	// Seen, if set, is called after each answered request.
	Seen func(route string, status int, elapsed time.Duration)
	// Fail writes an error in the format of the path's wire protocol.
	Fail func(w http.ResponseWriter, r *http.Request, err error)
}

// Mux is where the parts of a server register their routes, such as an [http.ServeMux].
type Mux interface {
	http.Handler
	Handle(pattern string, handler http.Handler)
	HandleFunc(pattern string, handler func(http.ResponseWriter, *http.Request))
}

// New returns a handler that passes allowed requests to next. If next can look up routes, as
// [http.ServeMux] can, refused requests also count for their route.
func New(o Options, next http.Handler) http.Handler {
	o.Patience = cmp.Or(o.Patience, anyPatience)
	return &gate{
		Options: o, next: next, requests: shares.New(int64(cmp.Or(o.Requests, 3_000))),
		bodies: shares.New(bodiesAtOnce * o.MaxBody), values: shares.New(valuesOf(o.MaxBody)),
	}
}

type gate struct {
	Options
	next                     http.Handler
	requests, bodies, values *shares.Pool
}

// ServeHTTP implements [http.Handler].
func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	begun := time.Now()
	id := requestID(r)

	seen := &answer{ResponseWriter: w, flow: http.NewResponseController(w), patience: g.Patience}
	head := w.Header()
	head.Set("X-Request-Id", id)
	head.Set("X-Content-Type-Options", "nosniff")
	head.Set("Referrer-Policy", "no-referrer")
	head.Set("Cache-Control", "no-store")

	r = r.WithContext(context.WithValue(r.Context(), idKey{}, id))
	r.Header.Set("X-Request-Id", id) // for handlers that only receive the headers
	var caller access.Key
	defer func() {
		if reason := recover(); reason != nil {
			g.failed(seen, r, reason)
		}
		g.note(r, seen, &caller, id, time.Since(begun))
	}()

	isLarge := g.LargePath != "" && strings.HasPrefix(r.URL.Path, g.LargePath)
	body := newBody(seen, r.Body, isLarge)
	defer body.leave()
	if g.answerPreflight(seen, r) {
		return
	}
	caller, err := g.check(r)
	if err != nil {
		g.Fail(seen, r, err)
		return
	}
	place, err := g.admit(caller.Tenant)
	if err != nil {
		g.Fail(seen, r, err)
		return
	}
	defer place.release()

	held := &share{pool: g.bodies, tenant: caller.Tenant}
	defer held.release()
	values := &share{pool: g.values, tenant: caller.Tenant}
	defer values.release()
	if body.most = g.MaxLarge; !isLarge {
		body.most, body.heaviest = g.MaxBody, valuesOf(g.MaxBody)/4
		body.held, body.values = held, values
	}
	r = r.WithContext(access.With(context.WithValue(r.Context(), shareKey{}, held), caller))
	body.refuse = func(err error) { g.refuse(seen, r, err) }
	defer body.finish(seen, g.MaxBody)
	if r.ContentLength > body.most {
		g.refuse(seen, r, &http.MaxBytesError{Limit: body.most}) // no handler needs to read it
		return
	}

	r.Body = body
	g.next.ServeHTTP(seen, r)
	seen.route = r.Pattern
}

// refuse answers a request whose body was refused, unless the handler has begun an answer.
func (g *gate) refuse(w *answer, r *http.Request, err error) {
	if w.status != 0 {
		return
	}
	if r.ProtoMajor == 1 {
		w.Header().Set("Connection", "close") // the server need not read the rest first
	}
	g.Fail(w, r, err)
	w.isWhole = true
}

// admit counts a tenant's request among the active ones until its place is released.
func (g *gate) admit(tenant string) (place *share, err error) {
	place = &share{pool: g.requests, tenant: tenant}

	if !place.add(1) {
		all, mine := g.requests.Load(tenant)
		return nil, problem.Later(http.StatusServiceUnavailable, "busy", time.Second,
			"there are %d requests under way, %d of them of this tenant: try again", all, mine)
	}
	return place, nil
}

// failed handles the panic of a request's handler.
func (g *gate) failed(w *answer, r *http.Request, reason any) {
	if reason == http.ErrAbortHandler { //nolint:errorlint,err113 // a panic's value, never wrapped
		panic(reason)
	}
	g.Log.Error("a request broke the server's code", "path", r.URL.Path, "reason", fmt.Sprint(reason),
		"stack", string(debug.Stack()))
	if w.status == 0 {
		g.Fail(w, r, fmt.Errorf("panic: %v", reason))
	}
}

// check returns the key of a request, or the reason why the request is refused.
func (g *gate) check(r *http.Request) (access.Key, error) {
	if err := g.checkHost(r.Host); err != nil {
		return access.Key{}, err
	}

	if err := g.checkOrigin(r); err != nil {
		return access.Key{}, err
	}
	if slices.Contains(g.Public, r.URL.Path) {
		return access.Key{}, nil
	}
	return g.Door.Enter(r)
}

// checkHost refuses requests for other names, because a stranger's page may make its own name
// resolve to this machine.
func (g *gate) checkHost(host string) error {
	name, _, err := net.SplitHostPort(host)
	if err != nil {
		name = host
	}

	name = strings.ToLower(strings.Trim(name, "[]"))
	ip := net.ParseIP(name)
	switch {
	case slices.Contains(g.Hosts, name):
		return nil
	case len(g.Hosts) == 0 && (name == "localhost" || ip != nil && ip.IsLoopback()):
		return nil
	case len(g.Hosts) == 0 && !g.Door.Open: // a stranger's page cannot send a key
		return nil
	}
	return problem.New(http.StatusMisdirectedRequest, "unknown_host",
		"this server is not %.100q: start rlm serve with --host for each name that clients use", host)
}

// checkOrigin refuses requests from pages that are not allowed.
func (g *gate) checkOrigin(r *http.Request) error {
	origin := r.Header.Get("Origin")
	if origin == "" && !isLoadedByOther(r) || slices.Contains(g.Origins, origin) || isOwn(origin, r) {
		return nil
	}
	return problem.New(http.StatusForbidden, "unknown_origin",
		"the page %.100q may not use this server: start rlm serve with --allow-origin", origin)
}

// isLoadedByOther reports whether another site's page loads a resource from this server, such as a
// picture, for which a browser sends no origin. Links are allowed.
func isLoadedByOther(r *http.Request) bool {
	site := r.Header.Get("Sec-Fetch-Site")
	isLink := r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
	return (site == "cross-site" || site == "same-site") && !isLink
}

// isOwn reports whether an origin is the server itself. A proxy in front of it may add TLS.
func isOwn(origin string, r *http.Request) bool {
	u, err := url.Parse(origin)
	return err == nil && u.Host == r.Host && (u.Scheme == "https" || u.Scheme == "http" && r.TLS == nil)
}

// answerPreflight sets the CORS headers for allowed pages, and answers their preflight requests.
func (g *gate) answerPreflight(w http.ResponseWriter, r *http.Request) bool {
	origin := r.Header.Get("Origin")
	w.Header().Add("Vary", "Origin")
	if origin == "" || !slices.Contains(g.Origins, origin) || g.checkHost(r.Host) != nil {
		return false
	}
	head := w.Header()
	head.Set("Access-Control-Allow-Origin", origin)
	head.Set("Access-Control-Expose-Headers", "X-Request-Id, Request-Id, Retry-After, Mcp-Session-Id")
	if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
		return false
	}

	head.Set("Access-Control-Allow-Methods", "GET, POST, PUT, DELETE")
	head.Set("Access-Control-Allow-Headers",
		"Anthropic-Beta, Anthropic-Dangerous-Direct-Browser-Access, Anthropic-Version, "+
			"Authorization, Content-Type, Idempotency-Key, Last-Event-ID, "+
			"Mcp-Method, Mcp-Name, Mcp-Protocol-Version, Mcp-Session-Id, "+
			"OpenAI-Organization, OpenAI-Project, "+ //nolint:misspell // a name
			"X-Stainless-Arch, X-Stainless-Lang, X-Stainless-OS, X-Stainless-Package-Version, "+
			"X-Stainless-Retry-Count, X-Stainless-Runtime, X-Stainless-Runtime-Version, X-Stainless-Timeout, "+
			"X-Api-Key, X-Request-Id")
	head.Set("Access-Control-Max-Age", "600")
	w.WriteHeader(http.StatusNoContent)
	return true
}

// note logs the outcome of a request.
func (g *gate) note(r *http.Request, w *answer, k *access.Key, id string, elapsed time.Duration) {
	if g.Seen != nil {
		g.Seen(g.routeOf(r, w), w.status, elapsed)
	}
	method := r.Method[:min(len(r.Method), 20)]
	g.Log.Info("request", "id", id, "method", method, "path", shorten(r.URL.Path), "status", w.status,
		"elapsed", elapsed, "key", k.Name)
	isRead := r.Method == http.MethodGet || r.Method == http.MethodHead || r.Method == http.MethodOptions
	isChange := !isRead || w.status == http.StatusSwitchingProtocols
	if g.Audit == nil || !isChange && !isRefused(w.status) {
		return
	}
	from, _, _ := net.SplitHostPort(r.RemoteAddr)
	err := g.Audit.Add(access.Entry{
		Request: id, Key: k.Name, KeyID: k.ID, Tenant: k.Tenant, From: from,
		Action: method + " " + shorten(r.URL.Path), Object: w.Header().Get(ObjectHeader), Status: w.status,
	})
	if err != nil {
		g.Log.Error("cannot write the audit log", "error", err)
	}
}

// isRefused reports whether a status means that the caller lacks the right, or must wait.
func isRefused(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusTooManyRequests:
		return true
	}
	return false
}

// routeOf returns the pattern of a request's route, or "" if it has none.
func (g *gate) routeOf(r *http.Request, w *answer) string {
	known, ok := g.next.(interface {
		Handler(r *http.Request) (http.Handler, string)
	})
	if w.route != "" || !ok {
		return w.route
	}
	_, route := known.Handler(r)
	return route
}

// ObjectHeader is the header in which a handler names the object that it made, for the audit log.
const ObjectHeader = "X-Rlm-Object"

func shorten(path string) string { return path[:min(len(path), 200)] }

// idKey is the context key of a request's ID.
type idKey struct{}

// ID returns the ID of a request.
func ID(ctx context.Context) string {
	id, _ := ctx.Value(idKey{}).(string)
	return id
}

var validID = lazyregexp.New(`^[A-Za-z0-9._-]{1,64}$`)

// requestID returns the client's ID for a request if it is valid, or a new one.
func requestID(r *http.Request) string {
	if id := r.Header.Get("X-Request-Id"); validID.MatchString(id) {
		return id
	}
	return "req_" + strings.ToLower(rand.Text()[:16])
}
