package egress

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/rlmhq/rlm/tiers"
)

// Bounds of what a guest may do to the proxy.
const (
	maxConnections = 64
	maxDenials     = 100
	maxHead        = 64 << 10
	headTime       = 10 * time.Second
	dialTime       = 10 * time.Second
	idleTime       = 60 * time.Second
)

// Options configure a Proxy.
type Options struct {
	// Allow lists what may be reached.
	Allow []Endpoint
	// MaxBytes bounds what all connections carry in both directions, 0 means
	// 1 GiB. Beyond it everything is refused.
	MaxBytes int64
	// Resolve and Dial are for tests. Nil means the host's own.
	Resolve func(ctx context.Context, host string) ([]netip.Addr, error)
	Dial    func(ctx context.Context, network, address string) (net.Conn, error)
	// Log receives what is refused.
	Log zerolog.Logger
}

// Proxy serves one session.
type Proxy struct {
	options Options
	server  *http.Server
	forward *httputil.ReverseProxy
	slots   chan struct{}
	done    chan struct{} // closed by Close
	end     func()

	mu      sync.Mutex // guards what follows
	denials []tiers.Denial
	left    int64
	tunnels map[net.Conn]struct{}
	closed  bool
	running sync.WaitGroup
}

// ForSession returns the proxy of a session that may reach hosts, nil if there are
// none. What base says of them does not count.
func ForSession(hosts []string, base Options) (*Proxy, error) {
	endpoints, err := ParseEndpoints(hosts)
	if err != nil || len(endpoints) == 0 {
		return nil, err
	}
	base.Allow = endpoints
	return New(base), nil
}

// New returns a proxy. It serves nothing yet.
func New(options Options) *Proxy {
	if options.MaxBytes == 0 {
		options.MaxBytes = 1 << 30
	}
	if options.Resolve == nil {
		options.Resolve = func(ctx context.Context, host string) ([]netip.Addr, error) {
			return net.DefaultResolver.LookupNetIP(ctx, "ip", host)
		}
	}
	if options.Dial == nil {
		options.Dial = (&net.Dialer{Timeout: dialTime}).DialContext
	}
	p := &Proxy{
		options: options, left: options.MaxBytes, done: make(chan struct{}),
		slots: make(chan struct{}, maxConnections), tunnels: map[net.Conn]struct{}{},
	}
	p.end = sync.OnceFunc(func() { close(p.done) })
	p.forward = &httputil.ReverseProxy{
		ErrorLog:  log.New(io.Discard, "", 0), // a server writes what would be in it
		Rewrite:   func(r *httputil.ProxyRequest) { r.Out.Host = r.Out.URL.Host },
		Transport: &http.Transport{DialContext: p.dial, DisableCompression: true, MaxConnsPerHost: maxConnections, ResponseHeaderTimeout: idleTime, IdleConnTimeout: idleTime, MaxResponseHeaderBytes: maxHead},
		// An answer may switch protocols though nobody has asked: then the connection would
		// be the guest's and the server's alone.
		ModifyResponse: func(r *http.Response) error {
			if r.StatusCode == http.StatusSwitchingProtocols {
				return p.refuse(r.Request.URL.Host, "it answers by another protocol than HTTP")
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			if refused := (*refusal)(nil); errors.As(err, &refused) {
				http.Error(w, "rlm: "+err.Error(), http.StatusForbidden)
				return
			}
			options.Log.Info().Err(err).Msg("egress failed")
			http.Error(w, unreachable, http.StatusBadGateway)
		},
	}
	p.server = &http.Server{
		Handler: http.HandlerFunc(p.serve), ReadHeaderTimeout: headTime, IdleTimeout: idleTime, MaxHeaderBytes: maxHead,
		BaseContext: func(net.Listener) context.Context { return context.Background() },
		ErrorLog:    log.New(io.Discard, "", 0), // a guest writes what would be in it
	}
	return p
}

// Serve begins to serve a listener that only the sandbox can reach, until that is
// closed or the proxy is. All connections together count against the bounds.
func (p *Proxy) Serve(l net.Listener) {
	if !p.track() {
		_ = l.Close() // nobody serves it
		return
	}
	go func() {
		defer p.untrack()
		if err := p.server.Serve(&bounded{l, p}); !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			p.options.Log.Warn().Err(err).Msg("the egress proxy cannot go on")
		}
	}()
}

