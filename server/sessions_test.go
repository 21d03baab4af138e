package server

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm/server/internal/access"
)

// open opens a session and returns its path.
func (s *tested) open(key string, body object) string {
	s.Helper()
	got := s.do("POST", "/v1/sessions", key, body)
	s.want(got, 200, `"id":"sess_`)
	return "/v1/sessions/" + s.text(got, "id")
}

// drain ends the server's sessions as a shutdown does.
func (s *tested) drain() {
	s.Helper()
	ended, cancel := context.WithCancel(s.Context())
	cancel()
	s.server.kept.Drain(ended)
}

// exec runs a snippet, which must echo the given value.
func (s *tested) exec(path, key, source, echo string) answer {
	s.Helper()
	got := s.do("POST", path+"/exec", key, object{"source": source})
	if got.status != 200 || s.text(got, "echo") != echo {
		s.Errorf("%s gives %d %s, want %q", source, got.status, got.body, echo)
	}
	return got
}

func TestADeletionThatDoesNotEndIsNoSuccess(t *testing.T) {
	s := start(t, t.TempDir(), counting(t), nil)
	path := s.open("", object{"limits": object{"wall_ms": 500}})
	s.exec(path, "", "class Deaf:\n    def __del__(self):\n        while True:\n            try:\n"+
		"                while True: pass\n            except BaseException: pass\nx = Deaf()\nNone", "")
	s.want(s.do("DELETE", path+"/variables/x", "", nil), 409, `"code":"not_deleted"`)
	s.exec(path, "", "1", "1")
}

func TestASessionKeepsItsVariables(t *testing.T) {
	s := start(t, t.TempDir(), counting(t), nil)
	path := s.open("", object{"contexts": []object{
		{"name": "log", "text": hay}, {"name": "table", "value": []int{1, 2}},
	}})
	got := s.do("POST", path+"/exec", "", object{
		"source": "n = log.count('needle') + len(table) + more; print('x'); n", "variables": object{"more": 1},
	})
	s.want(got, 200, `"echo":"203"`)
	if s.text(got, "stdout") != "x\n" || s.text(got, "status") != "ok" || s.field(got, "usage", "wall_ms") == nil {
		t.Errorf("the result is not that of exec --json: %s", got.body)
	}
	s.want(s.do("POST", path+"/exec", "", object{"source": "1/0"}), 200, `"type":"ZeroDivisionError"`)
	s.want(s.do("GET", path+"/variables", "", nil), 200, `{"name":"n","kind":"int"}`)
	s.want(s.do("PUT", path+"/variables/day", "", object{"value": object{"$date": "2026-01-31"}}), 204, "")
	s.exec(path, "", "day.month, n", "(1, 203)")
	s.want(s.do("GET", path+"/variables/day", "", nil), 200, `{"value":{"$date":"2026-01-31"}}`)
	s.want(s.do("DELETE", path+"/variables/day", "", nil), 204, "")
	s.want(s.do("GET", path+"/variables/day", "", nil), 400, "NameError")
	s.want(s.do("DELETE", path+"/variables/day", "", nil), 404, "no variable")

	file := s.upload("", "a file")
	added := s.do("POST", path+"/contexts", "", object{"contexts": []object{{"name": "more", "file": file}}})
	s.want(added, 200, `"name":"hay.txt","variable":"more"`)
	s.exec(path, "", "more, context_2", "('a file', 'a file')")

	forked := s.do("POST", path+"/fork", "", object{"name": "fork"}, "Idempotency-Key", "f")
	s.want(forked, 200, `"name":"fork"`)
	fork := "/v1/sessions/" + s.text(forked, "id")
	again := s.do("POST", path+"/fork", "", object{"name": "fork"}, "Idempotency-Key", "f")
	if s.text(again, "id") != s.text(forked, "id") {
		t.Errorf("a repeated fork is another session: %s", again.body)
	}
	s.exec(fork, "", "n += 1; n, more", "(204, 'a file')")
	s.exec(path, "", "n", "203")
	s.want(s.do("DELETE", path, "", nil), 204, "")
	s.want(s.do("GET", path, "", nil), 404, "there is no session")
	s.exec(fork, "", "len(log)", "2200")
}

