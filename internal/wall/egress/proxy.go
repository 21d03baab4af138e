package egress

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rlmhq/rlm/internal/wall/egress/endpoints"
	"github.com/rlmhq/rlm/tiers"
)

// Bounds on a guest's use of the proxy.
const (
	maxConnections = 64
	maxDenials     = 100
	maxHead        = 64 << 10 // bytes
	headTime       = 10 * time.Second
	dialTime       = 10 * time.Second
	idleTime       = 60 * time.Second
)

// Proxy serves one session.
type Proxy struct {
	allow       []endpoints.Endpoint
	credentials map[endpoints.Endpoint]*credentials
	options     Options
	server      *http.Server
	forward     *httputil.ReverseProxy
	slots       chan struct{}
	done        chan struct{} // closed by Close
	end         func()

	mu      sync.Mutex // guards the fields below
	denials []tiers.Denial
	left    int64 // bytes
	tunnels map[net.Conn]struct{}
	closed  bool
	running sync.WaitGroup
}

func newProxy(allow []endpoints.Endpoint, known map[endpoints.Endpoint]*credentials, options Options) *Proxy {
	p := &Proxy{
		allow:       allow,
		credentials: known,
		options:     options,
		left:        options.MaxBytes,
		done:        make(chan struct{}),
		slots:       make(chan struct{}, maxConnections),
		tunnels:     map[net.Conn]struct{}{},
	}
	p.end = sync.OnceFunc(func() { close(p.done) })
	p.forward = p.newForward()
	p.server = &http.Server{
		Handler:           http.HandlerFunc(p.serveRequest),
		ReadHeaderTimeout: headTime,
		IdleTimeout:       idleTime,
		MaxHeaderBytes:    maxHead,
		BaseContext:       func(net.Listener) context.Context { return context.Background() },
		ErrorLog:          log.New(io.Discard, "", 0), // a guest controls the content
	}
	return p
}

// newForward returns the handler of plain HTTP, which uses TLS for hosts with credentials.
func (p *Proxy) newForward() *httputil.ReverseProxy {
	return &httputil.ReverseProxy{
		ErrorLog: log.New(io.Discard, "", 0), // a server controls the content
		Rewrite: func(r *httputil.ProxyRequest) {
			r.Out.Host = r.Out.URL.Host
			if target, known := p.credentialsFor(r.Out.URL); known != nil {
				known.addTo(r.Out, target)
			}
		},
		Transport: &http.Transport{
			DialContext:            p.dial,
			TLSClientConfig:        &tls.Config{RootCAs: p.options.Roots}, //nolint:gosec // Go's minimum version
			TLSHandshakeTimeout:    dialTime,
			DisableCompression:     true,
			MaxConnsPerHost:        maxConnections,
			ResponseHeaderTimeout:  idleTime,
			IdleConnTimeout:        idleTime,
			MaxResponseHeaderBytes: maxHead,
		},
		// A server may switch protocols without a request. The proxy would then lose control of the
		// connection.
		ModifyResponse: func(r *http.Response) error {
			if r.StatusCode == http.StatusSwitchingProtocols {
				return p.refuse(r.Request.URL.Host, "the server switched to a protocol other than HTTP")
			}
			if r.Request.URL.Scheme == "https" {
				p.credentialsOf(r.Request.URL.Host).hideIn(r)
			}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			if isRefusal(err) {
				http.Error(w, "rlm: "+err.Error(), http.StatusForbidden)
				return
			}
			p.options.Log.Info("egress failed", "error", err)
			http.Error(w, unreachable, http.StatusBadGateway)
		},
	}
}

// Serve starts serving a listener that only the sandbox can reach, until the listener or the proxy
// is closed. The bounds apply to all connections together.
func (p *Proxy) Serve(l net.Listener) {
	if !p.track() {
		_ = l.Close() // never served
		return
	}
	go func() {
		defer p.untrack()

		err := p.server.Serve(&boundedListener{l, p})
		if !errors.Is(err, http.ErrServerClosed) && !errors.Is(err, net.ErrClosed) {
			p.options.Log.Warn("the egress proxy stopped", "error", err)
		}
	}()
}

// Close ends all connections and waits for them.
func (p *Proxy) Close() error {
	p.end()

	p.mu.Lock()
	p.closed = true
	for c := range p.tunnels {
		_ = c.Close() // the connection's user gets the error
	}
	p.mu.Unlock()

	err := p.server.Close()
	if errors.Is(err, net.ErrClosed) {
		err = nil // a jail that has ended has closed its listener
	}
	p.forward.Transport.(*http.Transport).CloseIdleConnections()
	p.running.Wait()
	return err
}

