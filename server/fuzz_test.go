package server

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm/internal/text/problem"
)

// FuzzSessionRequests sends random bodies with the requests that have one, and checks that each
// request is answered. A body that the server cannot use is a client error, in the format of RFC
// 9457.
func FuzzSessionRequests(f *testing.F) {
	s := start(f, f.TempDir(), counting(f), func(o *Options) {
		limits := &o.Profiles[0].Task.Config.Limits
		limits.Wall, limits.Output = time.Second, 1_000
	})
	path := s.open("", object{"name": "fuzzed"})
	requests := []string{
		"POST /v1/sessions", "POST " + path + "/exec", "PUT " + path + "/variables/x", "POST " + path + "/contexts",
		"POST " + path + "/fork",
	}
	for _, seed := range []string{
		`{"name":"fuzzed"}`, `{"contexts":[{"name":"a","text":"b"},{"value":[1,{"a":null}]},{"file":"x"}]}`,
		`{"limits":{"wall_ms":1e300,"fuel":18446744073709551615},"policy":{"hosts":["a:1"],"min_isolation":"kernel"}}`,
		`{"source":"1+1","language":"python","variables":{"a":{"$int":"1"}}}`,
		`{"value":{"$tuple":[1,{"$bytes":"aGk="}]}}`,
		`{"value":{"$float":"nan"}}`, `[]`, `null`, ``, "\x00", `{"name":"a","name":"b"}`, strings.Repeat("[", 20_000),
	} {
		for i := range requests {
			f.Add(i, seed)
		}
	}
	f.Fuzz(func(t *testing.T, which int, body string) {
		method, path, _ := strings.Cut(requests[uint(which)%uint(len(requests))], " ")
		s := &tested{t, s.server, s.web, s.logs, s.stop}
		got := s.do(method, path, "", body, "Content-Type", "application/json")
		if id := s.newSession(got.body); id != "" && got.status == 200 && method == "POST" {
			s.do("DELETE", "/v1/sessions/"+id, "", nil)
		}
		var document problem.Document
		switch {
		case got.status == 200 || got.status == 204:
		case got.status >= 500 && got.status != 503:
			t.Errorf("%s %s %q is answered by %d %s", method, path, body, got.status, got.body)
		case json.Unmarshal([]byte(got.body), &document) != nil || document.Code == "" || document.Status != got.status:
			t.Errorf("%s %s %q is answered by %d %s", method, path, body, got.status, got.body)
		}
	})
}

// newSession returns the ID of a new session, or "" if the server opened none.
func (s *tested) newSession(body string) string {
	var made struct{ ID, Name string }
	if json.Unmarshal([]byte(body), &made) != nil || made.Name == "fuzzed" {
		return ""
	}
	return made.ID
}