func TestSessionsAreListedAndFound(t *testing.T) {
	s := start(t, t.TempDir(), counting(t), nil)
	body := object{"name": "triage", "contexts": []object{{"text": "a"}}}
	first := s.open("", body)
	for _, same := range []object{body, {"name": "triage"}} {
		if s.open("", same) != first {
			t.Error("the name leads to another session")
		}
	}
	s.want(s.do("POST", "/v1/sessions", "", object{"name": "triage", "out": true}), 409, "name_taken")
	send := func(out bool) answer {
		return s.do("POST", "/v1/sessions", "", object{"out": out}, "Idempotency-Key", "w")
	}
	if a, b := send(false), send(false); s.text(a, "id") != s.text(b, "id") {
		t.Error("a repeated request makes another session")
	}
	s.want(send(true), 422, "take a new one")

	var ids []string
	for next := ""; ; {
		page := s.do("GET", "/v1/sessions?limit=1&after="+next, "", nil)
		var got struct {
			Sessions []struct{ ID string }
			Next     string
		}
		if err := json.Unmarshal([]byte(page.body), &got); err != nil || len(got.Sessions) != 1 {
			t.Fatalf("%v: %s", err, page.body)
		}
		ids = append(ids, got.Sessions[0].ID)
		if next = got.Next; next == "" {
			break
		}
	}
	if len(ids) != 2 || "/v1/sessions/"+ids[1] != first {
		t.Errorf("the pages have %v", ids)
	}
	s.want(s.do("GET", "/v1/sessions?name=triage", "", nil), 200, first[len("/v1/sessions/"):])
	s.want(s.do("GET", "/v1/tiers", "", nil), 200, `"name":"wasm"`)
}

// TestSessionsThatRestMakeRoom uses more sessions than can be open at the same time.
func TestSessionsThatRestMakeRoom(t *testing.T) {
	s := start(t, t.TempDir(), counting(t), func(o *Options) { o.OpenSessions = 2 })
	var paths []string
	for i := range 6 {
		path := s.open("", object{"contexts": []object{{"name": "mine", "text": jsonNumber(i)}}})
		s.exec(path, "", "n = int(mine); n", jsonNumber(i))
		paths = append(paths, path)
	}
	if all, open := s.server.kept.Load(); all != 6 || open != 2 {
		t.Errorf("%d sessions, %d of them open", all, open)
	}
	s.want(s.do("GET", paths[0], "", nil), 200, `"status":"saved"`)
	s.want(s.do("GET", paths[0]+"/variables", "", nil), 200, `{"name":"n","kind":"int"}`)
	for i, path := range paths {
		s.exec(path, "", "n += 1; n, mine", "("+jsonNumber(i+1)+", '"+jsonNumber(i)+"')")
	}
}

func TestASessionOutlivesItsServer(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir, counting(t), nil)
	path := s.open("", object{"name": "triage", "contexts": []object{{"name": "log", "text": hay}}})
	s.exec(path, "", "n = log.count('needle'); g = (i for i in 'ab'); n", "200")
	s.drain()
	s.want(s.do("POST", path+"/exec", "", object{"source": "n"}), 503, "stopping")
	s.stop()

	next := start(t, dir, counting(t), nil)
	if next.open("", object{"name": "triage"}) != path {
		t.Error("the next server has another session of this name")
	}
	next.want(next.do("GET", path, "", nil), 200, `"left_behind":[{"name":"g"`)
	got := next.exec(path, "", "n, len(log)", "(200, 2200)")
	if next.field(got, "lost") != nil {
		t.Errorf("something is lost: %s", got.body)
	}
}

// leftBy returns a copy of a data folder in its current state, as if its server had been killed.
func leftBy(tb testing.TB, dir string) string {
	tb.Helper()
	left := tb.TempDir()
	if err := os.CopyFS(left, os.DirFS(dir)); err != nil {
		tb.Fatal(err)
	}
	return left
}

// TestACrashedSessionSaysSo checks that another server reports the loss of a session that was not
// saved.
func TestACrashedSessionSaysSo(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir, counting(t), func(o *Options) { o.Rest = time.Hour })
	path := s.open("", object{"durability": "idle"})
	s.exec(path, "", "n = 1; n", "1")
	next := start(t, leftBy(t, dir), counting(t), nil)
	got := next.do("POST", path+"/exec", "", object{"source": "'n' in globals()"})
	next.want(got, 200, `"reason":"The session could not be kept as it was`)
	if next.text(got, "echo") != "False" {
		t.Errorf("the variables are there: %s", got.body)
	}
	if got := next.exec(path, "", "1", "1"); next.field(got, "lost") != nil {
		t.Errorf("the loss is said twice: %s", got.body)
	}
}

// run starts a snippet that only an interrupt ends, and returns a channel for its answer.
func (s *tested) run(path string) <-chan answer {
	s.Helper()
	answers := make(chan answer, 1)
	go func() { answers <- s.do("POST", path+"/exec", "", object{"source": "n = 1\nwhile True: pass"}) }()
	for range 10_000 {
		if s.text(s.do("GET", path, "", nil), "status") == "running" {
			return answers
		}
		time.Sleep(time.Millisecond)
	}
	s.Fatal("the session does not run")
	return nil
}

