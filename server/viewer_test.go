package server

import (
	"strings"
	"testing"

	"github.com/rlmhq/rlm/server/internal/access"
)

// TestTheViewerShowsOneTenant checks that a tenant cannot request a run that another tenant's page
// just showed.
func TestTheViewerShowsOneTenant(t *testing.T) {
	s := start(t, t.TempDir(), counting(t), locked)
	alice, bob := s.key(access.Key{Name: "alice"}), s.key(access.Key{Name: "bob", Scopes: []access.Scope{access.Admin}})
	weak := s.key(access.Key{Name: "weak", Tenant: "alice", Scopes: []access.Scope{access.Run}})
	id, path := s.runToEnd(alice)
	s.want(s.do("GET", "/", "", nil), 200, "<!DOCTYPE html>")
	s.want(s.do("GET", "/api/runs", alice, nil), 200, id)
	if got := s.do("GET", "/api/runs", bob, nil); got.status != 200 || strings.Contains(got.body, id) {
		t.Errorf("another tenant lists %d %s", got.status, got.body)
	}

	paths := []string{
		"/api/run?id=" + id, "/api/texts?node=0&id=" + id, "/api/search?text=e&id=" + id, "/api/changes?id=" + id,
	}
	for _, path := range paths {
		s.want(s.do("GET", path, alice, nil), 200, "")
		s.want(s.do("GET", path, bob, nil), 404, "there is no run")
		s.want(s.do("GET", path, weak, nil), 403, "lacks the scope read")
		s.want(s.do("GET", path, "", nil), 401, "rlm keys create")
	}
	s.want(s.do("DELETE", path, alice, nil), 204, "")
	for _, path := range paths {
		s.want(s.do("GET", path, alice, nil), 404, "there is no run")
	}
}
