package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// served is rlm serve with MCP clients.
type served struct {
	t       *testing.T
	address string // without a path
}

// replies defines a model that answers one question with code, another slowly, and a third with a
// tool that asks a person.
const replies = `version: 1
rules:
  - when: {last: "how many lines"}
    reply: "` + "```repl\\nFINAL(len(context.splitlines()))\\n```" + `"
  - when: {last: "take your time"}
    reply: "` + "```repl\\nimport time\\nFINAL(time.sleep(3) or 'done')\\n```" + `"
  - when: {last: "mail them"}
    reply: "` + "```repl\\nFINAL(mail.send(text='ann'))\\n```" + `"
`

// serveMCP starts rlm serve with flags. The server ends with the test.
func serveMCP(t *testing.T, folder string, flags ...string) *served {
	t.Helper()
	writeFile(t, folder, "replies.yaml", replies)
	cmd := exec.Command("rlm", append([]string{
		"serve", "--allow-sampled", "--listen", "127.0.0.1:0", "--data", filepath.Join(folder, "data"), "--bypass", "0",
		"--model", "scripted/" + filepath.Join(folder, "replies.yaml"),
	}, flags...)...)
	cmd.Dir = folder
	pipe, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })

	s := &served{t: t}
	said := ""
	lines := bufio.NewScanner(pipe)
	for s.address == "" && lines.Scan() {
		said += lines.Text() + "\n"
		s.address = strings.TrimSuffix(regexp.MustCompile(`http://\S+`).FindString(lines.Text()), "/v1")
	}
	if s.address == "" {
		t.Fatalf("it does not serve: %s", said)
	}
	go func() { _, _ = io.Copy(io.Discard, pipe) }()
	return s
}

// keyed adds a key to requests.
type keyed struct{ key string }

// RoundTrip implements [http.RoundTripper].
func (k keyed) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+k.key)
	return http.DefaultTransport.RoundTrip(r)
}

// connect connects a client with a key, using a protocol version.
func (s *served) connect(key, version string, options *mcp.ClientOptions) host {
	s.t.Helper()
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, options)
	session, err := client.Connect(s.t.Context(), &mcp.StreamableClientTransport{
		Endpoint: s.address + "/mcp", HTTPClient: &http.Client{Transport: keyed{key}},
	}, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = session.Close() })
	return host{session, s.t}
}

