package native

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/rlmhq/rlm/internal/plan/results"
	"github.com/rlmhq/rlm/internal/text/problem"
	"github.com/rlmhq/rlm/server/internal/access"
	"github.com/rlmhq/rlm/server/internal/runs"
	"github.com/rlmhq/rlm/server/internal/sessions"
	"github.com/rlmhq/rlm/server/internal/snippets"
	"github.com/rlmhq/rlm/server/internal/terms"
	"github.com/rlmhq/rlm/tiers"
)

// addSessions adds the operations on sessions.
func (a *api) addSessions(h huma.API) {
	const list, one = "/v1/sessions", "/v1/sessions/{id}"
	read, run := access.Read, access.Run
	add(h, a, http.MethodPost, list, "open-session", "Open a session, or find the one of a name", run, a.openSession)
	add(h, a, http.MethodGet, list, "list-sessions", "List sessions, the latest first", read, a.listSessions)
	add(h, a, http.MethodGet, one, "get-session", "Show a session", read, a.getSession)
	add(h, a, http.MethodDelete, one, "delete-session", "End a session and forget it", run, a.deleteSession)
	add(h, a, http.MethodPost, one+"/exec", "exec",
		"Run a snippet; it is interrupted when the client goes away", run, a.exec)
	add(h, a, http.MethodPost, one+"/interrupt", "interrupt-session",
		"Stop what a session runs; the variables stay", run, a.interrupt)
	add(h, a, http.MethodPost, one+"/reset", "reset-session",
		"Begin again without variables; contexts and snapshots stay", run, a.resetSession)
	add(h, a, http.MethodPost, one+"/fork", "fork-session",
		"Make a session with a copy of the variables", run, a.forkSession)

	add(h, a, http.MethodGet, one+"/variables", "list-variables", "List the variables", read, a.listVariables)
	add(h, a, http.MethodGet, one+"/variables/{name}", "get-variable", "Show a variable's value", run, a.getVariable)
	add(h, a, http.MethodPut, one+"/variables/{name}", "set-variable", "Set a variable", run, a.setVariable)
	add(h, a, http.MethodDelete, one+"/variables/{name}", "delete-variable", "Delete a variable", run, a.deleteVariable)
	add(h, a, http.MethodGet, one+"/contexts", "list-contexts", "List the contexts", read, a.listContexts)
	add(h, a, http.MethodPost, one+"/contexts", "add-contexts",
		"Add contexts for the next snippets", run, a.addContexts)
	add(h, a, http.MethodPut, one+"/contexts/{context}", "mend-context",
		"Send a context again that is damaged on the server's disk", run, a.mendContext)
	a.addStates(h)
	add(h, a, http.MethodGet, "/v1/tiers", "list-tiers", "List the tiers of the server", read, a.listTiers)
}

// session is the wire format of a session.
type session struct {
	ID       string        `json:"id"`
	Name     string        `json:"name,omitempty"`
	Profile  string        `json:"profile"`
	Status   string        `json:"status" enum:"running,open,saved" doc:"saved: the next request brings it back"`
	Contexts []contextInfo `json:"contexts" nullable:"false"`
	Snippets int           `json:"snippets" doc:"that had run when the session was saved last"`
	Left     []tiers.Left  `json:"left_behind,omitempty" doc:"values that could not be saved"`
	Notes    []string      `json:"notes,omitempty" doc:"what snippets do not see of the contexts as it is"`
	Created  time.Time     `json:"created"`
	Used     time.Time     `json:"used" doc:"when it was saved last"`
	// Durability is that of the request or of the profile.
	Durability string `json:"durability" enum:"kept,idle" doc:"what a killed server may lose"`
}

type contextInfo struct {
	Name     string `json:"name"`
	Variable string `json:"variable,omitempty"`
	Kind     string `json:"kind" enum:"content,value"`
	Bytes    int64  `json:"bytes"`
}

func (a *api) describeSession(r *sessions.Record, notes []string) session {
	return session{
		ID: r.ID, Name: r.Name, Profile: r.Spec.Profile, Status: a.Sessions.Status(r.ID),
		Contexts: describeContexts(r.Spec.Contexts), Snippets: r.Standing.Snippets, Left: r.Standing.Left,
		Notes: notes, Created: r.Created, Used: r.Used, Durability: a.Sessions.DurabilityOf(r),
	}
}

