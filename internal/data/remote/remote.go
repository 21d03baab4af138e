// Package remote reads files from servers: by https, and from S3-compatible stores.
//
// An attacker may choose a name in order to reach servers that only this machine can reach. So
// every connection, including those of redirects, goes to an address of the public Internet that
// was checked when it was dialled, unless the server is on the list of allowed ones. The time
// without data, the redirects and the attempts are bounded. The reader of a file must bound its
// bytes.
package remote

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/rlmhq/rlm/internal/data/remote/idleconn"
	"github.com/rlmhq/rlm/internal/wall/egress/endpoints"
)

// IsAddress reports whether a path is the address of a file on a server.
func IsAddress(path string) bool {
	scheme, _, ok := strings.Cut(path, "://")
	return ok && slices.Contains([]string{"https", "http", "s3"}, strings.ToLower(scheme))
}

// Shorten returns an address without its query, which may contain a key. Other paths are returned
// unchanged.
func Shorten(path string) string {
	if IsAddress(path) && !strings.HasPrefix(strings.ToLower(path), "s3:") {
		path, _, _ = strings.Cut(path, "?")
	}
	return path
}

// These bounds apply to a response: to each phase, the time without data, and redirects.
const (
	dialTime     = 15 * time.Second
	headTime     = 30 * time.Second
	idleTime     = time.Minute
	maxRedirects = 5
	maxHead      = 256 << 10 // bytes of headers
)

// Client reads files. Create it with [New], and Close it.
type Client struct {
	servers    []string // HOST or HOST:PORT, in lower case
	kind, flag string   // name the kind of server and its flag in errors
	trusted    []string // HOST:PORT from the environment: proxies, and the store
	transport  *http.Transport
	http       *http.Client
}

// New returns a client. It may reach only the given servers, each as HOST or HOST:PORT, even at
// private addresses and without TLS. If none are given, it may reach all public servers, by TLS.
func New(servers []string) (*Client, error) { return NewFor("context", "--context-server", servers) }

// NewFor is like New, for servers of another kind and flag, which errors mention.
func NewFor(kind, flag string, servers []string) (*Client, error) {
	c := &Client{kind: kind, flag: flag}
	for _, server := range servers {
		host, port, err := net.SplitHostPort(server)
		if err != nil {
			host, port = server, "443"
		}

		u, err := url.Parse("https://" + net.JoinHostPort(host, port))
		if err != nil || u.Hostname() != host || host == "" {
			return nil, fmt.Errorf("cannot use %q as a server: give HOST or HOST:PORT", server)
		}
		c.servers = append(c.servers, strings.ToLower(server))
	}

	c.transport = &http.Transport{
		Proxy:       http.ProxyFromEnvironment, // the proxy may have a private address
		DialContext: c.dial, TLSHandshakeTimeout: dialTime, ResponseHeaderTimeout: headTime,
		MaxResponseHeaderBytes: maxHead, DisableCompression: true, ForceAttemptHTTP2: true,
		MaxConnsPerHost: 16, IdleConnTimeout: idleTime,
	}
	c.http = &http.Client{Transport: c.transport, CheckRedirect: c.follow}
	return c, nil
}

// Do sends a request to an allowed server. It does not follow redirects.
func (c *Client) Do(req *http.Request) (*http.Response, error) {
	if err := c.check(req.URL); err != nil {
		return nil, err
	}
	once := *c.http
	once.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return once.Do(req)
}

// Close closes idle connections.
func (c *Client) Close() { c.transport.CloseIdleConnections() }

// isAllowed reports whether a server is on the list.
func (c *Client) isAllowed(host, port string) bool {
	host = strings.ToLower(host)
	return slices.Contains(c.servers, host) || slices.Contains(c.servers, net.JoinHostPort(host, port)) ||
		slices.Contains(c.trusted, net.JoinHostPort(host, port))
}

// check refuses an address that is not allowed, without resolving its host.
func (c *Client) check(u *url.URL) error {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80"}[u.Scheme]
	}
	if port == "" {
		port = "443"
	}

	isAllowed := c.isAllowed(u.Hostname(), port)
	switch {
	case u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "":
		return fmt.Errorf("%q is not the address of a file: write https://HOST/PATH", u.Redacted())
	case u.User != nil:
		return errors.New("an address with a password is not supported: it would be in notes and records")
	case isAllowed:
		return nil
	case len(c.servers) > 0:
		return fmt.Errorf("the server %s is not on the list of %s servers", u.Host, c.kind)
	case u.Scheme == "http":
		return fmt.Errorf("http://%s is not encrypted: use https://, or allow the server with %s %s",
			u.Host, c.flag, u.Host)
	}
	return nil
}

// errPrivate reports that a server is not on the public Internet.
var errPrivate = errors.New("the server has a private address")

// dial connects to a server. It checks the address after resolving the name.
func (c *Client) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}

	dialer := net.Dialer{Timeout: dialTime}
	if !c.isAllowed(host, port) && !isProxy(address) {
		dialer.Control = func(_, resolved string, _ syscall.RawConn) error {
			at, err := netip.ParseAddrPort(resolved)
			if err != nil || !endpoints.IsPublic(at.Addr()) {
				return fmt.Errorf("%w: allow it with %s %s", errPrivate, c.flag, address)
			}
			return nil
		}
	}

	conn, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return idleconn.Limit(conn, idleTime), nil
}

// isProxy reports whether an address belongs to a proxy of the environment.
func isProxy(address string) bool {
	for _, scheme := range []string{"https", "http"} {
		proxy, err := http.ProxyFromEnvironment(&http.Request{URL: &url.URL{Scheme: scheme, Host: "example.com"}})
		if err != nil || proxy == nil {
			continue
		}
		port := proxy.Port()
		if port == "" {
			port = map[string]string{"https": "443", "socks5": "1080"}[proxy.Scheme]
		}
		if port == "" {
			port = "80"
		}
		if net.JoinHostPort(proxy.Hostname(), port) == address {
			return true
		}
	}
	return false
}

// follow checks a redirect.
func (c *Client) follow(r *http.Request, via []*http.Request) error {
	if len(via) > maxRedirects {
		return fmt.Errorf("it redirects more than %d times", maxRedirects)
	}
	if via[0].URL.Scheme == "https" && r.URL.Scheme != "https" {
		return errors.New("it redirects to an address without encryption")
	}
	return c.check(r.URL)
}