// do sends a request with a key and headers, and returns the status and the body.
func (s *served) do(method, path, key string, header http.Header, body any) (int, string) {
	s.t.Helper()
	data, isRaw := body.(json.RawMessage)
	if !isRaw {
		var err error
		if data, err = json.Marshal(body); err != nil {
			s.t.Fatal(err)
		}
	}
	req, err := http.NewRequestWithContext(s.t.Context(), method, s.address+path, bytes.NewReader(data))
	if err != nil {
		s.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/json, text/event-stream")
	for name, values := range header {
		req.Header[name] = values
	}
	if host := header.Get("Host"); host != "" {
		req.Host = host
	}
	if key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	response, err := http.DefaultClient.Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return response.StatusCode, string(text)
}

// newKey makes a key of the server.
func newKey(t *testing.T, folder, name string, flags ...string) string {
	t.Helper()
	cmd := exec.Command("rlm", append([]string{
		"keys", "create", name, "--data", filepath.Join(folder, "data"),
	}, flags...)...)
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(string(out))
}

// TestTenantsComeOverMCP checks that a key has its own handles and records, in both generations of
// the protocol.
func TestMCPHostsRunCodeWithoutAModel(t *testing.T) {
	t.Parallel()
	s := serveMCP(t, t.TempDir(), "--model", "")
	h := s.connect("", "", nil)
	if got := h.want("rlm_exec", arguments{"source": "print(6*7)"}); got["stdout"] != "42\n" {
		t.Errorf("got %v", got)
	}
	if slices.Contains(h.names(), "rlm_ask") {
		t.Error("rlm_ask is offered without a model")
	}
	if status, page := s.do("GET", "/", "", nil, nil); status != http.StatusOK || !strings.Contains(page, "<html") {
		t.Errorf("the viewer is not served: %d", status)
	}
	header := http.Header{"Content-Type": {"application/json"}}
	status, answer := s.do("POST", "/v1/runs", "", header, object{"question": "why?"})
	if status != http.StatusUnprocessableEntity || !strings.Contains(answer, "--model") {
		t.Errorf("%d: %s", status, answer)
	}
}

func TestTenantsComeOverMCP(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	ann, bob := newKey(t, folder, "ann"), newKey(t, folder, "bob", "--scope", "run,read")
	reader := newKey(t, folder, "eve", "--scope", "read")
	s := serveMCP(t, folder, "--require-key", "--mcp", servers(t, folder, "kind"), "--max-tool-calls", "2")

	handle, run := any(nil), ""
	for _, version := range []string{"2025-06-18", "2026-07-28"} {
		h := s.connect(ann, version, nil)
		if handle == nil {
			handle = h.want("rlm_open", arguments{"contexts": []arguments{{"text": "one\ntwo"}}})["session"]
		}
		got := h.want("rlm_exec", arguments{"session": handle, "source": "print(kind.say(text=context[:3]))"})
		if got["stdout"] != "hello one\n" || got["tier"] != "wasm" {
			t.Errorf("%s: got %v", version, got)
		}
		got = h.want("rlm_ask", arguments{"session": handle, "question": "how many lines?"})
		if got["answer"] != 2.0 || got["status"] != "answered" {
			t.Errorf("%s: got %v", version, got)
		}
		run, _ = got["run"].(string)
		read, err := h.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "rlm://runs/" + run})
		if err != nil || !strings.Contains(read.Contents[0].Text, "how many lines?") {
			t.Errorf("%s: %v, %v", version, read, err)
		}
	}
	h := s.connect(ann, "", nil)
	checkSchemas(t, h)
	if _, failed := h.call("rlm_exec", arguments{"session": handle, "source": "kind.say(text='x')"}); !strings.Contains(
		failed, "the budget of 2 tool calls is used up") {
		t.Errorf("got %q", failed)
	}
	if status, list := s.do("GET", "/v1/runs", ann, nil, nil); status != 200 || strings.Count(list, run) != 1 {
		t.Errorf("%d: %s", status, list)
	}

	other := s.connect(bob, "", nil)
	if _, failed := other.call("rlm_exec", arguments{"session": handle, "source": "1"}); !strings.Contains(
		failed, "there is no session") {
		t.Errorf("another key uses the handle: %q", failed)
	}
	if read, err := other.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "rlm://runs/" + run}); err == nil {
		t.Errorf("another tenant reads a run: %v", read)
	}

	hello := object{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": object{
		"protocolVersion": "2025-06-18", "capabilities": object{}, "clientInfo": object{"name": "x", "version": "1"},
	}}
	for _, c := range []struct {
		key    string
		header http.Header
		status int
	}{
		{"", nil, 401},
		{"rlm_" + strings.Repeat("x", 40), nil, 401},
		{reader, nil, 403},
		{ann, http.Header{"Origin": {"https://evil.example"}}, 403},
		{ann, http.Header{"Host": {"evil.example"}}, 200}, // a web page cannot send a key
	} {
		if status, body := s.do("POST", "/mcp", c.key, c.header, hello); status != c.status {
			t.Errorf("%v: %d: %s", c, status, body)
		}
	}
}

