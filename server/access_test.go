package server

import (
	"bytes"
	"io/fs"
	"mime/multipart"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/rlmhq/rlm/server/internal/access"
	"github.com/rlmhq/rlm/server/internal/openai"
)

// lockedBuffer is a buffer for several goroutines.
type lockedBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

// Write implements [io.Writer].
func (b *lockedBuffer) Write(data []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(data)
}

// String returns everything that was written.
func (b *lockedBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.String()
}

// upload uploads a file and returns its ID.
func (s *tested) upload(key, content string) string {
	s.Helper()
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	file, err := w.CreateFormFile("file", "hay.txt")
	if err == nil {
		_, err = file.Write([]byte(content))
	}
	if err == nil {
		err = w.WriteField("purpose", "user_data")
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		s.Fatal(err)
	}
	got := s.do("POST", "/v1/files", key, form.String(), "Content-Type", w.FormDataContentType())
	s.want(got, 200, `"purpose":"user_data"`)
	return s.text(got, "id")
}

// locked configures a server that requires keys.
func locked(o *Options) { o.Open = false }

// TestTenantsSeeNothingOfOthers checks that each request for another tenant's resources fails.
func TestTenantsSeeNothingOfOthers(t *testing.T) {
	s := start(t, t.TempDir(), counting(t), locked)
	alice, bob := s.key(access.Key{Name: "alice"}), s.key(access.Key{Name: "bob", Scopes: []access.Scope{access.Admin}})
	file := s.upload(alice, hay)
	made := s.do("POST", "/v1/responses", alice, object{"model": "rlm/default", "input": []object{{
		"role": "user", "content": []object{{"type": "input_file", "file_id": file}},
	}}})
	s.want(made, 200, `"status":"completed"`)
	ids := map[string]string{"responses": s.text(made, "id"), "files": file}
	talk := s.do("POST", "/v1/conversations", alice, object{})
	s.want(talk, 200, `"object":"conversation"`)
	ids["conversations"] = s.text(talk, "id")

	for pattern, scope := range (&openai.API{}).Routes() {
		method, path, _ := strings.Cut(pattern, " ")
		kind := strings.Split(path, "/")[2]
		path = strings.NewReplacer(
			"{id}", ids[kind], "{owner}", "rlm", "{name}", "default", "{item}", "msg_1").Replace(path)
		s.want(s.do(method, path, "", nil), 401, "rlm keys create")
		s.want(s.do(method, path, "rlm_UNKNOWN", nil), 401, "unknown or was revoked")
		weak := s.key(access.Key{
			Name: "weak-" + strings.NewReplacer("/", "-", " ", "", "{", "", "}", "").Replace(pattern), Tenant: "alice",
			Scopes: []access.Scope{access.Approve},
		})
		s.want(s.do(method, path, weak, nil), 403, "lacks the scope "+string(scope))
		if strings.Contains(pattern, "{id}") {
			s.want(s.do(method, path, bob, nil), 404, "there is no ")
		}
	}

	for path, secret := range map[string]string{"/v1/files": file, "/v1/responses": ids["responses"]} {
		if got := s.do("GET", path, bob, nil); strings.Contains(got.body, secret) {
			t.Errorf("%s shows another tenant's: %s", path, got.body)
		}
	}
	s.want(s.do("POST", "/v1/responses", bob, object{
		"model": "rlm/default", "input": "hi", "previous_response_id": ids["responses"],
	}), 404, "there is no response")
	s.want(s.do("POST", "/v1/responses", bob, object{"model": "rlm/default", "input": []object{{
		"role": "user", "content": []object{{"type": "input_file", "file_id": file}},
	}}}), 400, "there is no file")
	s.want(s.do("GET", "/v1/responses/"+ids["responses"], alice, nil), 200, ids["responses"])
	s.want(s.do("GET", "/v1/files/"+file+"/content", alice, nil), 200, hay)
}

func TestKeysEndAndAreLimited(t *testing.T) {
	s := start(t, t.TempDir(), counting(t), locked)
	short := s.key(access.Key{Name: "short", Limits: access.Limits{Requests: 2}})
	s.want(s.do("GET", "/v1/models", short, nil), 200, "rlm/default")
	s.want(s.do("GET", "/v1/models", short, nil), 200, "rlm/default")
	got := s.do("GET", "/v1/models", short, nil)
	s.want(got, 429, "2 requests per minute")
	if got.header.Get("Retry-After") == "" {
		t.Error("the answer does not say when to try again")
	}

	poor := s.key(access.Key{Name: "poor", Limits: access.Limits{USD: 5, Period: access.Day}})
	body := chat("hi")
	body["max_tokens"] = 10
	s.want(s.do("POST", "/v1/chat/completions", poor, body), 200, "Hello.")
	body["max_tokens"] = 8_000 // may cost $8
	s.want(s.do("POST", "/v1/chat/completions", poor, body), 429, "insufficient_quota")

	small := s.key(access.Key{Name: "small", Limits: access.Limits{Files: 10}})
	id := s.upload(small, "ten bytes.")
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	file, _ := w.CreateFormFile("file", "x")
	_, _ = file.Write([]byte("x"))
	_ = w.Close()
	full := s.do("POST", "/v1/files", small, form.String(), "Content-Type", w.FormDataContentType())
	s.want(full, 413, "more than 0 bytes")
	s.want(s.do("DELETE", "/v1/files/"+id, small, nil), 200, "deleted")

	if err := s.server.keys.Revoke(t.Context(), "poor"); err != nil {
		t.Fatal(err)
	}
	s.want(s.do("GET", "/v1/models", poor, nil), 401, "was revoked")
}

