package server

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/server/internal/access"
)

// routeCase describes how a route isolates tenants from each other.
type routeCase struct {
	// scope is the scope that a key needs. It is empty for a route that needs no key and is the
	// same for everyone, and anyScope for a route that needs any key.
	scope access.Scope
	// path is the path to request: another tenant's resource, or a list. Body is the body.
	path string
	body any
	// status is the answer to another tenant with the scope. A list has status 200, and must not
	// name the other tenant's objects.
	status int
}

const anyScope access.Scope = "any"

// mcpStub replaces the MCP endpoint, for which a test of cmd/rlm (TestKeysDoNotShareObjects) covers
// two tenants.
type mcpStub struct{}

func (mcpStub) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fmt.Fprint(w, access.Caller(r.Context()).Tenant)
}

func (mcpStub) Close() error { return nil }

// TestEveryRouteKeepsTenantsApart sends each request of each route without a key, with a key that
// lacks the scope, and with another tenant's key. A new route needs a case here.
func TestEveryRouteKeepsTenantsApart(t *testing.T) {
	s := start(t, t.TempDir(), counting(t), func(o *Options) {
		o.Open, o.OpenSessions = false, 8
		o.endpoint = mcpStub{}
	})
	alice := s.key(access.Key{Name: "alice", Scopes: []access.Scope{access.Admin}})
	cases, secrets := s.casesOf(alice)

	for _, pattern := range s.server.patterns {
		if _, known := cases[pattern]; !known {
			t.Errorf("there is no case for the route %q: add how it keeps tenants apart", pattern)
		}
	}
	for pattern := range cases {
		if !slices.Contains(s.server.patterns, pattern) {
			t.Errorf("there is no route %q", pattern)
		}
	}

	bob := s.key(access.Key{Name: "bob", Scopes: []access.Scope{access.Admin}})
	weak := map[access.Scope]string{} // keys of alice's tenant with all scopes but one
	for _, missing := range access.Scopes() {
		var scopes []access.Scope
		for _, scope := range access.Scopes() {
			if scope != missing && scope != access.Admin {
				scopes = append(scopes, scope)
			}
		}
		weak[missing] = s.key(access.Key{Name: "no-" + string(missing), Tenant: "alice", Scopes: scopes})
	}
	for _, pattern := range slices.Sorted(maps.Keys(cases)) {
		c := cases[pattern]
		method, _, found := strings.Cut(pattern, " ")
		if !found {
			method = "POST"
		}
		if c.scope == "" {
			s.want(s.do(method, c.path, "", c.body), c.status, "")
			continue
		}

		for _, unknown := range []string{"", "rlm_UNKNOWN"} {
			if got := s.do(method, c.path, unknown, c.body); got.status != 401 {
				t.Errorf("%s without a key in use gives %d %s", pattern, got.status, got.body)
			}
		}
		if key, ok := weak[c.scope]; ok {
			if got := s.do(method, c.path, key, c.body); got.status != 403 {
				t.Errorf("%s without the scope %s gives %d %s", pattern, c.scope, got.status, got.body)
			}
		}
		got := s.do(method, c.path, bob, c.body)
		if got.status != c.status {
			t.Errorf("%s gives another tenant %d %s, want %d", pattern, got.status, got.body, c.status)
		}
		for _, secret := range secrets {
			said := fmt.Sprint(c.path, c.body)
			if strings.Contains(got.body, secret) && !strings.Contains(said, secret) {
				t.Errorf("%s shows another tenant %s: %s", pattern, secret, got.body)
			}
		}
	}

	// All of the first tenant's objects still exist.
	for pattern, c := range cases {
		if path, isGet := strings.CutPrefix(pattern, "GET "); isGet && strings.Contains(path, "{") && c.status == 404 &&
			!strings.Contains(c.path, "name=") && !strings.Contains(c.path, "/models/") {
			s.want(s.do("GET", c.path, alice, nil), 200, "")
		}
	}
}