// TestKeysDoNotShareObjects checks that another key cannot use the objects of a key, even by name.
func TestKeysDoNotShareObjects(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	ann, bob := newKey(t, folder, "ann"), newKey(t, folder, "bob")
	blind := newKey(t, folder, "blind", "--tenant", "ann", "--scope", "run")
	s := serveMCP(t, folder, "--require-key")

	h := s.connect(ann, "2025-06-18", nil)
	handle := h.want("rlm_open", arguments{"contexts": []arguments{{"text": "secret"}}})["session"]
	snippet := h.want("rlm_exec", arguments{"session": handle, "source": "1"})["run"]
	run := h.want("rlm_ask", arguments{"session": handle, "question": "how many lines?"})["run"]
	file := s.upload(ann, "secret")
	if got := h.want("rlm_open", arguments{"contexts": []arguments{{"path": file}}}); got["session"] == nil {
		t.Errorf("got %v", got)
	}
	task := s.requestOf(ann, "tools/call", "rlm_exec", object{
		"name": "rlm_exec", "arguments": object{"source": "import time\nwhile True: time.sleep(1)"},
	})["taskId"]
	if task == nil {
		t.Fatal("a long call is no task")
	}

	other := s.connect(bob, "", nil)
	for tool, args := range map[string]arguments{
		"rlm_exec":  {"session": handle, "source": "context"},
		"rlm_ask":   {"session": handle, "question": "how many lines?"},
		"rlm_files": {"session": handle},
		"rlm_close": {"session": handle},
		"rlm_open":  {"contexts": []arguments{{"path": file}}},
	} {
		if got, failed := other.call(tool, args); !strings.Contains(failed, "there is no ") {
			t.Errorf("%s: %v, %q", tool, got, failed)
		}
	}
	for _, id := range []any{snippet, run} {
		uri := fmt.Sprint("rlm://runs/", id)
		if _, err := h.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri}); err != nil {
			t.Errorf("its own key cannot read %s: %v", uri, err)
		}
		if got, err := other.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri}); err == nil {
			t.Errorf("another tenant reads %v", got.Contents[0].Text)
		}
	}
	for _, method := range []string{"tasks/get", "tasks/update", "tasks/cancel"} {
		if got := s.requestOf(bob, method, fmt.Sprint(task), object{"taskId": task}); got["code"] != -32602.0 {
			t.Errorf("%s: %v", method, got)
		}
	}
	for _, method := range []string{"GET", "DELETE"} {
		header := http.Header{"Mcp-Session-Id": {h.ID()}}
		if status, body := s.do(method, "/mcp", bob, header, nil); status != http.StatusNotFound {
			t.Errorf("%s of another's session: %d %s", method, status, body)
		}
	}
	got := h.want("rlm_exec", arguments{"session": handle, "source": "print(context)"})
	if got["stdout"] != "secret\n" {
		t.Errorf("the handle has %v", got)
	}
	if got := s.requestOf(ann, "tasks/get", fmt.Sprint(task), object{"taskId": task}); got["status"] != "working" {
		t.Errorf("the task became %v", got)
	}

	// The scope read also applies here.
	same := s.connect(blind, "", nil)
	uri := fmt.Sprint("rlm://runs/", run)
	if _, err := same.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: uri}); err == nil ||
		!strings.Contains(err.Error(), "the key lacks the scope read") {
		t.Errorf("a key without the scope read gets %v", err)
	}

	log, err := os.ReadFile(filepath.Join(folder, "data", "audit.jsonl"))
	for key, outcome := range map[string]string{"ann": "ok", "bob": "failed"} {
		noted := regexp.MustCompile(`"request":"req_\w+","key":"` + key + `","key_id":"key_\w+","tenant":"` + key +
			`","action":"mcp tools/call","object":"rlm_exec","outcome":"` + outcome + `"`)
		if !noted.Match(log) {
			t.Errorf("the audit log has no call of %s that is %s: %s", key, outcome, log)
		}
	}
	if err != nil || !strings.Contains(string(log), `"key":"bob"`) || strings.Contains(string(log), ann) {
		t.Errorf("the audit log: %v %s", err, log)
	}
}