// Close ends all connections and waits for them.
func (p *Proxy) Close() error {
	p.end()
	p.mu.Lock()
	p.closed = true
	for c := range p.tunnels {
		_ = c.Close() // whoever uses it sees the error
	}
	p.mu.Unlock()
	err := p.server.Close()
	p.forward.Transport.(*http.Transport).CloseIdleConnections()
	p.running.Wait()
	return err
}

// Denials returns what was refused since the last call, and forgets it.
func (p *Proxy) Denials() []tiers.Denial {
	p.mu.Lock()
	defer p.mu.Unlock()
	denials := p.denials
	p.denials = nil
	return denials
}

// refusal is why something is not let through.
type refusal struct{ target, reason string }

// Error says what and why.
func (r *refusal) Error() string { return r.target + " is refused: " + r.reason }

func (p *Proxy) refuse(target, format string, args ...any) error {
	r := &refusal{printable(target), fmt.Sprintf(format, args...)}
	p.mu.Lock()
	room := len(p.denials) < maxDenials
	if room {
		p.denials = append(p.denials, tiers.Denial{Target: r.target, Reason: r.reason})
	}
	p.mu.Unlock()
	if room { // the log's, too: a guest can ask as often as it likes
		p.options.Log.Info().Str("target", r.target).Str("reason", r.reason).Msg("egress refused")
	}
	return r
}

// printable cuts what a guest has written to what may stand in a log and in a
// line of HTTP.
func printable(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < 0x20 || r > 0x7e {
			return '?'
		}
		return r
	}, text)
	return text[:min(len(text), 300)]
}

// serve answers one request.
func (p *Proxy) serve(w http.ResponseWriter, r *http.Request) {
	switch {
	case r.Method == http.MethodConnect && strings.HasSuffix(r.Host, ":80"):
		// In a tunnel the name that the server is asked for could not be checked.
		http.Error(w, "rlm: "+p.refuse(r.Host, "ask for http:// addresses without CONNECT").Error(), http.StatusForbidden)
	case r.Method == http.MethodConnect:
		p.tunnel(w, r)
	case r.URL.Scheme != "http" || r.URL.Host == "" || r.URL.User != nil:
		http.Error(w, "rlm: "+p.refuse(r.URL.Redacted(), "this is a proxy: it takes CONNECT, and http:// addresses").Error(), http.StatusForbidden)
	default:
		r.Header.Del("Upgrade") // nobody would count the bytes of what it becomes, nor end it
		p.forward.ServeHTTP(w, r)
	}
}

// unreachable is all that a guest hears of a failure: the error itself would name
// addresses of the host.
const unreachable = "rlm: the host cannot be reached"

// tunnel joins the guest with an endpoint. A refusal stands in the status line,
// because that is what clients show.
func (p *Proxy) tunnel(w http.ResponseWriter, r *http.Request) {
	far, err := p.dial(r.Context(), "tcp", r.Host)
	near, buffered, hijackErr := http.NewResponseController(w).Hijack()
	if hijackErr != nil || near == nil {
		if err == nil {
			_ = far.Close() // nobody wants it
		}
		return
	}
	defer near.Close()
	if err != nil {
		status := "502 " + unreachable
		if refused := (*refusal)(nil); errors.As(err, &refused) {
			status = "403 Forbidden by rlm: " + printable(err.Error())
		} else {
			p.options.Log.Info().Err(err).Msg("egress failed")
		}
		_, _ = fmt.Fprintf(near, "HTTP/1.1 %s\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", status)
		return
	}
	defer far.Close()
	if !p.track(near, far) {
		return
	}
	defer p.untrack(near, far)
	if _, err := io.WriteString(near, "HTTP/1.1 200 Connection established\r\n\r\n"); err != nil {
		return
	}
	join(near, buffered.Reader, far)
}

// join copies both ways until both sides have ended, or one has failed.
func join(near net.Conn, ahead *bufio.Reader, far net.Conn) {
	var both sync.WaitGroup
	both.Go(func() { carry(far, ahead) })
	both.Go(func() { carry(near, far) })
	both.Wait()
}

// carry copies one way, and hands the end on.
func carry(to net.Conn, from io.Reader) {
	if _, err := io.Copy(to, from); err != nil {
		_ = to.Close() // the other way must not wait for ever
		return
	}
	if half, ok := to.(interface{ CloseWrite() error }); ok && half.CloseWrite() == nil {
		return
	}
	_ = to.Close()
}