// casesOf makes a resource of each kind for a tenant. It returns the cases of all routes, and
// strings that must be hidden from other tenants.
func (s *tested) casesOf(key string) (cases map[string]routeCase, secrets []string) {
	s.Helper()
	run, _ := s.runToEnd(key)
	session := strings.TrimPrefix(s.open(key, object{"name": "hers", "out": true}), "/v1/sessions/")
	s.exec("/v1/sessions/"+session, key, "n = 1; n", "1")
	taken := s.do("POST", "/v1/sessions/"+session+"/snapshots", key, nil)
	s.want(taken, 200, "snap_")
	snapshot := s.text(taken, "id")
	file := s.upload(key, hay)
	made := s.do("POST", "/v1/responses", key, object{"model": "rlm/default", "input": "hi"})
	s.want(made, 200, "resp_")
	response := s.text(made, "id")
	talk := s.do("POST", "/v1/conversations", key, object{
		"items": []object{{"role": "user", "content": "secret words"}},
	})
	s.want(talk, 200, "conv_")
	conversation := s.text(talk, "id")
	items, _ := s.field(s.do("GET", "/v1/conversations/"+conversation+"/items", key, nil), "data").([]any)
	first, _ := items[0].(object)
	item, _ := first["id"].(string)
	secrets = []string{run, session, snapshot, file, response, conversation, item, "secret words"}

	cases = map[string]routeCase{
		"/": {anyScope, "/none", nil, 404}, "GET /{$}": {"", "/", nil, 200},
		"GET /viewer.js": {"", "/viewer.js", nil, 200}, "GET /viewer.css": {"", "/viewer.css", nil, 200},
		"GET /healthz": {"", "/healthz", nil, 200}, "GET /readyz": {"", "/readyz", nil, 200},
		"GET /openapi.json": {anyScope, "/openapi.json", nil, 200},
		"GET /metrics":      {access.Metrics, "/metrics", nil, 200},
		"/mcp":              {anyScope, "/mcp", object{}, 200},
		"GET /api/":         {access.Read, "/api/run?id=" + run, nil, 404},

		"POST /v1/runs": {access.Run, "/v1/runs", object{
			"question": "x", "contexts": []object{{"file": file}},
		}, 404},
		"GET /v1/runs":         {access.Read, "/v1/runs", nil, 200},
		"GET /v1/sessions":     {access.Read, "/v1/sessions", nil, 200},
		"POST /v1/sessions":    {access.Run, "/v1/sessions", object{"contexts": []object{{"file": file}}}, 404},
		"GET /v1/usage":        {access.Read, "/v1/usage", nil, 200},
		"GET /v1/tiers":        {access.Read, "/v1/tiers", nil, 200},
		"GET " + socketPath:    {access.Run, socketPath, nil, 426},
		"POST /v1/keys":        {access.Admin, "/v1/keys", object{"name": "made"}, 200},
		"GET /v1/keys":         {access.Admin, "/v1/keys", nil, 200},
		"DELETE /v1/keys/{id}": {access.Admin, "/v1/keys/key_NONE", nil, 404},

		"GET /v1/models":                 {access.Read, "/v1/models", nil, 200},
		"GET /v1/models/{name}":          {access.Read, "/v1/models/default", nil, 404},
		"GET /v1/models/{owner}/{name}":  {access.Read, "/v1/models/rlm/default", nil, 200},
		"POST /v1/chat/completions":      {access.Run, "/v1/chat/completions", chat("hi"), 200},
		"POST /v1/messages":              {access.Run, "/v1/messages", chat("hi"), 200},
		"POST /v1/messages/count_tokens": {access.Run, "/v1/messages/count_tokens", chat("hi"), 200},
		"POST /v1/responses": {access.Run, "/v1/responses", object{
			"model": "rlm/default", "input": "hi", "previous_response_id": response,
		}, 404},
		"POST /v1/responses/compact": {access.Run, "/v1/responses/compact", object{
			"model": "rlm/default", "previous_response_id": response,
		}, 404},
		"POST /v1/responses/input_tokens": {access.Run, "/v1/responses/input_tokens", object{
			"conversation": conversation,
		}, 404},
		"POST /v1/conversations": {access.Run, "/v1/conversations", object{
			"items": []object{{"type": "item_reference", "id": item}},
		}, 404},
		"POST /v1/embeddings": {access.Run, "/v1/embeddings", object{"model": "none/x", "input": "hi"}, 404},

		"POST /v1/files": {access.Run, "/v1/files", "x", 400},
		"GET /v1/files":  {access.Read, "/v1/files", nil, 200},
	}
	bodies := map[string]any{
		"/exec": object{"source": "1"}, "/variables/{name}": object{"value": 1},
		"/contexts": object{"contexts": []object{{"text": "x"}}}, "/continue": object{"turn": 1, "fork": true},
		"/approvals": object{"approval": "x", "allow": true},
	}
	ids := map[string]string{
		"runs": run, "sessions": session, "files": file, "responses": response, "conversations": conversation,
	}
	for _, pattern := range s.server.patterns {
		method, path, _ := strings.Cut(pattern, " ")
		if cases[pattern].status != 0 || !strings.Contains(path, "{id}") {
			continue
		}
		kind := strings.Split(path, "/")[2]
		c := routeCase{scope: access.Read, status: 404}
		switch {
		case ids[kind] == "":
			continue // a new kind needs a case
		case strings.HasSuffix(path, "/approvals"):
			c.scope = access.Approve
		case method != "GET" || strings.Contains(path, "/variables/"):
			c.scope = access.Run // reading a variable runs code
		}
		for end, body := range bodies {
			if strings.HasSuffix(path, end) && method != "GET" && method != "DELETE" {
				c.body = body
			}
		}
		c.path = strings.NewReplacer("{id}", ids[kind], "{name}", "n", "{snapshot}", snapshot, "{item}", item,
			"files/content", "files/content?name=x").Replace(path)
		cases[pattern] = c
	}
	return cases, secrets
}