func TestASnippetIsInterrupted(t *testing.T) {
	s := start(t, t.TempDir(), counting(t), nil)
	path := s.open("", object{})
	s.exec(path, "", "kept = 1; kept", "1")
	running := s.run(path)
	busy := s.do("POST", path+"/exec", "", object{"source": "1"})
	s.want(busy, 409, `"code":"in_use"`)
	if busy.header.Get("Retry-After") == "" {
		t.Error("the answer does not say when to try again")
	}
	s.want(s.do("POST", path+"/interrupt", "", nil), 204, "")
	s.want(<-running, 409, `"code":"interrupted"`)
	s.exec(path, "", "kept", "1")
	s.want(s.do("POST", path+"/interrupt", "", nil), 204, "") // nothing runs

	running = s.run(path)
	s.want(s.do("DELETE", path, "", nil), 204, "")
	s.want(<-running, 409, `"code":"deleted"`)
	s.want(s.do("POST", path+"/exec", "", object{"source": "1"}), 404, "")
}

// TestADrainInterruptsSnippets stops a server during a snippet, and checks that the session keeps
// its variables.
func TestADrainInterruptsSnippets(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir, counting(t), nil)
	path := s.open("", object{})
	s.exec(path, "", "kept = 1; kept", "1")
	running := s.run(path)
	s.drain()
	s.want(<-running, 503, `"code":"draining"`)
	s.stop()

	next := start(t, dir, counting(t), nil)
	next.exec(path, "", "kept", "1")
}

func TestSnapshotsBringASessionBack(t *testing.T) {
	s := start(t, t.TempDir(), counting(t), nil)
	path := s.open("", object{})
	s.exec(path, "", "n = 1; n", "1")
	taken := s.do("POST", path+"/snapshots", "", nil)
	s.want(taken, 200, `"id":"snap_`)
	one := path + "/snapshots/" + s.text(taken, "id")
	s.exec(path, "", "n = 2; m = 3; n", "2")
	s.want(s.do("GET", path+"/snapshots", "", nil), 200, s.text(taken, "id"))
	content := s.do("GET", one, "", nil)
	if !strings.HasPrefix(content.body, "rlm-snapshot\n") || content.header.Get("Content-Disposition") != "attachment" {
		t.Errorf("the snapshot is %d %.40q %v", content.status, content.body, content.header)
	}

	s.want(s.do("POST", one+"/restore", "", nil), 200, path[len("/v1/sessions/"):])
	s.want(s.do("GET", path+"/variables", "", nil), 200, `{"variables":[{"name":"n","kind":"int"}]}`)
	s.exec(path, "", "n, 'm' in globals()", "(1, False)")
	s.want(s.do("POST", path+"/contexts", "", object{"contexts": []object{{"text": "x"}}}), 200, "")
	s.want(s.do("POST", one+"/restore", "", nil), 409, "with 0 contexts")
	s.exec(path, "", "n, context", "(1, 'x')")
	s.want(s.do("DELETE", one, "", nil), 204, "")
	s.want(s.do("GET", one, "", nil), 404, "no snapshot")
	for _, bad := range []string{"%2e%2e%2fstate", "snap_A", "state"} {
		if got := s.do("GET", path+"/snapshots/"+bad, "", nil); got.status == 200 {
			t.Errorf("%s is a snapshot: %s", bad, got.body)
		}
	}
}

func TestFilesOfSnippetsAreSent(t *testing.T) {
	s := start(t, t.TempDir(), counting(t), nil)
	plain := s.open("", object{})
	s.want(s.do("GET", plain+"/files", "", nil), 409, "no_out")
	path := s.open("", object{"out": true})
	s.exec(path, "", "import os\nos.makedirs('/out/a')\nopen('/out/a/page.html', 'w').write('<script>')", "8")
	s.want(s.do("GET", path+"/files", "", nil), 200, `"file":"a/page.html","type":"text/html","bytes":8`)
	got := s.do("GET", path+"/files/content?name=a/page.html", "", nil)
	if got.body != "<script>" || got.header.Get("Content-Type") != "application/octet-stream" {
		t.Errorf("the file is %d %q %v", got.status, got.body, got.header)
	}
	for _, bad := range []string{"../state", "/etc/passwd", "a", ".", "a/../../x", "none"} {
		s.want(s.do("GET", path+"/files/content?name="+bad, "", nil), 404, "no file")
	}
}

