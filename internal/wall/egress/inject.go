package egress

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/internal/wall/egress/endpoints"
)

// minHidden is the length of the shortest value to hide, in bytes. A shorter value may occur
// anywhere.
const minHidden = 4

// credentials are the headers that the proxy adds to requests to an endpoint, and hides from
// guests.
//
// The guest requests an http:// address, and the proxy connects with TLS. The guest and the proxy
// thus do not need each other's certificates, and the request never leaves the machine unencrypted.
type credentials struct {
	headers http.Header
	hidden  [][]byte // values, longest first
}

// newCredentials parses headers by HOST:PORT.
func newCredentials(given map[string]http.Header) (map[endpoints.Endpoint]*credentials, error) {
	all := map[endpoints.Endpoint]*credentials{}
	for text, headers := range given {
		list, err := endpoints.ParseAll([]string{text})
		if err != nil {
			return nil, err
		}

		one := &credentials{headers: headers}
		for _, values := range headers {
			for _, value := range values {
				one.hide(value)
				if _, token, ok := strings.Cut(value, " "); ok { // for example after "Bearer"
					one.hide(token)
				}
			}
		}
		slices.SortFunc(one.hidden, func(a, b []byte) int { return len(b) - len(a) })
		all[list[0]] = one
	}
	return all, nil
}

func (c *credentials) hide(value string) {
	if len(value) >= minHidden {
		c.hidden = append(c.hidden, []byte(value))
	}
}

// credentialsFor returns the credentials for an http:// address, and the endpoint to which the
// proxy connects with TLS. Without a port, or with the port of http, the endpoint's port is 443.
func (p *Proxy) credentialsFor(u *url.URL) (endpoints.Endpoint, *credentials) {
	port := u.Port()
	if port == "" || port == "80" {
		port = "443"
	}

	e, err := endpoints.Parse(u.Hostname() + ":" + port)
	if err != nil {
		return endpoints.Endpoint{}, nil
	}
	return e, p.credentials[e]
}

// credentialsOf returns the credentials for HOST:PORT.
func (p *Proxy) credentialsOf(text string) *credentials {
	e, err := endpoints.Parse(text)
	if err != nil {
		return nil
	}
	return p.credentials[e]
}

// addTo adds the headers to a request, which the proxy sends to the endpoint with TLS.
func (c *credentials) addTo(r *http.Request, e endpoints.Endpoint) {
	r.URL.Scheme, r.URL.Host, r.Host = "https", e.String(), strings.TrimSuffix(e.String(), ":443")
	for name, values := range c.headers {
		r.Header[http.CanonicalHeaderKey(name)] = slices.Clone(values)
	}
	r.Header.Set("Accept-Encoding", "identity") // in a compressed body, credentials could not be hidden
}

// hideIn hides the credentials wherever a server echoes them.
func (c *credentials) hideIn(r *http.Response) {
	c.hideHeaders(r.Header)
	r.Body = &hiding{ReadCloser: r.Body, credentials: c, end: func() { c.hideHeaders(r.Trailer) }}
}

func (c *credentials) hideHeaders(headers http.Header) {
	for _, values := range headers {
		for i, value := range values {
			text := []byte(value)
			c.mask(text)
			values[i] = string(text)
		}
	}
}

// mask overwrites the credentials with asterisks, so that the length of text stays the same.
func (c *credentials) mask(text []byte) {
	for _, one := range c.hidden {
		for at := 0; ; at += len(one) {
			next := bytes.Index(text[at:], one)
			if next < 0 {
				break
			}

			at += next
			copy(text[at:], bytes.Repeat([]byte("*"), len(one)))
		}
	}
}

// begun returns how many bytes at the end of text may be the start of a credential.
func (c *credentials) begun(text []byte) (most int) {
	for _, one := range c.hidden {
		for n := min(len(one)-1, len(text)); n > most; n-- {
			if bytes.HasSuffix(text, one[:n]) {
				most = n
				break
			}
		}
	}
	return most
}

// hiding passes a body on without the credentials.
type hiding struct {
	io.ReadCloser
	*credentials

	end   func() // called by Close, after reading the trailers
	ahead []byte // read, but not passed on yet
	clean int    // how many bytes of ahead may be passed on
	err   error  // the error after these bytes
}

// Read implements [io.Reader].
func (h *hiding) Read(p []byte) (int, error) {
	for h.clean == 0 {
		if h.err != nil {
			return 0, h.err
		}
		h.fill()
	}

	n := copy(p, h.ahead[:h.clean])
	h.ahead = append(h.ahead[:0], h.ahead[n:]...)
	h.clean -= n
	return n, nil
}

// fill reads more bytes. It holds back a possible start of a credential until the next bytes
// arrive, and drops it if the body ends early.
func (h *hiding) fill() {
	h.ahead = slices.Grow(h.ahead, 32<<10)
	n, err := h.ReadCloser.Read(h.ahead[len(h.ahead):cap(h.ahead)])
	h.ahead = h.ahead[:len(h.ahead)+n]

	h.mask(h.ahead)
	h.clean = len(h.ahead)
	if h.err = err; !errors.Is(err, io.EOF) {
		h.clean -= h.begun(h.ahead)
	}
}

// Close implements [io.Closer].
func (h *hiding) Close() error {
	err := h.ReadCloser.Close()
	h.end()
	return err
}
