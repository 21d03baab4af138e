// Package problem defines the errors that a server sends to its clients: a status, a code for
// programs, and a sentence that tells the client what to change.
package problem

import (
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/rlmhq/rlm/tiers"
)

// Error is an error for a client. All of its fields are sent.
type Error struct {
	Status int
	// Code is a word for programs, such as "queue_full".
	Code string
	// Detail is a sentence about the error that tells the client what to change.
	Detail string
	// Param names the invalid member of the request, or is empty.
	Param string
	// RetryAfter is the time after which the same request may succeed, or 0 if it will not.
	RetryAfter time.Duration
	// Effects reports whether the snippet of the request has run; it is empty for a request without
	// a snippet.
	Effects tiers.Effects
}

// Error returns the detail.
func (e *Error) Error() string { return e.Detail }

// New returns an error with a formatted detail.
func New(status int, code, format string, args ...any) *Error {
	return &Error{Status: status, Code: code, Detail: fmt.Sprintf(format, args...)}
}

// Bad returns an error about a member of the request.
func Bad(param, format string, args ...any) *Error {
	e := New(http.StatusBadRequest, "invalid_request", format, args...)
	e.Param = param
	return e
}

// NotFound reports that the caller has no such object. It does not reveal whether other callers
// have it.
func NotFound(what, id string) *Error {
	return New(http.StatusNotFound, "not_found", "there is no %s %.80q", what, id)
}

// Later returns an error for a request that may succeed after a while.
func Later(status int, code string, after time.Duration, format string, args ...any) *Error {
	e := New(status, code, format, args...)
	e.RetryAfter = after
	return e
}

// IsOurs reports whether the full reason must be logged, because the client receives only part of
// it.
func (e *Error) IsOurs() bool {
	return e.Status == http.StatusInternalServerError || e.Status == http.StatusInsufficientStorage
}

// SetHeader sets the headers that belong to the error.
func (e *Error) SetHeader(h http.Header) {
	if e.RetryAfter > 0 {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(e.RetryAfter.Seconds()))))
	}
	if e.Status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", `Bearer realm="rlm"`)
	}
}

// Document is an error in the format of RFC 9457.
type Document struct {
	Type   string `json:"type"`
	Title  string `json:"title"`
	Status int    `json:"status"`
	Detail string `json:"detail"`
	Code   string `json:"code"`
	Param  string `json:"param,omitempty"`
	// Effects reports whether the snippet of the request has run.
	Effects tiers.Effects `json:"effects,omitempty"`
}

// Document returns the error as a document of RFC 9457.
func (e *Error) Document() Document {
	return Document{
		Type: "about:blank", Title: http.StatusText(e.Status), Status: e.Status, Detail: e.Detail,
		Code: e.Code, Param: e.Param, Effects: e.Effects,
	}
}

// Write sends the error in the format of RFC 9457.
func (e *Error) Write(w http.ResponseWriter) {
	body, err := json.Marshal(e.Document())
	if err != nil {
		body = []byte("{}") // strings and numbers can always be encoded
	}
	body = append(body, '\n')
	e.SetHeader(w.Header())
	w.Header().Set("Content-Type", "application/problem+json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(e.Status)
	_, _ = w.Write(body) // the client may have disconnected
}