func describeContexts(list []sessions.Context) []contextInfo {
	all := []contextInfo{}
	for _, c := range list {
		kind := "content"
		if c.IsValue {
			kind = "value"
		}
		all = append(all, contextInfo{c.Name, c.Variable, kind, c.Bytes})
	}

	return all
}

// oneSession is an answer that contains a session.
type oneSession struct {
	Object string `header:"X-Rlm-Object"`
	Body   session
}

// inputOf is a context of a session. Exactly one of Text, Value and File is set.
type inputOf struct {
	Name  string          `json:"name,omitempty" maxLength:"255" doc:"a further variable for snippets"`
	Text  *string         `json:"text,omitempty"`
	Value json.RawMessage `json:"value,omitempty" doc:"plain JSON"`
	File  string          `json:"file,omitempty" maxLength:"100" doc:"ID of an uploaded file"`
}

// contents converts contexts for a session of the caller.
func (a *api) contents(ctx context.Context, list []inputOf) (all []sessions.Content, err error) {
	for i, c := range list {
		forms := 0
		for _, has := range []bool{c.Text != nil, c.Value != nil, c.File != ""} {
			if has {
				forms++
			}
		}
		if forms != 1 {
			return nil, problem.Bad("contexts", "context %d: give one of text, value and file", i)
		}

		made := sessions.Content{Variable: c.Name, Content: runs.Content{Name: c.Name}}
		switch {
		case c.File != "":
			file, err := a.Files.Get(ctx, access.Caller(ctx).Tenant, c.File)
			if err != nil {
				return nil, err
			}
			made.Name, made.Path = file.Name, a.Files.Path(file.ID)
		case c.Text != nil:
			made.Text = *c.Text
		default:
			made.Text, made.IsValue = string(c.Value), true
		}
		all = append(all, made)
	}
	return all, nil
}

type openInput struct {
	Word string `header:"Idempotency-Key" maxLength:"255" doc:"a second request with it is the first one again"`
	Body struct {
		Name          string       `json:"name,omitempty" maxLength:"100" doc:"get this session, or make it"`
		Profile       string       `json:"profile,omitempty" maxLength:"32" doc:"default if it is not given"`
		Contexts      []inputOf    `json:"contexts,omitempty" maxItems:"100"`
		Limits        terms.Limits `json:"limits,omitempty" doc:"of each snippet, within those of the profile"`
		Policy        terms.Policy `json:"policy,omitempty" doc:"narrows that of the profile"`
		Deterministic bool         `json:"deterministic,omitempty"`
		Out           bool         `json:"out,omitempty" doc:"give snippets the folder /out"`
		Durability    string       `json:"durability,omitempty" enum:"kept,idle" doc:"what a killed server may lose"`
	}
}

// openSession answers POST /v1/sessions.
func (a *api) openSession(ctx context.Context, in *openInput) (*oneSession, error) {
	b := &in.Body
	r := sessions.Request{Name: b.Name, Idempotency: in.Word, Spec: sessions.Spec{
		Profile: b.Profile, Limits: b.Limits, Policy: b.Policy, Deterministic: b.Deterministic, Out: b.Out,
		Durability: b.Durability,
	}}
	var err error
	if r.Contents, err = a.contents(ctx, b.Contexts); err != nil {
		return nil, err
	}

	record, notes, err := a.Sessions.Create(ctx, access.Caller(ctx), r)
	if err != nil {
		return nil, err
	}
	return &oneSession{record.ID, a.describeSession(&record, notes)}, nil
}

type listSessionsInput struct {
	Name  string `query:"name" maxLength:"100"`
	After string `query:"after" maxLength:"100" doc:"next of the page before"`
	Limit int    `query:"limit" minimum:"1" maximum:"1000" default:"100"`
}

type listSessionsOutput struct {
	Body struct {
		Sessions []session `json:"sessions" nullable:"false"`
		Next     string    `json:"next,omitempty" doc:"after of the next page; there is none if it is missing"`
	}
}

