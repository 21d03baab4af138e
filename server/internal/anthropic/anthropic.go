// Package anthropic implements Anthropic's wire protocol, so that its clients can use a server
// unchanged. It covers messages, whole or as a stream, and the count of their tokens.
//
// It converts a message request to a chat completion of package openai, which answers it directly
// or by a run. So model names, bounds, budgets and client functions work in the same way on all
// wires.
package anthropic

import (
	"log/slog"
	"net/http"

	"github.com/rlmhq/rlm/internal/text/problem"
	"github.com/rlmhq/rlm/server/internal/access"
	"github.com/rlmhq/rlm/server/internal/failures"
	"github.com/rlmhq/rlm/server/internal/gate"
	"github.com/rlmhq/rlm/server/internal/openai"
	"github.com/rlmhq/rlm/server/internal/wire"
)

// Options configure the wire.
type Options struct {
	Chat *openai.API // answers
	Log  *slog.Logger
}

// API serves the wire.
type API struct{ Options }

// Path is the beginning of the wire's paths.
const Path = "/v1/messages"

// New adds the wire to a mux.
func New(o Options, mux gate.Mux) *API {
	a := &API{o}
	mux.HandleFunc("POST "+Path, wire.Handler(access.Run, a.createMessage, o.Log, WriteError))
	mux.HandleFunc("POST "+Path+"/count_tokens", wire.Handler(access.Run, a.countTokens, o.Log, WriteError))
	return a
}

// wireError is an error in the format of Anthropic's clients.
type wireError struct {
	Type  string `json:"type"`
	Error struct {
		Type    string `json:"type"`
		Message string `json:"message"`
	} `json:"error"`
	RequestID string `json:"request_id"`
}

func describeError(r *http.Request, e *problem.Error) wireError {
	described := wireError{Type: "error", RequestID: gate.ID(r.Context())}
	described.Error.Type, described.Error.Message = kindOf(e.Status), e.Detail
	return described
}

// kindOf returns Anthropic's error type for an HTTP status.
func kindOf(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "authentication_error"
	case http.StatusForbidden:
		return "permission_error"
	case http.StatusNotFound:
		return "not_found_error"
	case http.StatusRequestEntityTooLarge:
		return "request_too_large"
	case http.StatusTooManyRequests:
		return "rate_limit_error"
	case http.StatusServiceUnavailable:
		return "overloaded_error"
	case http.StatusGatewayTimeout:
		return "timeout_error"
	}
	if status >= http.StatusInternalServerError {
		return "api_error"
	}
	return "invalid_request_error"
}

// WriteError sends an error in the format of Anthropic's clients.
func WriteError(w http.ResponseWriter, r *http.Request, err error) {
	e := failures.Of(err)
	wire.SetErrorHeader(w.Header(), e)
	w.Header().Set("Request-Id", gate.ID(r.Context()))
	wire.WriteJSON(w, e.Status, describeError(r, e))
}

// countTokens answers POST /v1/messages/count_tokens.
func (a *API) countTokens(w http.ResponseWriter, r *http.Request) error {
	q, err := a.read(r)
	if err != nil {
		return err
	}
	n, err := q.CountTokens(r.Context())
	if err != nil {
		return err
	}

	wire.WriteJSON(w, http.StatusOK, map[string]int64{"input_tokens": n})
	return nil
}
