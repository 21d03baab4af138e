// Package native is the server's own API: runs, their events and approvals, sessions, keys, and
// spending. Its OpenAPI 3.1 document is docs/generated/openapi.json.
package native

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/rlmhq/rlm/internal/text/problem"
	"github.com/rlmhq/rlm/server/internal/access"
	"github.com/rlmhq/rlm/server/internal/failures"
	"github.com/rlmhq/rlm/server/internal/files"
	"github.com/rlmhq/rlm/server/internal/gate"
	"github.com/rlmhq/rlm/server/internal/runs"
	"github.com/rlmhq/rlm/server/internal/sessions"
	"github.com/rlmhq/rlm/server/internal/shares"
)

// Options configure the API.
type Options struct {
	Runs     *runs.Manager
	Sessions *sessions.Manager
	Files    *files.Files
	Meter    *access.Meter
	Door     *access.Door
	Audit    *access.Audit
	Version  string
	MaxBody  int64
	Log      *slog.Logger
}

// api serves the API.
type api struct {
	Options
	lines *shares.Pool // the places for WebSockets
}

// New adds the API to a mux, and returns its OpenAPI document.
func New(o Options, mux gate.Mux) *huma.OpenAPI {
	config := huma.DefaultConfig("rlm", o.Version)
	config.DocsPath, config.SchemasPath, config.OpenAPIPath = "", "", ""
	config.CreateHooks = nil // no links to schemas in answers
	decoder := huma.DefaultJSONFormat
	config.Formats = map[string]huma.Format{"application/json": decoder, "json": decoder}
	config.Components.SecuritySchemes = map[string]*huma.SecurityScheme{
		"key": {Type: "http", Scheme: "bearer", Description: "a key of rlm keys create"},
	}
	config.Security = []map[string][]string{{"key": {}}}
	a, h := &api{Options: o, lines: shares.NewWithin(linesInAll, linesOfTenant)}, humago.New(mux, config)

	add(h, a, http.MethodPost, "/v1/runs", "start-run", "Start a run", access.Run, a.start)
	add(h, a, http.MethodGet, "/v1/runs", "list-runs", "List runs, the latest first", access.Read, a.list)
	add(h, a, http.MethodGet, "/v1/runs/{id}", "get-run", "Show a run", access.Read, a.get)
	add(h, a, http.MethodPost, "/v1/runs/{id}/cancel", "cancel-run", "End a run", access.Run, a.cancel)
	add(h, a, http.MethodDelete, "/v1/runs/{id}", "delete-run",
		"End a run and delete it, its events and contexts", access.Run, a.remove)
	add(h, a, http.MethodPost, "/v1/runs/{id}/continue", "continue-run",
		"Let a run go on after a turn, or make a new run of its turns", access.Run, a.goOn)
	add(h, a, http.MethodPost, "/v1/runs/{id}/approvals", "decide",
		"Decide on a call that waits; the run goes on when no other call does", access.Approve, a.decide)
	add(h, a, http.MethodGet, "/v1/runs/{id}/events", "watch-run",
		"Send the events of a run as server-sent events, as they come", access.Read, a.watch)
	add(h, a, http.MethodGet, "/v1/usage", "get-usage", "Show the spending of the tenant's keys by days",
		access.Read, a.usage)
	a.addKeys(h)
	a.addSessions(h)
	a.addConnect(h, mux)

	mux.HandleFunc("GET /openapi.json", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/openapi+json")
		_ = json.NewEncoder(w).Encode(h.OpenAPI()) // only fails if the client has gone away
	})
	return h.OpenAPI()
}

// add adds an operation that requires a scope.
func add[In, Out any](
	h huma.API, a *api, method, path, id, summary string, scope access.Scope,
	serve func(context.Context, *In) (*Out, error),
) {
	operation := huma.Operation{
		OperationID: id, Method: method, Path: path, Summary: summary, MaxBodyBytes: a.MaxBody,
		BodyReadTimeout: -1, // the gate bounds the time
		Description:     "Needs a key with the scope " + string(scope) + ".",
		Errors:          []int{400, 401, 403, 404, 408, 409, 413, 415, 421, 422, 429, 500, 502, 503, 507},
	}
	operation.Middlewares = huma.Middlewares{func(c huma.Context, next func(huma.Context)) {
		if err := access.Need(c.Context(), scope); err != nil { // before the body is read
			_, w := humago.Unwrap(c)
			failures.Write(w, err)
			return
		}
		next(c)
	}}

	huma.Register(h, operation, func(ctx context.Context, in *In) (*Out, error) {
		out, err := serve(ctx, in)
		if err != nil {
			return nil, a.fail(err)
		}
		return out, nil
	})
}

// failure is the wire format of an error.
type failure struct {
	huma.ErrorModel
	Code string `json:"code" doc:"a word for programs"`
	// Effects is set only for an exec.
	Effects string `json:"effects,omitempty" doc:"whether the snippet has run: never_ran, ran or unknown"`
}

func init() { //nolint:gochecknoinits // huma keeps this for the whole process
	plain := huma.NewError
	huma.NewError = func(status int, detail string, errs ...error) huma.StatusError {
		if known := problemOf(errs); known != nil {
			return describeFailure(known)
		}
		if status == http.StatusUnsupportedMediaType {
			return describeFailure(problem.New(status, "invalid_request",
				"send the body as JSON, with the header Content-Type: application/json"))
		}
		if detail == unreadable {
			status = http.StatusBadRequest // the client sent less than it announced
		}
		var made *huma.ErrorModel
		if !errors.As(plain(status, detail, errs...), &made) {
			made = &huma.ErrorModel{Status: status, Detail: detail}
		}
		code := "invalid_request"
		if status == http.StatusRequestEntityTooLarge {
			code = "body_too_large"
		}
		return &failure{ErrorModel: *made, Code: code}
	}
}

// unreadable is the message with which huma reports, as a server error, that a body ends early.
const unreadable = "cannot read request body"

// problemOf returns the error for the client that huma's errors wrap, or nil if there is none.
func problemOf(errs []error) (known *problem.Error) {
	for _, err := range errs {
		if errors.As(err, &known) {
			return known
		}
	}
	return nil
}

// fail returns an error for huma to send. It logs errors that the client did not cause.
func (a *api) fail(err error) error {
	e := failures.Of(err)
	if e.IsOurs() {
		a.Log.Error("a request failed", "error", err)
	}
	header := http.Header{}
	e.SetHeader(header)
	return huma.ErrorWithHeaders(describeFailure(e), header)
}

func describeFailure(e *problem.Error) *failure {
	return &failure{Code: e.Code, Effects: string(e.Effects), ErrorModel: huma.ErrorModel{
		Type: "about:blank", Status: e.Status, Title: http.StatusText(e.Status), Detail: e.Detail,
	}}
}