// TestClientsAreBounded checks the limit on a client's data, which applies before decoding, and the
// limit on a client's handles.
func TestClientsAreBounded(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	keys := []string{newKey(t, folder, "ann"), newKey(t, folder, "bob", "--max-runs", "1"), newKey(t, folder, "eve")}
	s := serveMCP(t, folder, "--require-key", "--max-open-sessions", "2", "--max-body", "32MB")

	call := func(values string) string {
		return `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"rlm_open","arguments":` +
			`{"contexts":[{"value":[` + values + `0]}]}}}`
	}
	for _, version := range []string{"2025-06-18", "2026-07-28"} {
		header := http.Header{"Mcp-Protocol-Version": {version}}
		for text, want := range map[string]int{
			call(strings.Repeat("[],", 1<<20)):                http.StatusRequestEntityTooLarge,
			call(`"` + strings.Repeat("x", 17<<20) + `",`):    http.StatusRequestEntityTooLarge,
			call(`"` + strings.Repeat("x", 33<<20) + `",`):    http.StatusRequestEntityTooLarge,
			call(strings.Repeat("[", 1<<19)):                  http.StatusBadRequest,
			`[` + strings.Repeat(`{"jsonrpc":"2.0"},`, 1<<19): http.StatusBadRequest,
			pings(101): http.StatusBadRequest,
		} {
			if status, body := s.do("POST", "/mcp", keys[0], header, json.RawMessage(text)); status != want {
				t.Errorf("%s: %.80s: %d %.300s", version, text, status, body)
			} else if want == http.StatusRequestEntityTooLarge && !strings.Contains(body, `"code":"body_too_large"`) {
				t.Errorf("%s: %.80s: no reason: %.300s", version, text, body)
			}
		}
	}

	// In earlier generations of the protocol, clients send batches, which are answered as a whole.
	session := s.connect(keys[0], "2025-03-26", nil).ID()
	header := http.Header{"Mcp-Protocol-Version": {"2025-03-26"}, "Mcp-Session-Id": {session}}
	for n, want := range map[int]int{100: http.StatusOK, 101: http.StatusBadRequest} {
		status, body := s.do("POST", "/mcp", keys[0], header, json.RawMessage(pings(n)))
		if status != want || status == http.StatusOK && strings.Count(body, `"result"`) != n {
			t.Errorf("a batch of %d: %d %.300s", n, status, body)
		}
	}

	// All keys share the number of handles.
	ann, bob := s.connect(keys[0], "", nil), s.connect(keys[1], "", nil)
	first := ann.want("rlm_open", arguments{})["session"]
	ann.want("rlm_open", arguments{})
	const full = "the server has 2 sessions open"
	if _, failed := bob.call("rlm_exec", arguments{"source": "1"}); !strings.Contains(failed, full) {
		t.Errorf("got %q", failed)
	}
	ann.want("rlm_close", arguments{"session": first})
	for range 3 { // each call frees its handle
		_, failed := bob.call("rlm_exec", arguments{"source": "1 +"})
		if failed == "" || strings.Contains(failed, full) {
			t.Errorf("got %q", failed)
		}
	}

	// The key's limit on runs applies to snippets.
	running := make(chan string)
	for range 2 {
		go func() {
			_, failed := bob.call("rlm_exec", arguments{"source": "import time\ntime.sleep(3)"})
			running <- failed
		}()
	}
	if failed := <-running; !strings.Contains(failed, "the key allows 1 runs at the same time") {
		t.Errorf("got %q", failed)
	}
	if failed := <-running; failed != "" {
		t.Errorf("got %q", failed)
	}

	// The number of protocol sessions of a key is limited.
	hello := object{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": object{
		"protocolVersion": "2025-06-18", "capabilities": object{}, "clientInfo": object{"name": "x", "version": "1"},
	}}
	refused := 0
	for range 110 {
		if status, _ := s.do("POST", "/mcp", keys[2], nil, hello); status == http.StatusTooManyRequests {
			refused++
		}
	}
	if refused != 10 {
		t.Errorf("%d of 110 sessions were refused", refused)
	}
	ann.want("rlm_close", arguments{"session": ann.want("rlm_open", arguments{})["session"]})
}

// pings returns a batch of n requests.
func pings(n int) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, i+1)
	}
	return "[" + strings.Join(all, ",") + "]"
}

// checkSchemas fails for result schemas that the official TypeScript SDK refuses. For the SDK, a
// property must be an object, not true.
func checkSchemas(t *testing.T, h host) {
	t.Helper()
	for tool, err := range h.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		output, _ := tool.OutputSchema.(object)
		properties, _ := output["properties"].(object)
		for name, schema := range properties {
			if _, ok := schema.(object); !ok {
				t.Errorf("%s: the schema of %s is %v", tool.Name, name, schema)
			}
		}
	}
}

type object = map[string]any

// allowAll is a person who allows everything.
func allowAll(context.Context, *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	return &mcp.ElicitResult{Action: "accept", Content: object{"allow": true}}, nil
}

