// Package wire contains the common parts of OpenAI's and Anthropic's wire protocols: routes with
// scopes, bodies in JSON, and answers that arrive in pieces.
package wire

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strconv"

	"github.com/rlmhq/rlm/internal/snippet/hostcall"
	"github.com/rlmhq/rlm/internal/text/problem"
	"github.com/rlmhq/rlm/server/internal/access"
	"github.com/rlmhq/rlm/server/internal/failures"
)

// Handler returns the handler of a route that requires a scope. If serve returns an error, fail
// sends it in the format of the wire; so serve must not return one after it has begun a response.
func Handler(
	scope access.Scope, serve func(http.ResponseWriter, *http.Request) error, log *slog.Logger,
	fail func(w http.ResponseWriter, r *http.Request, err error),
) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		err := access.Need(r.Context(), scope)
		if err == nil {
			err = serve(w, r)
		}
		isGone := errors.Is(err, context.Canceled) && r.Context().Err() != nil
		if err == nil || isGone {
			return
		}

		if failures.Of(err).IsOurs() {
			log.Error("a request failed", "path", r.URL.Path, "error", err)
		}
		fail(w, r, err)
	}
}

// SetErrorHeader sets the headers that belong to an error. They tell the clients of both vendors to
// retry only if a retry can help, because the server has already repeated failed calls of a model.
func SetErrorHeader(h http.Header, e *problem.Error) {
	e.SetHeader(h)
	if e.RetryAfter == 0 {
		h.Set("X-Should-Retry", "false")
	}
}

// WriteJSON sends a value as the whole response.
func WriteJSON(w http.ResponseWriter, status int, value any) {
	body, err := Marshal(value)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"error":{"message":"the server failed"}}`)
	}

	body = append(body, '\n')
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // fails if the client has gone away
}

// Marshal encodes a value without escaping HTML characters.
func Marshal(value any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), err
}

// Bounds on the decoded values of a body, because each message, part of a message or tool may
// become a struct. Deeper values stay encoded.
const (
	maxValues   = 200_000
	valuesDepth = 5
)

// ReadJSON decodes the body of a request. It ignores unknown members, because clients may send new
// ones at any time.
func ReadJSON(r *http.Request, into any) error { return ReadDeepJSON(r, into, valuesDepth) }

// ReadDeepJSON is like ReadJSON, for a body whose values are decoded down to the given depth.
func ReadDeepJSON(r *http.Request, into any, depth int) error {
	body, err := io.ReadAll(r.Body) // the gate bounds the size
	if err != nil {
		return err
	}

	if hostcall.CountValues(body, depth) > maxValues {
		return problem.New(http.StatusRequestEntityTooLarge, "body_too_large",
			"the body has too many values, more than %d: send fewer messages, or a file", maxValues)
	}
	return Decode(body, into)
}

// Decode decodes a part of a body. The error is for the client.
func Decode(body []byte, into any) error {
	err := json.Unmarshal(body, into)
	var wrong *json.UnmarshalTypeError
	if errors.As(err, &wrong) {
		return problem.Bad(wrong.Field, "%s is a %s, which it cannot be", wrong.Field, wrong.Value)
	}

	var known *problem.Error
	if err != nil && !errors.As(err, &known) {
		return problem.Bad("", "the body is not JSON: %v", err)
	}
	return err
}
