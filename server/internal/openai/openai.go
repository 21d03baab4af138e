// Package openai implements OpenAI's wire protocol, so that its clients can use a server
// unchanged: models, chat completions, responses and files. A profile is a model, rlm/NAME.
//
// The profile's root model answers a short conversation directly. A long message, a file or the
// tool code_interpreter turns it into a run: long texts become contexts, and the root's turns are
// items of a response.
package openai

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/rlmhq/rlm/internal/snippet/hostcall"
	"github.com/rlmhq/rlm/internal/text/problem"
	"github.com/rlmhq/rlm/server/internal/access"
	"github.com/rlmhq/rlm/server/internal/failures"
	"github.com/rlmhq/rlm/server/internal/files"
	"github.com/rlmhq/rlm/server/internal/gate"
	"github.com/rlmhq/rlm/server/internal/runs"
)

// Options configure the wire.
type Options struct {
	Runs  *runs.Manager
	Files *files.Files
	DB    *sql.DB
	// Long is the maximum size of a conversation that is answered directly, in bytes.
	Long int
	Log  *slog.Logger
}

// API serves the wire.
type API struct {
	Options
	begun   time.Time
	directs directs
}

// Routes returns the patterns of the wire, with the scope that each needs.
func (a *API) Routes() map[string]access.Scope {
	scopes := map[string]access.Scope{}
	for pattern, one := range a.routes() {
		scopes[pattern] = one.scope
	}
	return scopes
}

// routes are the handlers of the patterns.
func (a *API) routes() map[string]route {
	return map[string]route{
		"GET /v1/models":                     {access.Read, a.listModels},
		"GET /v1/models/{owner}/{name}":      {access.Read, a.getModel},
		"GET /v1/models/{name}":              {access.Read, a.getModel},
		"POST /v1/chat/completions":          {access.Run, a.completeChat},
		"POST /v1/responses":                 {access.Run, a.createResponse},
		"GET /v1/responses/{id}":             {access.Read, a.getResponse},
		"DELETE /v1/responses/{id}":          {access.Run, a.deleteResponse},
		"POST /v1/responses/{id}/cancel":     {access.Run, a.cancelResponse},
		"GET /v1/responses/{id}/input_items": {access.Read, a.listInput},
		"POST /v1/files":                     {access.Run, a.createFile},
		"GET /v1/files":                      {access.Read, a.listFiles},
		"GET /v1/files/{id}":                 {access.Read, a.getFile},
		"GET /v1/files/{id}/content":         {access.Read, a.readFile},
		"DELETE /v1/files/{id}":              {access.Run, a.deleteFile},
	}
}

// route is a handler with the scope that it needs. Its error is sent unless a response was.
type route struct {
	scope access.Scope
	serve func(w http.ResponseWriter, r *http.Request) error
}

// New adds the wire to a mux.
func New(o Options, mux gate.Mux) *API {
	a := &API{Options: o, begun: time.Now(), directs: directs{all: map[string]*direct{}}}
	for pattern, one := range a.routes() {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) {
			err := access.Need(r.Context(), one.scope)
			if err == nil {
				err = one.serve(w, r)
			}
			if err != nil {
				a.fail(w, r, err)
			}
		})
	}

	return a
}

// fail sends an error, and logs it if it is not the client's.
func (a *API) fail(w http.ResponseWriter, r *http.Request, err error) {
	if errors.Is(err, context.Canceled) && r.Context().Err() != nil {
		return // the client has gone away
	}
	if failures.Of(err).IsOurs() {
		a.Log.Error("a request failed", "path", r.URL.Path, "error", err)
	}
	WriteError(w, err)
}

// wireError is an error in the form that OpenAI's clients read.
type wireError struct {
	Message string  `json:"message"`
	Type    string  `json:"type"`
	Param   *string `json:"param"`
	Code    string  `json:"code"`
}

func describeError(e *problem.Error) map[string]wireError {
	kind := "invalid_request_error"
	switch {
	case e.Status == http.StatusTooManyRequests:
		kind = "rate_limit_error"
	case e.Status == http.StatusUnauthorized:
		kind = "authentication_error"
	case e.Status == http.StatusForbidden:
		kind = "permission_error"
	case e.Status >= http.StatusInternalServerError:
		kind = "server_error"
	}

	wire := wireError{Message: e.Detail, Type: kind, Code: e.Code}
	if e.Param != "" {
		wire.Param = &e.Param
	}
	return map[string]wireError{"error": wire}
}

// WriteError sends an error in the form that OpenAI's clients read. They retry a request only if
// that can help.
func WriteError(w http.ResponseWriter, err error) {
	e := failures.Of(err)
	e.SetHeader(w.Header())
	if e.RetryAfter == 0 && e.Status != http.StatusBadGateway {
		w.Header().Set("X-Should-Retry", "false")
	}
	writeJSON(w, e.Status, describeError(e))
}

