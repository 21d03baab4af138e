// Package httpclient carries requests to model servers over HTTP: with a key that
// goes to one host only, bounded replies, retries, and failures as [llm.Error].
// The providers bring the formats.
package httpclient

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/rlmhq/rlm/repl/llm"
)

// Config says which server to talk to, and how.
type Config struct {
	Name      string // of the provider, for errors
	BaseURL   string // http or https; what calls add their path to
	Key       llm.Secret
	KeyHeader string // the header that carries the key
	KeyPrefix string // what stands before the key, such as "Bearer "
	HTTP      llm.HTTP
}

// Client talks to one server. It is safe for concurrent use.
type Client struct {
	Config
	base   string
	client *http.Client
}

// Defaults of [llm.HTTP].
const (
	defaultTimeout     = 10 * time.Minute
	defaultAttempts    = 5
	defaultFirstWait   = 500 * time.Millisecond
	defaultMaxWait     = time.Minute
	defaultMaxResponse = 16 << 20
)

// idleConns is how many connections are kept for the next call. It is above any
// sensible fan-out, so that a fan-out does not open connections over and over.
const idleConns = 256

// maxHeaderBytes bounds the headers of a reply.
const maxHeaderBytes = 64 << 10

// maxRedirects is how many redirects within a host are followed.
const maxRedirects = 3

// New checks a configuration and makes its client. The error is of kind
// [llm.ErrMisconfigured].
func New(c Config) (*Client, error) {
	base, err := baseURL(c)
	if err != nil {
		return nil, &llm.Error{Kind: llm.ErrMisconfigured, Provider: c.Name, Err: err}
	}
	setDefault(&c.HTTP.Timeout, defaultTimeout)
	setDefault(&c.HTTP.Attempts, defaultAttempts)
	setDefault(&c.HTTP.FirstWait, defaultFirstWait)
	setDefault(&c.HTTP.MaxWait, defaultMaxWait)
	setDefault(&c.HTTP.MaxResponse, defaultMaxResponse)
	if c.HTTP.Transport == nil {
		c.HTTP.Transport = &http.Transport{
			Proxy:                  http.ProxyFromEnvironment,
			DialContext:            (&net.Dialer{Timeout: 10 * time.Second, KeepAlive: 30 * time.Second}).DialContext,
			TLSHandshakeTimeout:    10 * time.Second,
			ForceAttemptHTTP2:      true,
			MaxIdleConnsPerHost:    idleConns,
			IdleConnTimeout:        90 * time.Second,
			MaxResponseHeaderBytes: maxHeaderBytes,
		}
	}
	return &Client{Config: c, base: base, client: &http.Client{Transport: c.HTTP.Transport, CheckRedirect: sameHost}}, nil
}

// setDefault gives a number that is not positive its default.
func setDefault[T int | int64 | time.Duration](number *T, standard T) {
	if *number <= 0 {
		*number = standard
	}
}