func TestRequestsForSessionsAreRefusedWithAReason(t *testing.T) {
	s := start(t, t.TempDir(), counting(t), nil)
	path := s.open("", object{})
	deep := strings.Repeat("[", 100_000)
	for _, c := range []struct {
		method, path string
		body         any
		status       int
		text         string
	}{
		{"POST", "/v1/sessions", "{", 400, "unexpected end of JSON"},
		{"POST", "/v1/sessions", deep, 400, ""},
		{"POST", "/v1/sessions", object{"names": "x"}, 422, "unexpected property"},
		{"POST", "/v1/sessions", object{"name": "../x"}, 400, "cannot name a session"},
		{"POST", "/v1/sessions", object{"profile": "none"}, 404, "this server has [default]"},
		{"POST", "/v1/sessions", object{"limits": object{"wall_ms": -1}}, 400, "is not between"},
		{"POST", "/v1/sessions", object{"limits": object{"memory_bytes": 1 << 50}}, 400, "memory_bytes"},
		{"POST", "/v1/sessions", object{"policy": object{"tier": "local"}}, 400, "does not allow tier local"},
		{"POST", "/v1/sessions", object{"policy": object{"hosts": []string{"x:1"}}}, 400, "does not allow the host"},
		{"POST", "/v1/sessions", object{"contexts": []object{{}}}, 400, "one of text, value and file"},
		{"POST", "/v1/sessions", object{"contexts": []object{{"text": "a", "value": 1}}}, 400, "one of text"},
		{"POST", "/v1/sessions", object{"contexts": []object{{"file": "none"}}}, 404, "no file"},
		{"POST", "/v1/sessions", object{"contexts": []object{{"name": "a b", "text": "x"}}}, 400, "Python identifier"},
		{"POST", "/v1/sessions", object{"name": strings.Repeat("x", 2<<20)}, 413, "body_too_large"},
		{"POST", path + "/exec", object{}, 422, "source"},
		{"POST", path + "/exec", object{"source": "1", "language": "perl"}, 422, "language"},
		{"POST", path + "/exec", object{"source": "1", "variables": object{"a b": 1}}, 400, "identifier"},
		{"POST", path + "/exec", object{"source": "1", "variables": object{"a": object{"$int": "x"}}}, 400, ""},
		{"PUT", path + "/variables/class", object{"value": 1}, 400, "keyword"},
		{"PUT", path + "/variables/x", object{"value": object{"$none": 1}}, 400, ""},
		{"GET", path + "/variables/llm_query", nil, 400, "reserved"},
		{"DELETE", path + "/variables/os%3Bprint", nil, 400, "cannot be deleted"},
		{"GET", "/v1/sessions?limit=0", nil, 422, "limit"},
		{"PATCH", path, nil, 404, "there is no PATCH"},
	} {
		got := s.do(c.method, c.path, "", c.body)
		s.want(got, c.status, c.text)
		if kind := got.header.Get("Content-Type"); kind != "application/problem+json" || s.text(got, "code") == "" {
			t.Errorf("%s %.60s is answered by %s %.200s", c.method, c.path, kind, got.body)
		}
	}
	s.exec(path, "", "1", "1")
	form := s.do("POST", "/v1/sessions", "", "a=b", "Content-Type", "application/x-www-form-urlencoded")
	s.want(form, 415, "the header Content-Type: application/json")
}

func TestAKeyBoundsItsSessions(t *testing.T) {
	s := start(t, t.TempDir(), counting(t), func(o *Options) { o.Open, o.Sessions = false, 3 })
	two := s.key(access.Key{Name: "two", Limits: access.Limits{Sessions: 2, Files: 1_000}})
	first := s.open(two, object{})
	second := s.open(two, object{"contexts": []object{{"text": strings.Repeat("x", 500)}}})
	s.want(s.do("POST", "/v1/sessions", two, object{}), 429, "2 sessions")
	s.want(s.do("POST", first+"/fork", two, nil), 429, "2 sessions")
	s.want(s.do("POST", second+"/contexts", two, object{"contexts": []object{{"text": strings.Repeat("y", 600)}}}),
		413, "quota_used_up")
	s.exec(second, two, "len(context)", "500")
	s.want(s.do("DELETE", second, two, nil), 204, "")
	s.open(two, object{})

	other := s.key(access.Key{Name: "other"})
	s.open(other, object{})
	s.want(s.do("POST", "/v1/sessions", other, object{}), 503, "keeps 3 sessions")
}

func TestTheAuditLogHasSessions(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir, counting(t), nil)
	path := s.open("", object{})
	s.exec(path, "", "'a secret'", "'a secret'")
	data, err := os.ReadFile(filepath.Join(dir, "audit.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	id := path[len("/v1/sessions/"):]
	for _, want := range []string{`"object":"` + id + `"`, `"action":"POST ` + path + `/exec"`} {
		if !strings.Contains(string(data), want) {
			t.Errorf("the audit log lacks %s: %s", want, data)
		}
	}
	if strings.Contains(string(data)+s.logs.String(), "a secret") {
		t.Error("a log has what a snippet wrote")
	}
	s.want(s.do("GET", "/metrics", "", nil), 200, `rlm_session_snippets_total{status="ok"} 1`)
}
