package httpclient

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
	"unicode"

	"github.com/rlmhq/rlm/internal/text/lazyregexp"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/internal/kind"
)

const (
	maxErrorBody = 64 << 10 // bytes read from a failed reply
	maxMessage   = 500      // characters kept of a server's message
)

// clean makes a server's message fit for display: no key, no control characters, bounded length.
// Control characters are removed first, because one in the middle of a key would hide the key.
func (c *Client) clean(text string) string {
	text = strings.Map(printable, text)
	if key := c.options.Key.Reveal(); key != "" {
		text = strings.ReplaceAll(text, key, c.options.Key.String())
	}
	if runes := []rune(text); len(runes) > maxMessage {
		return string(runes[:maxMessage]) + "…"
	}
	return strings.TrimSpace(text)
}

// printable returns a character fit for display, or -1 to remove it.
func printable(r rune) rune {
	switch {
	case unicode.IsSpace(r):
		return ' '
	case !unicode.IsPrint(r):
		return -1
	}
	return r
}

// cleanError is an error whose message is fit for display. Its cause can be tested for, but the
// cause's own message is not exposed.
type cleanError struct {
	text string
	err  error
}

// Error returns the message.
func (e cleanError) Error() string { return e.text }

// Is reports whether the cause is the target.
func (e cleanError) Is(target error) bool { return errors.Is(e.err, target) }

// classifyTransportError turns an error of net/http into an *llm.Error, or into the context's cause
// if the context ended the call.
func (c *Client) classifyTransportError(
	ctx, attempt context.Context, call Call, err error,
) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}

	var (
		redirect    *redirectError
		certificate *tls.CertificateVerificationError
		dial        *net.OpError
		timeout     net.Error
	)
	switch {
	case attempt.Err() != nil:
		return &llm.Error{Kind: kind.ErrTimeout, Message: "waited " + c.timeout(call).String()}
	case errors.As(err, &redirect):
		return &llm.Error{Kind: kind.ErrRedirect, Message: redirect.Error()}
	case errors.As(err, &certificate):
		return &llm.Error{Kind: kind.ErrMisconfigured, Err: err}
	case errors.As(err, &dial) && dial.Op == "dial":
		return &llm.Error{Kind: kind.ErrUnreachable, Message: c.options.Advice, Err: err}
	case errors.As(err, &timeout) && timeout.Timeout():
		return &llm.Error{Kind: kind.ErrTimeout, Err: err}
	}
	return &llm.Error{Kind: kind.ErrCut, Err: err}
}

// readStatusError turns a reply whose status is not 200 into an error.
func (c *Client) readStatusError(ctx context.Context, response *http.Response) error {
	text, err := io.ReadAll(io.LimitReader(response.Body, maxErrorBody))
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}

	failure := ParseFailure(text)
	failure.Status = response.StatusCode
	failure.RetryAfter = parseRetryAfter(response.Header, time.Now())
	failure.Kind = classifyStatus(response.StatusCode, failure.Kind, failure.Message)
	isPage := strings.Contains(response.Header.Get("Content-Type"), "html") || bytes.HasPrefix(text, []byte("<"))
	switch {
	case failure.Message != "":
	case isPage || len(text) == 0:
		failure.Message = c.describeReply(response, text[:min(len(text), maxBegin)], int64(len(text)))
	default:
		failure.Message = string(text)
	}
	if advice := c.adviseVersion(response); advice != "" {
		failure.Message += ": " + advice
	}
	return failure
}

// versioned matches the path of an address with the version of the server's interface.
var versioned = lazyregexp.New(`/v\d`)

// adviseVersion names the address of a call if the server has nothing at it and the address lacks a
// version, since most servers have OpenAI's interface at /v1.
func (c *Client) adviseVersion(response *http.Response) string {
	if response.StatusCode != http.StatusNotFound || response.Request == nil ||
		versioned.MatchString(response.Request.URL.Path) {
		return ""
	}
	return "nothing is at " + c.host.Scheme + "://" + c.host.Host + response.Request.URL.Path +
		"; does the address of the server end with /v1?"
}

// description is a server's description of an error.
type description struct {
	Message string          `json:"message"`
	Type    string          `json:"type"`
	Code    json.RawMessage `json:"code"` // a string or a number
	// Metadata is sent by OpenRouter. Its member raw holds the message of the upstream server, in
	// any form.
	Metadata json.RawMessage `json:"metadata"`
}

// words returns the description as one string.
func (d description) words() string {
	var behind struct {
		Raw json.RawMessage `json:"raw"`
	}
	if json.Unmarshal(d.Metadata, &behind) != nil {
		return d.Message
	}

	raw := string(behind.Raw)
	var text string
	if json.Unmarshal(behind.Raw, &text) == nil {
		raw = text
	}
	if raw == "" {
		return d.Message
	}
	return strings.TrimPrefix(d.Message+": "+raw, ": ")
}

// ParseFailure reads the description of an error from the body of a failed reply or from a stream.
// The kind is derived only from the description; if that reveals nothing, the kind is "server
// error".
func ParseFailure(text []byte) *llm.Error {
	var list [1]json.RawMessage // Gemini puts the description into a list
	if json.Unmarshal(text, &list) == nil {
		text = list[0]
	}
	var outer struct {
		description
		Error  json.RawMessage `json:"error"` // a description or a string
		Detail string          `json:"detail"`
	}
	if json.Unmarshal(text, &outer) != nil {
		return &llm.Error{Kind: kind.ErrServer}
	}

	found := outer.description
	var inner description
	var words string
	if json.Unmarshal(outer.Error, &inner) == nil {
		found = inner
	} else if json.Unmarshal(outer.Error, &words) == nil {
		found.Message = words
	}
	if found.Message == "" {
		found.Message = outer.Detail
	}

	var code string
	if json.Unmarshal(found.Code, &code) != nil {
		code = string(found.Code)
	}
	return &llm.Error{
		Kind:    classifyWords(found.Type+" "+code, found.words()),
		Message: found.words(),
	}
}

// classifyStatus returns the kind that a status indicates. If the status is vague, the kind that
// the server's words indicate decides.
func classifyStatus(status int, worded error, message string) error {
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return kind.ErrAuth
	case status == http.StatusPaymentRequired:
		return kind.ErrQuota
	case status == http.StatusRequestTimeout:
		return kind.ErrTimeout
	case status == http.StatusTooManyRequests && isTooLargeForRate(message):
		return kind.ErrContextLength
	case status == http.StatusTooManyRequests && !errors.Is(worded, kind.ErrQuota):
		return kind.ErrRateLimited
	case errors.Is(worded, kind.ErrContextLength):
		return worded // some servers report this with status 500
	case status == http.StatusNotImplemented:
		return kind.ErrBadRequest // the function will not appear later either
	case status == http.StatusConflict, status >= http.StatusInternalServerError:
		return kind.ErrServer
	case status == http.StatusRequestEntityTooLarge:
		return kind.ErrContextLength
	case status == http.StatusNotFound && namesModel(worded, message):
		return kind.ErrUnknownModel
	case isOneOf(worded, kind.ErrServer, kind.ErrBadRequest) && isAboutLength(message):
		return kind.ErrContextLength
	case errors.Is(worded, kind.ErrServer):
		return kind.ErrBadRequest
	}
	return worded
}

// namesModel reports whether a server reports that it does not have the model.
func namesModel(worded error, message string) bool {
	return errors.Is(worded, kind.ErrUnknownModel) ||
		strings.Contains(strings.ToLower(message), "model")
}