func TestAKeyBoundsItsRuns(t *testing.T) {
	model := newHeld(counting(t))
	s := start(t, t.TempDir(), model, locked)
	key := s.key(access.Key{Name: "one", Limits: access.Limits{Runs: 1}})
	id := s.text(s.do("POST", "/v1/responses", key, object{
		"model": "rlm/default", "input": "wait", "background": true,
	}), "id")
	<-model.asked
	s.want(s.do("POST", "/v1/chat/completions", key, chat("hi")), 429, "1 runs at the same time")
	s.want(s.do("POST", "/v1/responses/"+id+"/cancel", key, nil), 200, `"status":"cancelled"`)
	s.want(s.do("POST", "/v1/chat/completions", key, chat("hi")), 200, "Hello.")
}

func TestPagesOfStrangersAreRefused(t *testing.T) {
	s := start(t, t.TempDir(), counting(t), func(o *Options) { o.Origins = []string{"https://chat.example.org"} })
	for _, c := range []struct {
		header []string
		status int
	}{
		{[]string{"Host", "localhost:80"}, 200},
		{[]string{"Host", "[::1]"}, 200},
		{[]string{"Host", "evil.example.org"}, 421}, // a name that resolves to this machine
		{[]string{"Host", "127.0.0.1.example.org:80"}, 421},
		{[]string{"Host", ""}, 200}, // the client then sends the server's own address
		{[]string{"Origin", "https://evil.example.org"}, 403},
		{[]string{"Origin", "null"}, 403},
		{[]string{"Origin", s.web.URL}, 200},
		{[]string{"Origin", "https://chat.example.org"}, 200},
		{[]string{"Sec-Fetch-Site", "cross-site"}, 403}, // such as for a picture, without an origin
		{[]string{"Sec-Fetch-Site", "same-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "iframe"}, 403},
		{[]string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "navigate", "Sec-Fetch-Dest", "document"}, 200},
		{[]string{"Sec-Fetch-Site", "same-origin"}, 200},
	} {
		if got := s.do("GET", "/v1/models", "", nil, c.header...); got.status != c.status {
			t.Errorf("%q gets %d %s, want %d", c.header, got.status, got.body, c.status)
		}
	}

	asked := []string{"Origin", "https://chat.example.org", "Access-Control-Request-Method", "POST"}
	got := s.do("OPTIONS", "/v1/chat/completions", "", nil, asked...)
	if got.status != 204 || got.header.Get("Access-Control-Allow-Origin") != "https://chat.example.org" {
		t.Errorf("an allowed page gets %d %v", got.status, got.header)
	}
	asked[1] = "https://evil.example.org"
	if got := s.do("OPTIONS", "/v1/chat/completions", "", nil, asked...); got.status != 403 {
		t.Errorf("another page gets %d", got.status)
	}
}

// TestSecretsAreNowhere checks that nothing that the server writes about a request contains the key
// or the question.
func TestSecretsAreNowhere(t *testing.T) {
	dir := t.TempDir()
	s := start(t, dir, counting(t), locked)
	key := s.key(access.Key{Name: "alice"})
	s.want(s.do("POST", "/v1/chat/completions", key, chat(hay, "how many?")), 200, "200")
	s.want(s.do("GET", "/v1/models", "rlm_GUESSED", nil), 401, "")

	found := map[string]bool{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		above, err := os.Stat(filepath.Dir(path))
		if err != nil {
			return err
		}
		isOwner := entry.Name() == claimFile // readable, to tell others who uses the folder
		if info.Mode().Perm()&0o077 != 0 && !isOwner && above.Mode().Perm()&0o077 != 0 {
			t.Errorf("others can read %s: %v", path, info.Mode())
		}
		found[entry.Name()] = true
		data, err := os.ReadFile(path)
		if bytes.Contains(data, []byte(key)) || bytes.Contains(data, []byte("rlm_GUESSED")) {
			t.Errorf("%s has a key", path)
		}
		return err
	})
	if err != nil || !found["audit.jsonl"] || !found["serve.db"] || !found["events.jsonl"] {
		t.Errorf("the data folder has other files: %v, %v", found, err)
	}
	if text := s.logs.String(); strings.Contains(text, key) || strings.Contains(text, "needle") || text == "" {
		t.Errorf("the log has a secret, or nothing: %s", text)
	}
}