// listSessions answers GET /v1/sessions.
func (a *api) listSessions(ctx context.Context, in *listSessionsInput) (*listSessionsOutput, error) {
	all, err := a.Sessions.List(ctx, access.Caller(ctx).Tenant, in.Name, in.After, in.Limit+1)
	if err != nil {
		return nil, err
	}
	out := &listSessionsOutput{}
	out.Body.Sessions = []session{}
	for i := range all[:min(len(all), in.Limit)] {
		out.Body.Sessions = append(out.Body.Sessions, a.describeSession(&all[i], nil))
	}

	if len(all) > in.Limit {
		out.Body.Next = all[in.Limit-1].ID
	}
	return out, nil
}

// getSession answers GET /v1/sessions/{id}.
func (a *api) getSession(ctx context.Context, in *byID) (*oneSession, error) {
	record, err := a.Sessions.Get(ctx, access.Caller(ctx).Tenant, in.ID)
	if err != nil {
		return nil, err
	}
	return &oneSession{record.ID, a.describeSession(&record, nil)}, nil
}

// deleteSession answers DELETE /v1/sessions/{id}.
func (a *api) deleteSession(ctx context.Context, in *byID) (*struct{}, error) {
	return nil, a.Sessions.Delete(ctx, access.Caller(ctx).Tenant, in.ID)
}

type execInput struct {
	ID   string `path:"id" maxLength:"100"`
	Body struct {
		Source    string                     `json:"source"`
		Language  string                     `json:"language,omitempty" enum:"python,go" doc:"detected by default"`
		Variables map[string]json.RawMessage `json:"variables,omitempty" doc:"set before the snippet runs"`
	}
}

type execOutput struct {
	Body results.Result
}

// exec answers POST /v1/sessions/{id}/exec.
func (a *api) exec(ctx context.Context, in *execInput) (*execOutput, error) {
	snippet := &snippets.Snippet{
		Source: in.Body.Source, Language: tiers.Language(in.Body.Language), Variables: map[string]jsontext.Value{},
	}
	for name, value := range in.Body.Variables {
		snippet.Variables[name] = jsontext.Value(value)
	}

	result, err := a.Sessions.Exec(ctx, access.Caller(ctx), in.ID, snippet)
	if err != nil {
		return nil, err
	}
	return &execOutput{*result}, nil
}

// interrupt answers POST /v1/sessions/{id}/interrupt.
func (a *api) interrupt(ctx context.Context, in *byID) (*struct{}, error) {
	return nil, a.Sessions.Interrupt(ctx, access.Caller(ctx).Tenant, in.ID)
}

// resetSession answers POST /v1/sessions/{id}/reset.
func (a *api) resetSession(ctx context.Context, in *byID) (*oneSession, error) {
	if err := a.Sessions.Reset(ctx, access.Caller(ctx).Tenant, in.ID); err != nil {
		return nil, err
	}
	return a.getSession(ctx, in)
}

type forkInput struct {
	ID   string `path:"id" maxLength:"100"`
	Word string `header:"Idempotency-Key" maxLength:"255" doc:"a second request with it is the first one again"`
	Body *struct {
		Name string `json:"name,omitempty" maxLength:"100" doc:"of the new session"`
	}
}

// forkSession answers POST /v1/sessions/{id}/fork.
func (a *api) forkSession(ctx context.Context, in *forkInput) (*oneSession, error) {
	name := ""
	if in.Body != nil {
		name = in.Body.Name
	}

	record, err := a.Sessions.Fork(ctx, access.Caller(ctx), in.ID, name, in.Word)
	if err != nil {
		return nil, err
	}
	return &oneSession{record.ID, a.describeSession(&record, nil)}, nil
}

type variable struct {
	Name string `json:"name"`
	Kind string `json:"kind" doc:"the type, with the length of a collection"`
}

type variablesOutput struct {
	Body struct {
		Variables []variable `json:"variables" nullable:"false"`
	}
}

// listVariables answers GET /v1/sessions/{id}/variables.
func (a *api) listVariables(ctx context.Context, in *byID) (*variablesOutput, error) {
	all, err := a.Sessions.Variables(ctx, access.Caller(ctx).Tenant, in.ID)
	if err != nil {
		return nil, err
	}

	out := &variablesOutput{}
	out.Body.Variables = []variable{}
	for _, v := range all {
		out.Body.Variables = append(out.Body.Variables, variable(v))
	}
	return out, nil
}

// byName is an input that contains the ID of a session and the name of a variable.
type byName struct {
	ID   string `path:"id" maxLength:"100"`
	Name string `path:"name" maxLength:"255"`
}