func writeJSON(w http.ResponseWriter, status int, value any) {
	body, err := marshal(value)
	if err != nil {
		status, body = http.StatusInternalServerError, []byte(`{"error":{"message":"the server failed"}}`)
	}
	body = append(body, '\n')
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	_, _ = w.Write(body) // fails if the client has gone away
}

// marshal encodes a value without escaping HTML characters.
func marshal(value any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return bytes.TrimSuffix(b.Bytes(), []byte{'\n'}), err
}

// Bounds on what the decoder makes of a body: each message, part of a message or tool may become a
// struct. Deeper values stay encoded.
const (
	maxValues   = 200_000
	valuesDepth = 5
)

// readJSON decodes the body of a request. It ignores unknown members, because clients may send new
// ones at any time.
func readJSON(r *http.Request, into any) error {
	body, err := io.ReadAll(r.Body) // the gate bounds it
	if err != nil {
		return err
	}
	if hostcall.CountValues(body, valuesDepth) > maxValues {
		return problem.New(http.StatusRequestEntityTooLarge, "body_too_large",
			"the body has too many values, more than %d: send fewer messages, or a file", maxValues)
	}
	return decode(body, into)
}

func decode(body []byte, into any) error {
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

// model is an entry of the list of models.
type model struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`
}

const owner = "rlm"

func (a *API) describeModel(profile string) model {
	return model{ID: owner + "/" + profile, Object: "model", Created: a.begun.Unix(), OwnedBy: owner}
}

func (a *API) listModels(w http.ResponseWriter, _ *http.Request) error {
	all := []model{}
	for _, name := range a.Runs.Names() {
		all = append(all, a.describeModel(name))
	}
	writeJSON(w, http.StatusOK, map[string]any{"object": "list", "data": all})
	return nil
}

func (a *API) getModel(w http.ResponseWriter, r *http.Request) error {
	name, err := profileOf(r.PathValue("owner") + "/" + r.PathValue("name"))
	if err != nil {
		return err
	}

	profile, err := a.Runs.Profile(name)
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, a.describeModel(profile.Name))
	return nil
}

// profileOf returns the profile that a model's name refers to.
func profileOf(model string) (string, error) {
	name, is := strings.CutPrefix(strings.TrimPrefix(model, "/"), owner+"/")
	if !is || name == "" {
		e := problem.Bad("model", "there is no model %.80q: ask for rlm/%s, or see GET /v1/models",
			strings.Trim(model, "/"), runs.DefaultProfile)
		e.Status, e.Code = http.StatusNotFound, "model_not_found"
		return "", e
	}
	return name, nil
}

// chatUsage is the usage of an answer, under the names of chat completions.
type chatUsage struct {
	PromptTokens     int64 `json:"prompt_tokens"`
	CompletionTokens int64 `json:"completion_tokens"`
	TotalTokens      int64 `json:"total_tokens"`
}

// details are data that only this server provides.
type details struct {
	Run    string  `json:"run,omitempty"` // of the native API
	Status string  `json:"status,omitempty"`
	Turns  int     `json:"turns,omitempty"`
	Calls  int64   `json:"calls"`
	USD    float64 `json:"usd"`
	// ToolCalls counts the tool calls of snippets.
	ToolCalls int64 `json:"tool_calls,omitempty"`
}

// answered is the answer of a run, or a direct answer.
type answered struct {
	text       string
	incomplete string // the reason, in OpenAI's terms, empty for a complete answer
	calls      []call // to the client's functions
	in, out    int64
	details    details
}

// outcome returns the answer of a run that is over, or the error for the client.
func outcome(r *runs.Record) (answered, error) {
	a := answered{
		in: r.Outcome.Spent.InputTokens, out: r.Outcome.Spent.OutputTokens,
		details: details{
			Run: r.ID, Status: r.Status, Turns: r.Outcome.Turns, Calls: r.Outcome.Spent.Calls, USD: r.Outcome.Spent.USD,
			ToolCalls: r.Outcome.Spent.ToolCalls,
		},
	}

	switch r.Status {
	case "answered", "synthesised":
		a.text = r.Outcome.Text()
		return a, nil
	case "partial":
		a.text, a.incomplete = r.Outcome.Partial, "max_output_tokens"
		return a, nil
	case "parked":
		return a, problem.New(http.StatusUnprocessableEntity, "parked",
			"run %s waits for a decision: see GET /v1/runs/%s", r.ID, r.ID)
	}
	return a, problem.New(http.StatusUnprocessableEntity, "run_"+r.Status,
		"run %s ended without an answer: %s", r.ID, fmt.Sprintf("%.1000s", r.Reason))
}