// Denials returns the refusals since the last call, and clears them.
func (p *Proxy) Denials() []tiers.Denial {
	p.mu.Lock()
	defer p.mu.Unlock()

	denials := p.denials
	p.denials = nil
	return denials
}

// refusal is the reason for refusing something. Models read its message.
type refusal struct{ target, reason string }

// Error returns the target and the reason.
func (r *refusal) Error() string { return r.target + " is refused: " + r.reason }

func isRefusal(err error) bool {
	_, ok := errors.AsType[*refusal](err)
	return ok
}

// refuse records a refusal and returns it.
func (p *Proxy) refuse(target, format string, args ...any) error {
	r := &refusal{cleanText(target), fmt.Sprintf(format, args...)}

	p.mu.Lock()
	room := len(p.denials) < maxDenials
	if room {
		p.denials = append(p.denials, tiers.Denial{Target: r.target, Reason: r.reason})
	}
	p.mu.Unlock()

	if room { // this also bounds the log, since a guest can send any number of requests
		p.options.Log.Info("egress refused", "target", r.target, "reason", r.reason)
	}
	return r
}

// cleanText reduces a guest's string to characters that are safe in a log and in a line of HTTP.
func cleanText(text string) string {
	text = strings.Map(func(r rune) rune {
		if r < 0x20 || r > 0x7e {
			return '?'
		}
		return r
	}, text)
	return text[:min(len(text), 300)]
}

// serveRequest handles one request.
func (p *Proxy) serveRequest(w http.ResponseWriter, r *http.Request) {
	forbid := func(target, reason string) {
		http.Error(w, "rlm: "+p.refuse(target, "%s", reason).Error(), http.StatusForbidden)
	}
	switch {
	case r.Method == http.MethodConnect:
		p.openTunnel(w, r)
	case r.URL.Scheme != "http" || r.URL.Host == "" || r.URL.User != nil:
		forbid(r.URL.Redacted(), "this proxy takes only CONNECT requests and http:// addresses")
	case r.Method == http.MethodTrace: // the server's answer would contain the request's headers
		forbid(r.URL.Redacted(), "this proxy passes on no TRACE request")
	default:
		// With this header, a connection could switch to a protocol whose bytes are not counted,
		// and which is never closed.
		r.Header.Del("Upgrade")

		// A response may begin before the request's body has ended, even as its last byte is sent.
		// Without full duplex, Go's server then closes the body, and the transport breaks the
		// connection.
		if err := http.NewResponseController(w).EnableFullDuplex(); err != nil {
			p.options.Log.Warn("early answers may be cut", "error", err)
		}
		p.forward.ServeHTTP(w, r)
	}
}

// unreachable is the only message to a guest about a failure, because the error itself would reveal
// addresses of the host.
const unreachable = "rlm: the host cannot be reached"

// dial checks an endpoint and connects to the very address that was checked.
func (p *Proxy) dial(ctx context.Context, _, target string) (net.Conn, error) {
	want, err := endpoints.Parse(target)
	if err != nil {
		return nil, p.refuse(target, "%v", err)
	}
	if !slices.Contains(p.allow, want) {
		return nil, p.refuse(want.String(), "the allowed hosts are %s", p.listAllowed())
	}

	ctx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	addresses, err := p.options.Resolve(ctx, want.Host+".")
	if err != nil {
		return nil, fmt.Errorf("cannot resolve %s: %w", want.Host, err)
	}
	for _, a := range addresses {
		if !endpoints.IsPublic(a) {
			return nil, p.refuse(want.String(), "the host's address %s is not public", a)
		}
	}

	failures := fmt.Errorf("cannot connect to %s", want)
	port := strconv.Itoa(int(want.Port))
	for _, a := range addresses[:min(len(addresses), 4)] {
		conn, err := p.options.Dial(ctx, "tcp", net.JoinHostPort(a.Unmap().String(), port))
		if err == nil {
			return &countedConn{conn, p, want}, nil
		}
		failures = errors.Join(failures, err)
	}
	return nil, failures
}

// listAllowed lists the endpoints that may be reached, for a refusal.
func (p *Proxy) listAllowed() string {
	var names []string
	for _, e := range p.allow[:min(len(p.allow), 10)] {
		names = append(names, e.String())
	}
	if more := len(p.allow) - len(names); more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	return strings.Join(names, ", ")
}