// upload uploads a file with a key, and returns its ID.
func (s *served) upload(key, content string) string {
	s.t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	part, err := form.CreateFormFile("file", "a.txt")
	if err == nil {
		_, err = part.Write([]byte(content))
	}
	if err = errors.Join(err, form.WriteField("purpose", "user_data"), form.Close()); err != nil {
		s.t.Fatal(err)
	}

	client := http.Client{Transport: keyed{key}}
	response, err := client.Post(s.address+"/v1/files", form.FormDataContentType(), &body)
	if err != nil {
		s.t.Fatal(err)
	}
	defer response.Body.Close()
	var file struct{ ID string }
	if err := json.NewDecoder(response.Body).Decode(&file); err != nil || file.ID == "" {
		s.t.Fatalf("%v, %+v", err, file)
	}
	return file.ID
}

// TestFilesAreContextsOverMCP refers to an uploaded file by its ID.
func TestFilesAreContextsOverMCP(t *testing.T) {
	t.Parallel()
	s := serveMCP(t, t.TempDir())
	file := s.upload("", "one\ntwo\nthree")
	h := s.connect("", "", nil)
	handle := h.want("rlm_open", arguments{"contexts": []arguments{{"path": file}}})["session"]
	got := h.want("rlm_exec", arguments{"session": handle, "source": "len(context.splitlines())"})
	if got["stdout"] != "3\n" {
		t.Errorf("got %v", got)
	}
	got = h.want("rlm_ask", arguments{"session": handle, "question": "how many lines?"})
	if got["answer"] != 3.0 {
		t.Errorf("got %v", got)
	}
	for _, path := range []string{"/etc/passwd", "../data/records/serve.db", "file-none"} {
		_, failed := h.call("rlm_open", arguments{"contexts": []arguments{{"path": path}}})
		if !strings.Contains(failed, "there is no file") {
			t.Errorf("%s: %q", path, failed)
		}
	}
}

// TestOnlyKeysThatApproveDecide checks that a key without the scope approve cannot allow its own
// calls.
func TestOnlyKeysThatApproveDecide(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	ann, bob := newKey(t, folder, "ann", "--scope", "run,approve"), newKey(t, folder, "bob", "--scope", "run,read")
	s := serveMCP(t, folder, "--require-key", "--mcp", servers(t, folder, "mail"), "--approve", "ask mail__send")
	options := &mcp.ClientOptions{ElicitationHandler: allowAll}

	code := arguments{"source": "try:\n    print(mail.send(text='ann'))\nexcept Exception as e:\n    print(e)"}
	if got := s.connect(ann, "", options).want("rlm_exec", code); got["stdout"] != "sent to ann\n" {
		t.Errorf("got %v", got)
	}
	h := s.connect(bob, "", options)
	if got := h.want("rlm_exec", code); !strings.Contains(fmt.Sprint(got["stdout"]), "asks first") {
		t.Errorf("got %v", got)
	}
	got, _ := h.call("rlm_ask", arguments{"question": "mail them"})
	if got["status"] != "parked" || !strings.Contains(fmt.Sprint(got["reason"]), "/approvals") {
		t.Errorf("got %v", got)
	}
}

// request sends a request of the newest protocol version, from a client that supports tasks, and
// returns the result or the error.
func (s *served) request(method, name string, params object) object {
	s.t.Helper()
	return s.requestOf("", method, name, params)
}

// knowsTasks are the capabilities of a client that supports tasks.
var knowsTasks = object{
	"elicitation": object{}, "extensions": object{"io.modelcontextprotocol/tasks": object{}},
}

// requestOf is like request, with a given key.
func (s *served) requestOf(key, method, name string, params object) object {
	s.t.Helper()
	return s.requestAs(key, knowsTasks, method, name, params)
}

