package httpclient

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/rlmhq/rlm/internal/text/texts"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/internal/kind"
)

// Call is one exchange with the server.
type Call struct {
	Method string
	// Path is appended to the base URL and may include a query. If it begins with "/..", it is
	// appended to the base URL without its last part, such as the version.
	Path  string
	Body  []byte // JSON, nil for none
	Model string // for errors
	// EstimateInput returns the tokens of the prompt, which must be paid for even if the reply
	// breaks off. It is nil if the call is free.
	EstimateInput func() int64
	// Read decodes the body of a successful reply. It is called once for each attempt and then
	// starts from the beginning. It returns *llm.Error. The body is an [Ender].
	Read func(body io.Reader) error
	// GiveUp reports whether a failed call must not be repeated, because another request is more
	// likely to succeed. It may be nil.
	GiveUp func(failure *llm.Error) bool
	// Restart is called before Read is called again; it may be nil.
	Restart func()
	// Once disables retries of the call.
	Once bool
	// Timeout bounds an attempt if it is shorter than the policy's timeout.
	Timeout time.Duration
}

// retryHint is the server's hint about repeating a request: "true", "false" or empty.
type retryHint string

// send makes one attempt. The error is an *llm.Error, or the cause of the context if the
// context ended.
func (c *Client) send(ctx context.Context, call Call) (retryHint, error) {
	attempt, cancel := context.WithTimeout(ctx, c.timeout(call))
	defer cancel()

	req, err := http.NewRequestWithContext(attempt,
		call.Method, c.locate(call.Path), bytes.NewReader(call.Body))
	if err != nil {
		return "", &llm.Error{Kind: kind.ErrMisconfigured, Err: err}
	}
	c.setHeaders(req, call)

	response, err := c.client.Do(req)
	if err != nil {
		return "", c.classifyTransportError(ctx, attempt, call, err)
	}
	defer response.Body.Close()
	c.contact.answered.Store(true)
	if response.StatusCode/100 != 2 {
		return retryHint(response.Header.Get("X-Should-Retry")), c.readStatusError(ctx, response)
	}

	body := &boundedReader{r: response.Body, left: c.options.HTTP.MaxResponse, leave: cancel}
	defer body.SetEnded(false)
	if err := c.readBody(ctx, attempt, call, body); err != nil {
		c.nameReply(err, response, body)
		return "", err
	}
	drain(response.Body, cancel)
	return "", nil
}

// timeout returns the time limit of an attempt.
func (c *Client) timeout(call Call) time.Duration {
	if call.Timeout > 0 {
		return min(call.Timeout, c.options.HTTP.Timeout)
	}
	return c.options.HTTP.Timeout
}

// locate returns the URL of a path.
func (c *Client) locate(path string) string {
	if rest, above := strings.CutPrefix(path, "/.."); above {
		return c.base[:strings.LastIndex(c.base, "/")] + rest
	}
	return c.base + path
}

// setHeaders adds the headers of every request.
func (c *Client) setHeaders(req *http.Request, call Call) {
	for name, value := range c.options.HTTP.Headers {
		req.Header.Set(name, value)
	}
	req.Header.Set("User-Agent", "rlm")
	if call.Body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if key := c.options.Key.Reveal(); key != "" {
		req.Header.Set(c.options.KeyHeader, c.options.KeyPrefix+key)
	}
}

// readBody reads a successful reply. If the body itself failed, its error replaces the decoder's
// error about the missing rest and takes over its usage.
func (c *Client) readBody(ctx, attempt context.Context, call Call, body *boundedReader) error {
	limit := c.options.HTTP.MaxResponse
	err := call.Read(body)
	switch {
	case errors.Is(body.err, errTooLarge):
		tooLarge := &llm.Error{
			Kind:    kind.ErrTooLarge,
			Message: fmt.Sprintf("more than %d bytes", limit),
		}
		err = copyUsage(tooLarge, err)
	case body.err != nil:
		err = copyUsage(c.classifyTransportError(ctx, attempt, call, body.err), err)
	case body.size == 0 && isOneOf(err, kind.ErrCut):
		err = &llm.Error{Kind: kind.ErrMalformed} // the body is complete, so the server is not away
	}

	if begun := body.left < limit; begun {
		chargePrompt(err, call)
	}
	return err
}

