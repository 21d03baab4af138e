package server

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/server/internal/access"
)

func TestAdminsMakeKeys(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir, counting(t), locked)
	admin := s.key(access.Key{Name: "root", Scopes: []access.Scope{access.Admin}})
	made := s.do("POST", "/v1/keys", admin, object{
		"name": "alice", "limits": object{"usd": 20, "period": "month", "sessions": 1},
	})
	s.want(made, 200, `"scopes":["read","run"],"limits":{"usd":20,"period":"month","sessions":1}`)
	id, secret := s.text(made, "id"), s.text(made, "secret")
	s.open(secret, object{})
	s.want(s.do("POST", "/v1/sessions", secret, object{}), 429, "1 sessions")

	for _, c := range []struct {
		body   object
		status int
		text   string
	}{
		{object{"name": "alice"}, 409, "revoke it first"},
		{object{"name": "a b"}, 400, "cannot name a key"},
		{object{"name": "x", "tenant": "local"}, 400, "choose another name"},
		{object{"name": "x", "scopes": []string{"root"}}, 422, "scopes"},
		{object{"name": "x", "limits": object{"usd": -1}}, 422, "usd"},
		{object{"name": "x", "limits": object{"usd": 1, "period": "week"}}, 422, "period"},
		{object{}, 422, "name"},
	} {
		got := s.do("POST", "/v1/keys", admin, c.body)
		if s.want(got, c.status, c.text); s.text(got, "code") == "" {
			t.Errorf("the answer has no code: %s", got.body)
		}
	}

	var ids []string
	for next := ""; ; {
		page := s.do("GET", "/v1/keys?limit=1&after="+next, admin, nil)
		var got struct {
			Keys []struct{ ID, Secret string }
			Next string
		}
		err := json.Unmarshal([]byte(page.body), &got)
		if err != nil || len(got.Keys) != 1 || got.Keys[0].Secret != "" {
			t.Fatalf("%v: %s", err, page.body)
		}
		ids = append(ids, got.Keys[0].ID)
		if next = got.Next; next == "" {
			break
		}
	}
	if len(ids) != 2 || ids[0] != id && ids[1] != id {
		t.Errorf("the pages have %v", ids)
	}
	s.want(s.do("GET", "/v1/keys?after=key_NONE", admin, nil), 404, "no key")

	s.want(s.do("DELETE", "/v1/keys/"+id, admin, nil), 204, "")
	s.want(s.do("GET", "/v1/sessions", secret, nil), 401, "was revoked")
	s.want(s.do("DELETE", "/v1/keys/"+id, admin, nil), 404, "no key")
	s.want(s.do("GET", "/v1/keys", admin, nil), 200, `"revoked":"`)

	log, err := os.ReadFile(filepath.Join(dir, "audit.jsonl"))
	if err != nil || strings.Contains(string(log)+s.logs.String(), secret) {
		t.Errorf("a log has the key: %v", err)
	}
	for _, want := range []string{`"action":"POST /v1/keys","object":"` + id, `"action":"DELETE /v1/keys/` + id} {
		if !strings.Contains(string(log), want) {
			t.Errorf("the audit log lacks %s: %s", want, log)
		}
	}
}

func TestOtherScopesMakeNoKeys(t *testing.T) {
	s := start(t, t.TempDir(), counting(t), locked)
	all := s.key(access.Key{Name: "all", Scopes: []access.Scope{access.Read, access.Run, access.Approve}})
	for request, body := range map[string]any{
		"POST /v1/keys": object{"name": "x", "scopes": []string{"admin"}}, "GET /v1/keys": nil,
		"DELETE /v1/keys/all": nil,
	} {
		method, path, _ := strings.Cut(request, " ")
		s.want(s.do(method, path, all, body), 403, "lacks the scope admin")
		s.want(s.do(method, path, "", body), 401, "rlm keys create")
	}
	keys, err := s.server.keys.List(t.Context())
	if err != nil || len(keys) != 1 || !keys[0].Revoked.IsZero() {
		t.Errorf("the keys are %+v, %v", keys, err)
	}
}