// requestAs is like request, with a given key and a client's capabilities.
func (s *served) requestAs(key string, capabilities object, method, name string, params object) object {
	s.t.Helper()
	params["_meta"] = object{
		"io.modelcontextprotocol/protocolVersion":    "2026-07-28",
		"io.modelcontextprotocol/clientInfo":         object{"name": "test", "version": "1"},
		"io.modelcontextprotocol/clientCapabilities": capabilities,
	}
	_, body := s.do("POST", "/mcp", key, http.Header{
		"Mcp-Protocol-Version": {"2026-07-28"}, "Mcp-Method": {method}, "Mcp-Name": {name},
	}, object{"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
	for line := range strings.Lines(body) {
		line = strings.TrimPrefix(line, "data: ")
		var message struct{ Result, Error object }
		if json.Unmarshal([]byte(line), &message) == nil && message.Result != nil {
			return message.Result
		} else if message.Error != nil {
			return message.Error
		}
	}
	s.t.Fatalf("%s: %s", method, body)
	return nil
}

// until polls a task until its status changes from the given one.
func (s *served) until(id any, status string) object {
	s.t.Helper()
	for {
		got := s.request("tasks/get", fmt.Sprint(id), object{"taskId": id})
		if got["status"] != status {
			return got
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// TestLongCallsBecomeTasks checks that a client that supports tasks can fetch the result of a long
// call later.
func TestLongCallsBecomeTasks(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	s := serveMCP(t, folder, "--mcp", servers(t, folder, "mail"), "--approve", "ask mail__send",
		"--max-runs", "2")
	exec := func(code string) object {
		return s.request("tools/call", "rlm_exec", object{"name": "rlm_exec", "arguments": object{"source": code}})
	}
	if got := exec("6*7"); got["resultType"] != "complete" || got["structuredContent"] == nil {
		t.Errorf("a short call became %v", got)
	}

	first := s.request("tools/call", "rlm_ask", object{
		"name": "rlm_ask", "arguments": object{"question": "take your time"},
	})
	if first["resultType"] != "task" || first["status"] != "working" || first["ttlMs"] != nil {
		t.Fatalf("got %v", first)
	}
	ended := s.until(first["taskId"], "working")
	result, _ := ended["result"].(object)
	content, _ := result["structuredContent"].(object)
	if ended["status"] != "completed" || ended["resultType"] != "complete" || content["answer"] != "done" {
		t.Errorf("got %v", ended)
	}

	stopped := exec("import time\nwhile True: time.sleep(1)")
	s.request("tasks/cancel", fmt.Sprint(stopped["taskId"]), object{"taskId": stopped["taskId"]})
	if got := s.until(stopped["taskId"], "working"); got["status"] != "cancelled" {
		t.Errorf("got %v", got)
	}

	// A task asks the user, and continues with the answer.
	asking := exec("import time\ntime.sleep(3)\nprint(mail.send(text='ann'))")
	asks := s.until(asking["taskId"], "working")
	questions, _ := asks["inputRequests"].(object)
	if asks["status"] != "input_required" || len(questions) != 1 {
		t.Fatalf("got %v", asks)
	}
	answers := object{"unknown": object{"action": "decline"}}
	for key := range questions {
		answers[key] = object{"action": "accept", "content": object{"allow": true}}
	}
	s.request("tasks/update", fmt.Sprint(asking["taskId"]), object{
		"taskId": asking["taskId"], "inputResponses": answers,
	})
	done := s.until(asking["taskId"], "input_required")
	if done["status"] == "working" {
		done = s.until(asking["taskId"], "working")
	}
	if text, _ := json.Marshal(done); done["status"] != "completed" || !strings.Contains(string(text), "sent to ann") {
		t.Errorf("got %s", text)
	}

	// A waiting task is cancelled. Its snippet ends, which frees its place.
	for range 2 {
		asking := exec("import time\ntime.sleep(3)\nmail.send(text='ann')")
		s.until(asking["taskId"], "working")
		s.request("tasks/cancel", fmt.Sprint(asking["taskId"]), object{"taskId": asking["taskId"]})
		if got := s.until(asking["taskId"], "input_required"); got["status"] != "cancelled" {
			t.Errorf("got %v", got)
		}
	}
	if got := exec("6*7"); got["resultType"] != "complete" {
		t.Errorf("the snippets of canceled tasks go on: %v", got)
	}

	if got := s.request("tasks/get", "none", object{"taskId": "none"}); got["code"] != -32602.0 {
		t.Errorf("got %v", got)
	}
	if got := s.requestAs("", object{}, "tasks/get", "x", object{"taskId": first["taskId"]}); got["code"] != -32021.0 {
		t.Errorf("a client that has not declared tasks gets %v", got)
	}
}
