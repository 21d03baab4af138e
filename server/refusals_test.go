package server

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm/server/internal/access"
)

// TestTheAuditLogNamesTheKeyOfTooManyRequests checks the log while strangers send more requests
// than it accepts.
func TestTheAuditLogNamesTheKeyOfTooManyRequests(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir, counting(t), locked)
	key := s.key(access.Key{Name: "busy", Limits: access.Limits{Requests: 1}})
	s.want(s.do("GET", "/v1/runs", key, nil), 200, "")
	for range 300 {
		s.want(s.do("POST", "/v1/runs", "rlm_GUESSED", nil), 401, "")
	}
	s.want(s.do("GET", "/v1/runs", key, nil), 429, "too_many_requests")
	for range 300 {
		s.want(s.do("POST", "/v1/runs", key, object{"question": "x"}), 429, "too_many_requests")
	}

	log, err := os.ReadFile(filepath.Join(dir, "audit.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	read := regexp.MustCompile(`"key":"busy","key_id":"key_\w+","tenant":"busy",[^}]*` +
		`"action":"GET /v1/runs","status":429`)
	if !read.Match(log) {
		t.Errorf("the audit log does not have the first refused request")
	}
	lines := strings.Count(string(log), `"key":"busy"`)
	if lines < 100 || lines > 250 || !strings.Contains(string(log), `"missed":`) {
		t.Errorf("the audit log has %d lines of 300 requests of the key", lines)
	}
}

// TestRefusedRequestsCountForTheirRoute checks that the metrics include the routes of requests
// that the gate refuses, and the requests within connections.
func TestRefusedRequestsCountForTheirRoute(t *testing.T) {
	s := start(t, t.TempDir(), counting(t), locked)
	busy := s.key(access.Key{Name: "busy", Limits: access.Limits{Requests: 1}})
	other := s.key(access.Key{Name: "other"})
	s.do("GET", "/v1/tiers", busy, nil)
	s.want(s.do("POST", "/v1/runs", busy, object{"question": "x"}), 429, "")
	s.want(s.do("POST", "/v1/files", "", "x"), 401, "")
	s.want(s.do("POST", "/v1/responses", other, strings.Repeat("x", 2<<20)), 413, "")
	c := s.connect(other)
	c.wants(c.ask("session/open", object{}), `"session":"1"`)
	c.wants(c.ask("session/close", object{"session": "none"}), "unknown_session")

	reader := s.key(access.Key{Name: "m", Scopes: []access.Scope{access.Metrics}})
	for _, want := range []string{
		`rlm_http_requests_total{route="POST /v1/runs",status="429"} 1`,
		`rlm_http_requests_total{route="POST /v1/files",status="401"} 1`,
		`rlm_http_requests_total{route="POST /v1/responses",status="413"} 1`,
		`rlm_connection_requests_total{outcome="ok",wire="WS"}`,
		`rlm_connection_requests_total{outcome="unknown_session",wire="WS"} 1`,
	} {
		// A request is counted when it ends, which may be after its client has the answer.
		shown := s.do("GET", "/metrics", reader, nil)
		for end := time.Now().Add(10 * time.Second); !strings.Contains(shown.body, want); {
			if time.Now().After(end) {
				t.Errorf("the metrics lack %s", want)
				break
			}
			time.Sleep(time.Millisecond)
			shown = s.do("GET", "/metrics", reader, nil)
		}
	}
}

// TestAScopeIsCheckedBeforeTheBody checks that a request whose key lacks the scope is refused
// before its body arrives.
func TestAScopeIsCheckedBeforeTheBody(t *testing.T) {
	s := start(t, t.TempDir(), counting(t), locked)
	reader := s.key(access.Key{Name: "reader", Scopes: []access.Scope{access.Read}})
	for _, path := range []string{
		"/v1/runs", "/v1/sessions", "/v1/sessions/none/exec", "/v1/keys", "/v1/chat/completions", "/v1/responses",
		"/v1/messages", "/v1/files",
	} {
		t.Run(path, func(t *testing.T) {
			conn, err := net.Dial("tcp", s.web.Listener.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			_, err = fmt.Fprintf(conn, "POST %s HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\n"+
				"Content-Type: application/json\r\nContent-Length: 1000000\r\n\r\n{", path, reader)
			if err != nil {
				t.Fatal(err)
			}
			_ = conn.SetReadDeadline(time.Now().Add(20 * time.Second)) // before the gate gives up
			got, err := http.ReadResponse(bufio.NewReader(conn), nil)
			if err != nil || got.StatusCode != http.StatusForbidden {
				t.Errorf("%s: %v, %v", path, got, err)
			}
			if err == nil {
				_ = got.Body.Close()
			}
			_ = conn.Close()
		})
	}
}