// copyUsage copies the usage of a partial reply from one error to another.
func copyUsage(to, from error) error {
	var target, source *llm.Error
	if errors.As(to, &target) && errors.As(from, &source) {
		target.Usage = source.Usage
	}
	return to
}

// chargePrompt adds the cost of the prompt to the error of a reply that broke off or cannot be
// read.
func chargePrompt(err error, call Call) {
	var failure *llm.Error
	if call.EstimateInput == nil || !errors.As(err, &failure) || failure.Usage != (llm.Usage{}) {
		return
	}
	if isOneOf(failure.Kind, kind.ErrCut, kind.ErrTimeout, kind.ErrTooLarge, kind.ErrMalformed) {
		failure.Usage = llm.Usage{InputTokens: call.EstimateInput(), Estimated: true}
	}
}

// nameReply adds a description of the received data to the error of an unreadable or truncated
// reply.
func (c *Client) nameReply(err error, response *http.Response, body *boundedReader) {
	var failure *llm.Error
	if !errors.As(err, &failure) || !isOneOf(failure.Kind, kind.ErrCut, kind.ErrMalformed) {
		return
	}

	failure.Status = response.StatusCode
	came := c.describeReply(response, body.begin, body.size)
	if failure.Message != "" {
		came = failure.Message + ": " + came
	}
	failure.Message = came
}

// describeReply describes the data that a server sent.
func (c *Client) describeReply(response *http.Response, begin []byte, size int64) string {
	host := c.host.Host
	if size == 0 {
		return host + " sent an empty reply"
	}

	media, _, _ := strings.Cut(response.Header.Get("Content-Type"), ";")
	text := strings.Join(strings.Fields(strings.ToValidUTF8(string(begin), "")), " ")
	text = texts.Truncate(c.clean(text), shownBegin)
	return fmt.Sprintf("%s sent %d bytes of %.100s, which begin with %q", host, size,
		cmp.Or(strings.TrimSpace(media), "no type"), text)
}

// maxBegin is how much of the beginning of a reply is kept, in bytes. shownBegin is how much of it
// an error shows, in characters. It is smaller, so that no part of a key is shown.
const (
	maxBegin   = 1_000
	shownBegin = 120
)

var errTooLarge = errors.New("too large")

// Ender is a body whose reader may detect that the reply is complete before the body ends.
type Ender interface {
	// SetEnded notes whether the reply is complete. Later data, such as the usage, may then be
	// missing or late: the body ends if the connection breaks, or if nothing arrives for a while.
	SetEnded(ended bool)
}

// lastWords is the time for which a server may be silent after a complete reply.
const lastWords = 3 * time.Second

// SetEnded implements [Ender].
func (b *boundedReader) SetEnded(ended bool) {
	b.ended = ended
	switch {
	case !ended && b.silence != nil:
		b.silence.Stop()
	case ended && b.silence != nil:
		b.silence.Reset(lastWords)
	case ended:
		b.silence = time.AfterFunc(lastWords, b.leave)
	}
}

// boundedReader reads a body up to a limit. It keeps the error, because a decoder would only report
// the missing rest.
type boundedReader struct {
	r     io.Reader
	left  int64
	err   error
	size  int64  // bytes read
	begin []byte // the first bytes read

	ended   bool // see Ender
	silence *time.Timer
	leave   func()
}

// Read reads at most the remaining bytes.
func (b *boundedReader) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}

	n, err := b.r.Read(p)
	b.left -= int64(n)
	b.size += int64(n)
	if missing := maxBegin - len(b.begin); missing > 0 {
		b.begin = append(b.begin, p[:min(n, missing)]...)
	}
	if b.left < 0 {
		n, err = n-1, errTooLarge
	}
	if err != nil && b.ended && b.left >= 0 {
		return n, io.EOF
	}
	if err != nil && !errors.Is(err, io.EOF) {
		b.err = err
	}
	return n, err
}

// drainTime is the time for which a finished reply may occupy its connection.
const drainTime = 100 * time.Millisecond

// drain reads the rest of a finished reply, so that the connection can be reused. If the server
// continues to send, or is silent without closing, the connection is closed.
func drain(body io.Reader, cancel func()) {
	timer := time.AfterFunc(drainTime, cancel)
	defer timer.Stop()

	_, _ = io.CopyN(io.Discard, body, maxHeaderBytes)
}
