package httpclient

import (
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

	"github.com/rlmhq/rlm/repl/llm"
)

// maxErrorBody is how many bytes of a failed reply are read.
const maxErrorBody = 64 << 10

// maxMessage is how many characters of a server's words are kept.
const maxMessage = 500

// clean makes a server's words fit to be shown: no key, no control characters,
// not too long.
func (c *Client) clean(text string) string {
	text = c.Key.Remove(strings.Map(func(r rune) rune { // first, or a key with a character in it would pass
		switch {
		case unicode.IsSpace(r):
			return ' '
		case !unicode.IsPrint(r):
			return -1
		}
		return r
	}, text))
	if kept := []rune(text); len(kept) > maxMessage {
		return string(kept[:maxMessage]) + "…"
	}
	return strings.TrimSpace(text)
}

// cleanError is an error whose text may be shown. Causes below can be tested
// for, but what they print does not come through.
type cleanError struct {
	text string
	err  error
}

// Error returns the text.
func (e cleanError) Error() string { return e.text }

// Is reports whether the cause is the target.
func (e cleanError) Is(target error) bool { return errors.Is(e.err, target) }

// transportError turns an error of net/http into one of this project.
func (c *Client) transportError(ctx, attempt context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	var redirect *redirectError
	var dial *net.OpError
	var certificate *tls.CertificateVerificationError
	var timeout net.Error
	switch {
	case attempt.Err() != nil:
		return &llm.Error{Kind: llm.ErrTimeout, Message: "waited " + c.HTTP.Timeout.String()}
	case errors.As(err, &redirect):
		return &llm.Error{Kind: llm.ErrRedirect, Message: redirect.Error()}
	case errors.As(err, &certificate):
		return &llm.Error{Kind: llm.ErrMisconfigured, Err: err}
	case errors.As(err, &dial) && dial.Op == "dial":
		return &llm.Error{Kind: llm.ErrUnreachable, Err: err}
	case errors.As(err, &timeout) && timeout.Timeout():
		return &llm.Error{Kind: llm.ErrTimeout, Err: err}
	}
	return &llm.Error{Kind: llm.ErrCut, Err: err}
}

// statusError turns a reply that is not 200 into an error.
func (c *Client) statusError(ctx context.Context, response *http.Response) error {
	text, err := io.ReadAll(io.LimitReader(response.Body, maxErrorBody))
	if cause := context.Cause(ctx); err != nil && cause != nil {
		return cause
	}
	failure := Failure(text)
	failure.Status = response.StatusCode
	failure.RetryAfter = retryAfter(response.Header, time.Now())
	failure.Kind = kindOf(response.StatusCode, failure.Kind, failure.Message)
	if failure.Message == "" {
		failure.Message = string(text)
	}
	return failure
}

// Failure reads the description of an error as the servers send it, in the body
// of a failed reply or within a stream. Its kind is what the description alone
// gives away, [llm.ErrServer] if that is nothing.
func Failure(text []byte) *llm.Error {
	type description struct {
		Message string          `json:"message"`
		Type    string          `json:"type"`
		Code    json.RawMessage `json:"code"`
	}
	var outer struct {
		description
		Error  json.RawMessage `json:"error"`
		Detail string          `json:"detail"`
	}
	if json.Unmarshal(text, &outer) != nil {
		return &llm.Error{Kind: llm.ErrServer}
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
	return &llm.Error{Kind: kindOfWords(found.Type+" "+code, found.Message), Message: found.Message}
}

// kindOfWords returns the kind that a server's codes and words stand for.
func kindOfWords(codes, message string) llm.KindError {
	codes, message = strings.ToLower(codes), strings.ToLower(message)
	for _, sign := range []struct {
		kind  llm.KindError
		codes []string
		words []string
	}{
		{llm.ErrQuota, []string{"insufficient_quota", "billing"}, []string{"credit balance is too low", "insufficient credits"}},
		{
			llm.ErrContextLength,
			[]string{"context_length_exceeded", "request_too_large"},
			[]string{"maximum context length", "prompt is too long", "context window", "exceed context limit"},
		},
		{llm.ErrRefused, []string{"content_filter", "content_policy"}, []string{"content management policy"}},
		{llm.ErrUnknownModel, []string{"model_not_found"}, nil},
		{llm.ErrRateLimited, []string{"rate_limit", "429"}, nil},
		{llm.ErrAuth, []string{"authentication_error", "permission_error", "invalid_api_key"}, nil},
		{llm.ErrServer, []string{"overloaded", "api_error", "server_error", "timeout"}, nil},
		{llm.ErrBadRequest, []string{"invalid_request", "bad_request", "badrequest"}, nil},
	} {
		if containsAny(codes, sign.codes) || containsAny(message, sign.words) {
			return sign.kind
		}
	}
	return llm.ErrServer
}

// containsAny reports whether a text contains one of some words.
func containsAny(text string, words []string) bool {
	for _, word := range words {
		if strings.Contains(text, word) {
			return true
		}
	}
	return false
}

// kindOf returns the kind of a status. Where the status is vague the server's
// words, which gave the kind worded, decide.
func kindOf(status int, worded llm.KindError, message string) llm.KindError {
	switch {
	case status == http.StatusUnauthorized, status == http.StatusForbidden:
		return llm.ErrAuth
	case status == http.StatusPaymentRequired:
		return llm.ErrQuota
	case status == http.StatusRequestTimeout:
		return llm.ErrTimeout
	case status == http.StatusTooManyRequests && worded != llm.ErrQuota:
		return llm.ErrRateLimited
	case status == http.StatusConflict, status >= http.StatusInternalServerError:
		return llm.ErrServer
	case status == http.StatusRequestEntityTooLarge:
		return llm.ErrContextLength
	case status == http.StatusNotFound && (worded == llm.ErrUnknownModel || strings.Contains(strings.ToLower(message), "model")):
		return llm.ErrUnknownModel
	case worded == llm.ErrServer:
		return llm.ErrBadRequest
	}
	return worded
}
