package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// served is rlm serve with clients of MCP.
type served struct {
	t       *testing.T
	address string // without a path
}

// replies make a model that answers a question by code, another one slowly, and a third one by a
// tool that asks a person.
const replies = `version: 1
rules:
  - when: {last: "how many lines"}
    reply: "` + "```repl\\nFINAL(len(context.splitlines()))\\n```" + `"
  - when: {last: "take your time"}
    reply: "` + "```repl\\nimport time\\ntime.sleep(3)\\nFINAL('done')\\n```" + `"
  - when: {last: "mail them"}
    reply: "` + "```repl\\nFINAL(mail.send(text='ann'))\\n```" + `"
`

// serveMCP starts rlm serve with flags, and ends it with the test.
func serveMCP(t *testing.T, folder string, flags ...string) *served {
	t.Helper()
	writeFile(t, folder, "replies.yaml", replies)
	cmd := exec.Command("rlm", append([]string{
		"serve", "--listen", "127.0.0.1:0", "--data", filepath.Join(folder, "data"), "--bypass", "0",
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

// connect connects a client with a key, of a version of the protocol.
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
	data, err := json.Marshal(body)
	if err != nil {
		s.t.Fatal(err)
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

// TestTenantsComeOverMCP: a key has its own handles and records, of both generations of the
// protocol.
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
			handle = h.want("rlm_open", arguments{"texts": []string{"one\ntwo"}})["handle"]
		}
		got := h.want("rlm_exec", arguments{"handle": handle, "code": "print(kind.say(text=context[:3]))"})
		if got["stdout"] != "hello one\n" || got["tier"] != "wasm" {
			t.Errorf("%s: got %v", version, got)
		}
		got = h.want("rlm_ask", arguments{"handle": handle, "question": "how many lines?"})
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
	if _, failed := h.call("rlm_exec", arguments{"handle": handle, "code": "kind.say(text='x')"}); !strings.Contains(
		failed, "the budget of 2 tool calls is used up") {
		t.Errorf("got %q", failed)
	}
	if status, list := s.do("GET", "/v1/runs", ann, nil, nil); status != 200 || strings.Count(list, run) != 1 {
		t.Errorf("%d: %s", status, list)
	}

	other := s.connect(bob, "", nil)
	if _, failed := other.call("rlm_exec", arguments{"handle": handle, "code": "1"}); !strings.Contains(
		failed, "there is no handle") {
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
		{ann, http.Header{"Host": {"evil.example"}}, 200}, // a page cannot send a key
	} {
		if status, body := s.do("POST", "/mcp", c.key, c.header, hello); status != c.status {
			t.Errorf("%v: %d: %s", c, status, body)
		}
	}
}

// checkSchemas fails for schemas of results that the official SDK of TypeScript refuses: a
// property is an object there, never true.
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

// TestFilesAreContextsOverMCP: an uploaded file is named by its ID.
func TestFilesAreContextsOverMCP(t *testing.T) {
	t.Parallel()
	s := serveMCP(t, t.TempDir())
	var body bytes.Buffer
	const bound = "xxx"
	fmt.Fprintf(&body, "--%s\r\nContent-Disposition: form-data; name=\"purpose\"\r\n\r\nuser_data\r\n"+
		"--%s\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n\r\none\ntwo\nthree\r\n"+
		"--%s--\r\n",
		bound, bound, bound)
	response, err := http.Post(s.address+"/v1/files", "multipart/form-data; boundary="+bound, &body)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	var file struct{ ID string }
	if err := json.NewDecoder(response.Body).Decode(&file); err != nil || file.ID == "" {
		t.Fatalf("%v, %+v", err, file)
	}

	h := s.connect("", "", nil)
	handle := h.want("rlm_open", arguments{"paths": []string{file.ID}})["handle"]
	got := h.want("rlm_exec", arguments{"handle": handle, "code": "len(context.splitlines())"})
	if got["stdout"] != "3\n" {
		t.Errorf("got %v", got)
	}
	got = h.want("rlm_ask", arguments{"handle": handle, "question": "how many lines?"})
	if got["answer"] != 3.0 {
		t.Errorf("got %v", got)
	}
	for _, path := range []string{"/etc/passwd", "../data/records/serve.db", "file-none"} {
		_, failed := h.call("rlm_open", arguments{"paths": []string{path}})
		if !strings.Contains(failed, "there is no file") {
			t.Errorf("%s: %q", path, failed)
		}
	}
}

// TestOnlyKeysThatApproveDecide: a key without the scope cannot allow its own calls.
func TestOnlyKeysThatApproveDecide(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	ann, bob := newKey(t, folder, "ann", "--scope", "run,approve"), newKey(t, folder, "bob", "--scope", "run,read")
	s := serveMCP(t, folder, "--require-key", "--mcp", servers(t, folder, "mail"), "--approve", "ask mail__send")
	options := &mcp.ClientOptions{ElicitationHandler: allowAll}

	code := arguments{"code": "try:\n    print(mail.send(text='ann'))\nexcept Exception as e:\n    print(e)"}
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

// request sends a request of the newest protocol, of a client that knows tasks, and returns the
// result or the error.
func (s *served) request(method, name string, params object) object {
	s.t.Helper()
	return s.requestAs(object{
		"elicitation": object{}, "extensions": object{"io.modelcontextprotocol/tasks": object{}},
	}, method, name, params)
}

// requestAs is request of a client with capabilities.
func (s *served) requestAs(capabilities object, method, name string, params object) object {
	s.t.Helper()
	params["_meta"] = object{
		"io.modelcontextprotocol/protocolVersion":    "2026-07-28",
		"io.modelcontextprotocol/clientInfo":         object{"name": "test", "version": "1"},
		"io.modelcontextprotocol/clientCapabilities": capabilities,
	}
	_, body := s.do("POST", "/mcp", "", http.Header{
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

// until polls a task until its status is another one.
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

// TestLongCallsBecomeTasks: a client that knows tasks fetches the result of a long call later.
func TestLongCallsBecomeTasks(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	s := serveMCP(t, folder, "--mcp", servers(t, folder, "mail"), "--approve", "ask mail__send")
	exec := func(code string) object {
		return s.request("tools/call", "rlm_exec", object{"name": "rlm_exec", "arguments": object{"code": code}})
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

	// A task asks, and goes on with the answer.
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

	if got := s.request("tasks/get", "none", object{"taskId": "none"}); got["code"] != -32602.0 {
		t.Errorf("got %v", got)
	}
	if got := s.requestAs(object{}, "tasks/get", "x", object{"taskId": first["taskId"]}); got["code"] != -32021.0 {
		t.Errorf("a client that has not declared tasks gets %v", got)
	}
}