func (p *Proxy) track(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.running.Add(1)
	for _, c := range conns {
		p.tunnels[c] = struct{}{}
	}
	return true
}

func (p *Proxy) untrack(conns ...net.Conn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range conns {
		delete(p.tunnels, c)
	}
	p.running.Done()
}

// dial checks an endpoint and connects with the very address that was checked.
func (p *Proxy) dial(ctx context.Context, _, target string) (net.Conn, error) {
	want, err := parse(target)
	if err != nil {
		return nil, p.refuse(target, "%v", err)
	}
	if !slices.Contains(p.options.Allow, want) {
		return nil, p.refuse(want.String(), "allowed are %s", p.allowed())
	}
	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	addresses, err := p.options.Resolve(ctx, want.Host+".")
	if err != nil {
		return nil, fmt.Errorf("cannot resolve %s: %w", want.Host, err)
	}
	for _, a := range addresses {
		if !public(a) {
			return nil, p.refuse(want.String(), "its address %s is not public", a)
		}
	}
	failures := fmt.Errorf("cannot connect to %s", want)
	for _, a := range addresses[:min(len(addresses), 4)] {
		conn, err := p.options.Dial(ctx, "tcp", net.JoinHostPort(a.Unmap().String(), strconv.Itoa(int(want.Port))))
		if err == nil {
			return &counted{conn, p, want}, nil
		}
		failures = errors.Join(failures, err)
	}
	return nil, failures
}

func (p *Proxy) allowed() string {
	if len(p.options.Allow) == 0 {
		return "none"
	}
	var names []string
	for _, e := range p.options.Allow[:min(len(p.options.Allow), 10)] {
		names = append(names, e.String())
	}
	if more := len(p.options.Allow) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}

// spend takes bytes off the session's allowance.
func (p *Proxy) spend(n int, target Endpoint) error {
	p.mu.Lock()
	had := p.left
	p.left -= int64(n)
	over := p.left < 0
	p.mu.Unlock()
	if !over {
		return nil
	}
	if had < 0 { // it has been said
		return &refusal{target.String(), "the session's allowance of bytes is used up"}
	}
	return p.refuse(target.String(), "the session's allowance of %d bytes is used up", p.options.MaxBytes)
}

// counted is a connection with an endpoint, whose bytes are counted and which does
// not stay idle.
type counted struct {
	net.Conn
	proxy  *Proxy
	target Endpoint
}

// Read reads what the endpoint sends.
func (c *counted) Read(b []byte) (int, error) {
	if err := c.SetReadDeadline(time.Now().Add(idleTime)); err != nil {
		return 0, err
	}
	n, err := c.Conn.Read(b)
	if spent := c.proxy.spend(n, c.target); spent != nil {
		return 0, spent
	}
	return n, err
}

// Write sends to the endpoint.
func (c *counted) Write(b []byte) (int, error) {
	if err := c.proxy.spend(len(b), c.target); err != nil {
		return 0, err
	}
	if err := c.SetWriteDeadline(time.Now().Add(idleTime)); err != nil {
		return 0, err
	}
	return c.Conn.Write(b)
}

// CloseWrite ends one direction.
func (c *counted) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}

// bounded is the sandbox's listener with a bound on open connections: a guest that
// opens more waits.
type bounded struct {
	net.Listener
	proxy *Proxy
}

// Accept waits for a free slot, then for a connection.
func (b *bounded) Accept() (net.Conn, error) {
	select {
	case b.proxy.slots <- struct{}{}:
	case <-b.proxy.done:
		return nil, net.ErrClosed
	}
	conn, err := b.Listener.Accept()
	if err != nil {
		<-b.proxy.slots
		return nil, err
	}
	return &slotted{Conn: conn, free: sync.OnceFunc(func() { <-b.proxy.slots })}, nil
}

// slotted is a connection that holds a slot until it is closed.
type slotted struct {
	net.Conn
	free func()
}

// Close closes the connection and frees its slot.
func (s *slotted) Close() error {
	defer s.free()
	return s.Conn.Close()
}

// CloseWrite ends one direction.
func (s *slotted) CloseWrite() error {
	if half, ok := s.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return errors.ErrUnsupported
}