// baseURL checks the address of a server and the key that goes there, and
// returns the address without a slash at its end. Errors do not repeat an
// address that holds a password.
func baseURL(c Config) (string, error) {
	u, err := url.Parse(c.BaseURL)
	if err != nil {
		return "", errors.New("the base URL cannot be parsed")
	}
	switch {
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return "", errors.New("the base URL must have no user, query or fragment: give a key as a key")
	case u.Scheme != "http" && u.Scheme != "https", u.Hostname() == "":
		return "", fmt.Errorf("the base URL %q must begin with http:// or https:// and a host", c.BaseURL)
	case strings.ContainsFunc(c.Key.Reveal(), func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", errors.New("the key has a character that no key has: was something else pasted?")
	case !sendable(c.HTTP.Headers):
		return "", errors.New("a header has a character that no header can have")
	case u.Scheme == "http" && !c.Key.IsZero() && !c.HTTP.AllowHTTP && !loopback(u.Hostname()):
		return "", fmt.Errorf("the key would go to %q unencrypted: use https, or allow http for this provider", u.Host)
	}
	return strings.TrimSuffix(u.String(), "/"), nil
}

// sendable reports whether headers can go over the wire.
func sendable(headers map[string]string) bool {
	for name, value := range headers {
		bad := func(r rune) bool { return r < ' ' || r > '~' }
		if name == "" || strings.ContainsFunc(name+value, bad) || strings.ContainsAny(name, " :()<>@,;\\\"/[]?={}") {
			return false
		}
	}
	return true
}

// loopback reports whether a host is this machine.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// redirectError is a redirect that was not followed.
type redirectError struct{ to string }

// Error says where the redirect led.
func (e *redirectError) Error() string { return "the server sends the request to " + e.to }

// sameHost follows a redirect only if it stays on the host and repeats the
// request: net/http would take a key in a header of its own, and the prompt, along.
func sameHost(req *http.Request, via []*http.Request) error {
	first := via[0]
	if len(via) > maxRedirects || req.URL.Scheme != first.URL.Scheme || req.URL.Host != first.URL.Host || req.Method != first.Method {
		return &redirectError{to: req.Method + " " + req.URL.Scheme + "://" + req.URL.Host + req.URL.Path}
	}
	return nil
}

// Close closes the connections that wait for another call.
func (c *Client) Close() error {
	c.client.CloseIdleConnections()
	return nil
}

// Call is one exchange with the server.
type Call struct {
	Method string
	Path   string // is added to the base URL; may have a query
	Body   []byte // JSON, nil for none
	Model  string // for errors
	// Input estimates the tokens of the prompt, which a broken reply has cost;
	// nil if the call costs nothing.
	Input func() int64
	// Read decodes the body of a good reply. It is called once an attempt, and
	// begins anew each time. Its errors are *llm.Error.
	Read func(body io.Reader) error
	// Given reports whether Read gave a part of the reply away, nil if it never
	// does. What was given cannot be taken back, so there is no further attempt.
	Given func() bool
}

// send makes one attempt. It returns an *llm.Error, or the cause of the
// context's end, and whether the server says that it should, or should not, be repeated.
func (c *Client) send(ctx context.Context, call Call) (hint string, err error) {
	attempt, cancel := context.WithTimeout(ctx, c.HTTP.Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(attempt, call.Method, c.base+call.Path, bytes.NewReader(call.Body))
	if err != nil {
		return "", &llm.Error{Kind: llm.ErrMisconfigured, Err: err}
	}
	c.setHeaders(req, call)
	response, err := c.client.Do(req)
	if err != nil {
		return "", c.transportError(ctx, attempt, err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return response.Header.Get("X-Should-Retry"), c.statusError(ctx, response)
	}
	body := &bounded{r: response.Body, left: c.HTTP.MaxResponse}
	err = call.Read(body)
	switch {
	case errors.Is(body.err, errTooLarge):
		err = withUsage(&llm.Error{Kind: llm.ErrTooLarge, Message: fmt.Sprintf("more than %d bytes", c.HTTP.MaxResponse)}, err)
	case body.err != nil:
		err = withUsage(c.transportError(ctx, attempt, body.err), err)
	case err == nil:
		drain(response.Body, cancel)
	}
	return "", charged(err, call, body.left < c.HTTP.MaxResponse)
}

// charged notes that a reply that had begun and then broke has cost its prompt,
// if not more.
func charged(err error, call Call, begun bool) error {
	var failure *llm.Error
	if !begun || call.Input == nil || !errors.As(err, &failure) || failure.Usage != (llm.Usage{}) {
		return err
	}
	if failure.Kind == llm.ErrCut || failure.Kind == llm.ErrTimeout || failure.Kind == llm.ErrTooLarge {
		failure.Usage = llm.Usage{InputTokens: call.Input(), Estimated: true}
	}
	return err
}

// setHeaders adds what every request carries.
func (c *Client) setHeaders(req *http.Request, call Call) {
	for name, value := range c.HTTP.Headers {
		req.Header.Set(name, value)
	}
	req.Header.Set("User-Agent", "rlm")
	if call.Body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if !c.Key.IsZero() {
		req.Header.Set(c.KeyHeader, c.KeyPrefix+c.Key.Reveal())
	}
}

// errTooLarge is what a bounded body ends with.
var errTooLarge = errors.New("too large")

// bounded is a body that remembers how reading it failed, so that a decoder's
// own complaint about the missing rest does not hide the cause.
type bounded struct {
	r    io.Reader
	left int64
	err  error
}

// Read reads at most what is left.
func (b *bounded) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.r.Read(p)
	b.left -= int64(n)
	if b.left < 0 {
		n, err = n-1, errTooLarge
	}
	if err != nil && !errors.Is(err, io.EOF) {
		b.err = err
	}
	return n, err
}

// drainTime is how long a finished reply may keep its connection.
const drainTime = 100 * time.Millisecond

// drain reads what follows a finished reply, so that the connection can be used
// again. A server that goes on talking, or says nothing and stays, loses it.
func drain(body io.Reader, cancel func()) {
	timer := time.AfterFunc(drainTime, cancel)
	defer timer.Stop()
	_, _ = io.CopyN(io.Discard, body, maxHeaderBytes)
}

// withUsage carries the usage of a partial reply over to the error that is
// reported in place of the decoder's.
func withUsage(err, decoder error) error {
	var reported, inner *llm.Error
	if errors.As(err, &reported) && errors.As(decoder, &inner) {
		reported.Usage = inner.Usage
	}
	return err
}