type value struct {
	Value json.RawMessage `json:"value" doc:"JSON, with tags for what it lacks: see the session protocol"`
}

// getVariable answers GET /v1/sessions/{id}/variables/{name}.
func (a *api) getVariable(ctx context.Context, in *byName) (*struct{ Body value }, error) {
	got, err := a.Sessions.GetVariable(ctx, access.Caller(ctx).Tenant, in.ID, in.Name)
	if err != nil {
		return nil, err
	}
	return &struct{ Body value }{value{json.RawMessage(got)}}, nil
}

type setVariableInput struct {
	ID   string `path:"id" maxLength:"100"`
	Name string `path:"name" maxLength:"255"`
	Body value
}

// setVariable answers PUT /v1/sessions/{id}/variables/{name}.
func (a *api) setVariable(ctx context.Context, in *setVariableInput) (*struct{}, error) {
	return nil, a.Sessions.SetVariable(ctx, access.Caller(ctx), in.ID, in.Name, jsontext.Value(in.Body.Value))
}

// deleteVariable answers DELETE /v1/sessions/{id}/variables/{name}.
func (a *api) deleteVariable(ctx context.Context, in *byName) (*struct{}, error) {
	return nil, a.Sessions.DeleteVariable(ctx, access.Caller(ctx).Tenant, in.ID, in.Name)
}

type contextsOutput struct {
	Body struct {
		Contexts []contextInfo `json:"contexts" nullable:"false"`
	}
}

// listContexts answers GET /v1/sessions/{id}/contexts.
func (a *api) listContexts(ctx context.Context, in *byID) (*contextsOutput, error) {
	record, err := a.Sessions.Get(ctx, access.Caller(ctx).Tenant, in.ID)
	if err != nil {
		return nil, err
	}
	out := &contextsOutput{}
	out.Body.Contexts = describeContexts(record.Spec.Contexts)
	return out, nil
}

type addContextsInput struct {
	ID   string `path:"id" maxLength:"100"`
	Body struct {
		Contexts []inputOf `json:"contexts" minItems:"1" maxItems:"100" nullable:"false"`
	}
}

// addContexts answers POST /v1/sessions/{id}/contexts.
func (a *api) addContexts(ctx context.Context, in *addContextsInput) (*contextsOutput, error) {
	contents, err := a.contents(ctx, in.Body.Contexts)
	if err != nil {
		return nil, err
	}
	record, err := a.Sessions.AddContexts(ctx, access.Caller(ctx), in.ID, contents)
	if err != nil {
		return nil, err
	}

	out := &contextsOutput{}
	out.Body.Contexts = describeContexts(record.Spec.Contexts)
	return out, nil
}

type mendContextInput struct {
	ID      string `path:"id" maxLength:"100"`
	Context string `path:"context" maxLength:"10" doc:"its number in the list, from 0"`
	Body    *inputOf
}

// mendContext answers PUT /v1/sessions/{id}/contexts/{context}, which replaces a damaged context.
func (a *api) mendContext(ctx context.Context, in *mendContextInput) (*contextsOutput, error) {
	if _, err := a.Sessions.Get(ctx, access.Caller(ctx).Tenant, in.ID); err != nil {
		return nil, err
	}
	number, err := strconv.Atoi(in.Context)
	if err != nil || in.Body == nil {
		return nil, problem.Bad("context", "give the number of a context, and its content")
	}
	sent, err := a.contents(ctx, []inputOf{*in.Body})
	if err != nil {
		return nil, err
	}
	if err := a.Sessions.MendContext(ctx, access.Caller(ctx), in.ID, number, &sent[0]); err != nil {
		return nil, err
	}
	return a.listContexts(ctx, &byID{in.ID})
}

type tiersOutput struct {
	Body struct {
		Tiers []terms.Tier `json:"tiers" nullable:"false"`
	}
}

// listTiers answers GET /v1/tiers.
func (a *api) listTiers(context.Context, *struct{}) (*tiersOutput, error) {
	out := &tiersOutput{}
	out.Body.Tiers = terms.List(a.Sessions.Engine.Tiers())
	return out, nil
}

// withFolder calls f with an empty folder, which it deletes afterwards.
func withFolder(f func(dir string) error) (err error) {
	dir, err := os.MkdirTemp("", "rlm-files-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	return f(dir)
}
