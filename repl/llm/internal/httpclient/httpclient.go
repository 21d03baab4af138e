// Package httpclient sends requests to model servers over HTTP. It sends the key only to one host,
// bounds replies, retries calls that may succeed later, and returns failures as [llm.Error]. It is
// independent of the format of requests and replies.
package httpclient

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/internal/kind"
)

// Options configure a client for one server.
type Options struct {
	Name      string // the provider's name, for errors
	BaseURL   string // http or https; calls append their path
	Key       llm.Secret
	KeyFrom   string // the origin of the key, for errors
	KeyHeader string // the header that carries the key
	KeyPrefix string // the prefix of the key, such as "Bearer "
	Advice    string // what to do if the server cannot be reached
	HTTP      HTTP
}

const (
	defaultTimeout     = 10 * time.Minute
	defaultAttempts    = 5
	defaultOutage      = 5 * time.Minute
	defaultFirstWait   = 500 * time.Millisecond
	defaultMaxWait     = 15 * time.Second
	defaultMaxResponse = 16 << 20

	// idleConns is the number of connections that are kept for the next call. It exceeds any
	// sensible fan-out, so a fan-out does not repeatedly reopen its connections.
	idleConns = 256
	// maxHeaderBytes bounds the headers of a reply.
	maxHeaderBytes = 64 << 10
	// maxRedirects is the number of redirects within a host that are followed.
	maxRedirects = 3
)

// setDefaults replaces values that are not positive.
func setDefaults(p *HTTP) {
	setDefault(&p.Timeout, defaultTimeout)
	setDefault(&p.Attempts, defaultAttempts)
	if p.Outage == 0 { // negative means no retries
		p.Outage = defaultOutage
	}
	setDefault(&p.FirstWait, defaultFirstWait)
	setDefault(&p.MaxWait, defaultMaxWait)
	setDefault(&p.MaxResponse, defaultMaxResponse)
	if p.Transport == nil {
		p.Transport = newTransport()
	}
}

// setDefault replaces a number that is not positive with its default.
func setDefault[T int | int64 | time.Duration](number *T, standard T) {
	if *number <= 0 {
		*number = standard
	}
}

// newTransport returns a transport that serves one provider.
func newTransport() *http.Transport {
	dialer := &net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}
	return &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		DialContext:            dialer.DialContext,
		TLSHandshakeTimeout:    10 * time.Second,
		ForceAttemptHTTP2:      true,
		MaxIdleConnsPerHost:    idleConns,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: maxHeaderBytes,
	}
}

// Client sends requests to one server. It is safe for concurrent use.
type Client struct {
	options Options
	base    string
	host    *url.URL
	client  *http.Client
	contact contact
	pace    *pace
}

// New checks the options and makes a client. The error is of the kind "bad
// configuration".
func New(o Options) (*Client, error) {
	base, err := checkServer(o)
	if err != nil {
		return nil, &llm.Error{Kind: kind.ErrMisconfigured, Provider: o.Name, Err: err}
	}

	host, err := url.Parse(base)
	if err != nil {
		return nil, &llm.Error{Kind: kind.ErrMisconfigured, Provider: o.Name, Err: err}
	}
	setDefaults(&o.HTTP)
	client := &http.Client{Transport: o.HTTP.Transport, CheckRedirect: checkRedirect}
	return &Client{options: o, base: base, host: host, client: client, pace: newPace(o.HTTP.AtOnce)}, nil
}

// Base returns the address to which calls append their path.
func (c *Client) Base() string { return c.base }

// Host returns the name or the address of the server's host.
func (c *Client) Host() string { return c.host.Hostname() }

// Port returns the port of the server.
func (c *Client) Port() int {
	if port, err := strconv.Atoi(c.host.Port()); err == nil {
		return port
	}
	if c.host.Scheme == "http" {
		return 80
	}
	return 443
}

// Close closes idle connections.
func (c *Client) Close() error {
	c.client.CloseIdleConnections()
	return nil
}

// checkServer checks the address of a server, and the key and the headers sent there. It returns
// the address without a trailing slash. Errors do not repeat an address that contains a
// password.
func checkServer(o Options) (base string, err error) {
	u, err := url.Parse(o.BaseURL)
	if err != nil {
		return "", errors.New("cannot parse the base URL")
	}

	isPlain := u.Scheme == "http" && !IsLoopback(u.Hostname())
	switch {
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "", errors.New(
			"the base URL must not have a user, query or fragment: set the key separately")
	case u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
		return "", fmt.Errorf(
			"the base URL %q must start with http:// or https:// and name a host", o.BaseURL)
	case strings.ContainsFunc(o.Key.Reveal(), func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", errors.New("the key contains a character that is not allowed in a key")
	case !areHeadersValid(o.HTTP.Headers):
		return "", errors.New("a header contains a character that is not allowed in headers")
	case isPlain && o.Key.Reveal() != "" && !o.HTTP.AllowHTTP:
		return "", fmt.Errorf(
			"the key would go to %q unencrypted: use https, or set allow_http",
			u.Host,
		)
	}
	return strings.TrimSuffix(u.String(), "/"), nil
}

// areHeadersValid reports whether headers can be sent.
func areHeadersValid(headers map[string]string) bool {
	isBad := func(r rune) bool { return r < ' ' || r > '~' }
	for name, value := range headers {
		if name == "" || strings.ContainsFunc(name+value, isBad) ||
			strings.ContainsAny(name, " :()<>@,;\\\"/[]?={}") {
			return false
		}
	}
	return true
}

// IsLoopback reports whether a host is this machine's loopback.
func IsLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// redirectError reports a redirect that was not followed.
type redirectError struct{ target string }

// Error names the target of the redirect.
func (e *redirectError) Error() string {
	return "the server redirects the request to " + e.target
}

// checkRedirect allows a redirect only if it stays on the host and repeats the request. net/http
// would send the prompt, and a key in a custom header, to any other host.
func checkRedirect(req *http.Request, via []*http.Request) error {
	first := via[0]
	if len(via) > maxRedirects || req.Method != first.Method ||
		req.URL.Scheme != first.URL.Scheme || req.URL.Host != first.URL.Host {
		target := req.URL.Scheme + "://" + req.URL.Host + req.URL.Path
		return &redirectError{target: req.Method + " " + target}
	}
	return nil
}
