// Package openai implements OpenAI's wire protocol for unmodified clients: models, chat
// completions, responses, conversations, embeddings and files. A profile appears as the model
// rlm/NAME.
//
// The profile's root model answers a short conversation directly. Long messages, a file or the tool
// code_interpreter turn it into a run: long texts become contexts, and the root's turns are items
// of a response.
package openai

import (
	"database/sql"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"time"

	"github.com/rlmhq/rlm/internal/text/problem"
	"github.com/rlmhq/rlm/server/internal/access"
	"github.com/rlmhq/rlm/server/internal/failures"
	"github.com/rlmhq/rlm/server/internal/files"
	"github.com/rlmhq/rlm/server/internal/gate"
	"github.com/rlmhq/rlm/server/internal/records"
	"github.com/rlmhq/rlm/server/internal/runs"
	"github.com/rlmhq/rlm/server/internal/wire"
)

// Options configure the wire.
type Options struct {
	Runs  *runs.Manager
	Files *files.Files
	// Quota bounds the size of a tenant's conversations, together with its files and sessions.
	Quota *records.Quota
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
	words   records.Beginnings // of answers with an Idempotency-Key
	talks   records.Beginnings // of responses in a conversation
	waiting waiting
}

// Routes returns the patterns of the wire, each with the scope that it requires.
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
		"POST /v1/responses/compact":         {access.Run, a.compact},
		"POST /v1/responses/input_tokens":    {access.Run, a.countInput},

		"POST /v1/conversations":                     {access.Run, a.createConversation},
		"GET /v1/conversations/{id}":                 {access.Read, a.getConversation},
		"POST /v1/conversations/{id}":                {access.Run, a.updateConversation},
		"DELETE /v1/conversations/{id}":              {access.Run, a.deleteConversation},
		"POST /v1/conversations/{id}/items":          {access.Run, a.addToConversation},
		"GET /v1/conversations/{id}/items":           {access.Read, a.listConversation},
		"GET /v1/conversations/{id}/items/{item}":    {access.Read, a.getConversationItem},
		"DELETE /v1/conversations/{id}/items/{item}": {access.Run, a.deleteConversationItem},

		"POST /v1/embeddings":        {access.Run, a.embed},
		"POST /v1/files":             {access.Run, a.createFile},
		"GET /v1/files":              {access.Read, a.listFiles},
		"GET /v1/files/{id}":         {access.Read, a.getFile},
		"GET /v1/files/{id}/content": {access.Read, a.readFile},
		"DELETE /v1/files/{id}":      {access.Run, a.deleteFile},
	}
}

// route is a handler with the scope that it requires. If the handler returns an error, it is sent
// to the client.
type route struct {
	scope access.Scope
	serve func(w http.ResponseWriter, r *http.Request) error
}

// These functions are shared by all wires.
var (
	readJSON  = wire.ReadJSON
	decode    = wire.Decode
	writeJSON = wire.WriteJSON
	marshal   = wire.Marshal
)

// New adds the wire to a mux.
func New(o Options, mux gate.Mux) *API {
	a := &API{Options: o, begun: time.Now(), directs: directs{all: map[string]*direct{}}}
	fail := func(w http.ResponseWriter, _ *http.Request, err error) { WriteError(w, err) }
	for pattern, one := range a.routes() {
		mux.HandleFunc(pattern, wire.Handler(one.scope, one.serve, o.Log, fail))
	}

	return a
}

// wireError is an error in the format of OpenAI's clients.
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

// WriteError sends an error in the format of OpenAI's clients.
func WriteError(w http.ResponseWriter, err error) {
	e := failures.Of(err)
	wire.SetErrorHeader(w.Header(), e)
	writeJSON(w, e.Status, describeError(e))
}

// model is an entry of the list of models, with the members that clients of OpenAI read, and those
// that clients of Anthropic read.
type model struct {
	ID      string `json:"id"`
	Object  string `json:"object"`
	Created int64  `json:"created"`
	OwnedBy string `json:"owned_by"`

	Type        string    `json:"type"`
	DisplayName string    `json:"display_name"`
	CreatedAt   time.Time `json:"created_at"`
}

const owner = "rlm"

func (a *API) describeModel(profile string) model {
	id := owner + "/" + profile
	return model{
		ID: id, Object: "model", Created: a.begun.Unix(), OwnedBy: owner,
		Type: "model", DisplayName: id, CreatedAt: a.begun.UTC().Truncate(time.Second),
	}
}

func (a *API) listModels(w http.ResponseWriter, _ *http.Request) error {
	all := []model{}
	for _, name := range a.Runs.Names() {
		all = append(all, a.describeModel(name))
	}
	list := fields{"object": "list", "data": all, "has_more": false, "first_id": nil, "last_id": nil}
	if len(all) > 0 {
		list["first_id"], list["last_id"] = all[0].ID, all[len(all)-1].ID
	}
	writeJSON(w, http.StatusOK, list)
	return nil
}

func (a *API) getModel(w http.ResponseWriter, r *http.Request) error {
	name, err := profileOf(r.PathValue("owner") + "/" + r.PathValue("name"))
	if err != nil {
		return err
	}

	profile, err := a.Runs.Answering(name)
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
	Run    string  `json:"run,omitempty"` // the run's ID in the native API
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
	isPlain    bool   // prose, in spite of a contract
	incomplete string // the reason, in OpenAI's terms; empty for a complete answer
	calls      []call // calls of the client's functions
	in, out    int64
	details    details
}

// outcome returns the answer of a run that has ended, or the error for the client.
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
