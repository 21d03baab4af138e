package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// host is an MCP host that started rlm mcp.
type host struct {
	*mcp.ClientSession

	t *testing.T
}

// newHost starts rlm mcp with flags in a folder.
func newHost(t *testing.T, folder string, options *mcp.ClientOptions, flags ...string) host {
	t.Helper()
	return startHost(t, folder, options, "", flags...)
}

// startHost is like newHost, with a protocol version, which is empty for the newest.
func startHost(
	t *testing.T, folder string, options *mcp.ClientOptions, version string, flags ...string,
) host {
	t.Helper()
	cmd := exec.Command("rlm", append([]string{"mcp", "--quiet"}, flags...)...)
	cmd.Dir = folder
	var stderr strings.Builder
	cmd.Stderr = &stderr
	client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, options)
	session, err := client.Connect(t.Context(), &mcp.CommandTransport{Command: cmd},
		&mcp.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatalf("%v\n%s", err, stderr.String())
	}
	t.Cleanup(func() {
		if err := session.Close(); err != nil || stderr.Len() > 0 {
			t.Errorf("rlm mcp ended with %v\n%s", err, stderr.String())
		}
	})
	return host{session, t}
}

// call calls a tool and returns its structured result, or its error message.
func (h host) call(tool string, arguments map[string]any) (map[string]any, string) {
	h.t.Helper()
	result, err := h.CallTool(h.t.Context(), &mcp.CallToolParams{Name: tool, Arguments: arguments})
	if err != nil {
		h.t.Fatalf("%s: %v", tool, err)
	}
	text := ""
	for _, part := range result.Content {
		if t, ok := part.(*mcp.TextContent); ok {
			text += t.Text
		}
	}
	got, _ := result.StructuredContent.(map[string]any)
	if !result.IsError {
		text = ""
	}
	return got, text
}

// want calls a tool that must succeed.
func (h host) want(tool string, arguments map[string]any) map[string]any {
	h.t.Helper()
	got, failed := h.call(tool, arguments)
	if failed != "" {
		h.t.Fatalf("%s failed: %s", tool, failed)
	}
	return got
}

// names lists the tools.
func (h host) names() (names []string) {
	h.t.Helper()
	for tool, err := range h.Tools(h.t.Context(), nil) {
		if err != nil {
			h.t.Fatal(err)
		}
		names = append(names, tool.Name)
	}
	return names
}

type arguments = map[string]any

// ofPath returns the arguments of rlm_open for one file.
func ofPath(path string) arguments { return arguments{"contexts": []arguments{{"path": path}}} }

func writeFile(t *testing.T, folder, name, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestHostsRunSnippets(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	writeFile(t, folder, "a.log", "ok\nERROR\n")
	writeFile(t, folder, "secret.txt", "secret")
	root := filepath.Join(folder, "root")
	if err := os.Mkdir(root, 0o700); err != nil {
		t.Fatal(err)
	}
	writeFile(t, root, "b.log", "ERROR\n")
	if err := os.Symlink(filepath.Join(folder, "secret.txt"), filepath.Join(root, "link")); err != nil {
		t.Fatal(err)
	}
	h := newHost(t, folder, nil, "--context", "a.log", "--root", root, "--timeout", "5s")
	if got := h.names(); !slices.Equal(got, []string{"rlm_close", "rlm_exec", "rlm_files", "rlm_open"}) {
		t.Errorf("the tools are %v", got)
	}

	opened := h.want("rlm_open", arguments{
		"contexts": []arguments{
			{"path": "b.log"}, {"text": "ERROR"}, {"value": json.RawMessage(`{"n": 2, "id": 9007199254740993}`)},
		},
	})
	handle, _ := opened["session"].(string)
	if len(handle) < 26 || len(opened["contexts"].([]any)) != 4 {
		t.Errorf("opened %v", opened)
	}
	h.want("rlm_exec", arguments{
		"session": handle,
		"source":  "n = sum(c.count('ERROR') for c in (context, context_1, context_2)) + context_3['n']",
	})
	got := h.want("rlm_exec", arguments{"session": handle, "source": "print(context_3['id']); FINAL({'n': n})"})
	if got["value"].(map[string]any)["n"] != 5.0 || got["stdout"] != "9007199254740993\n" || got["status"] != "ok" {
		t.Errorf("got %v", got)
	}
	run := "rlm://runs/" + got["run"].(string)
	record, err := h.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: run})
	if err != nil || !strings.Contains(record.Contents[0].Text, `"given":"print(context_3`) {
		t.Errorf("the record is %v, %v", record, err)
	}
	if _, err := h.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "rlm://runs/x"}); err == nil {
		t.Error("there is a record x")
	}

	for _, c := range []struct {
		tool string
		in   arguments
		want string
	}{
		{"rlm_exec", arguments{"session": handle, "source": "n/0"}, "ZeroDivisionError: division by zero"},
		{"rlm_exec", arguments{"session": handle, "source": "while True: pass"}, "limit: "},
		{"rlm_exec", arguments{"source": "n"}, "NameError"},
		{"rlm_exec", arguments{"source": "FINAL('x' * 2_000_000)"}, "which is too much for a result"},
		{"rlm_exec", arguments{"source": "1", "language": "perl"}, "give python or go"},
		{"rlm_exec", arguments{"session": "x", "source": "1"}, "open one with rlm_open"},
		{"rlm_exec", arguments{"cod": "1"}, `unexpected additional properties ["cod"]`},
		{"rlm_open", ofPath("../secret.txt"), "there is no such file below " + root},
		{"rlm_open", ofPath("link"), "there is no such file below"},
		{"rlm_open", ofPath(folder + "/secret.txt"), "there is no such file below"},
		{"rlm_open", ofPath("https://example.com/x"), "--context-server"},
		{"rlm_files", arguments{"session": handle, "name": "x"}, "there is no file"},
	} {
		if _, failed := h.call(c.tool, c.in); !strings.Contains(failed, c.want) {
			t.Errorf("%s %v: got %q, want %q", c.tool, c.in, failed, c.want)
		}
	}

	h.want("rlm_close", arguments{"session": handle})
	_, failed := h.call("rlm_exec", arguments{"session": handle, "source": "n"})
	if !strings.Contains(failed, "rlm_open") {
		t.Errorf("a closed handle says %q", failed)
	}
}

// TestCallsOfHostsEndAndTellProgress checks that a call that the host cancels frees its handle.
func TestCallsOfHostsEndAndTellProgress(t *testing.T) {
	t.Parallel()
	lines := make(chan string, 100)
	h := newHost(t, t.TempDir(), &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) {
			lines <- r.Params.Message
		},
	})
	handle := h.want("rlm_open", arguments{})["session"]
	params := &mcp.CallToolParams{Name: "rlm_exec", Arguments: arguments{
		"session": handle, "source": "kept = 1\nprint('begun', flush=True)\nwhile True: pass",
	}}
	params.SetProgressToken("a")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := h.CallTool(ctx, params)
		ended <- err
	}()
	if line := <-lines; line != "begun" {
		t.Errorf("the progress is %q", line)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	if got := h.want("rlm_exec", arguments{"session": handle, "source": "kept + 1"}); got["stdout"] != "2\n" {
		t.Errorf("got %v", got)
	}
}

func TestHandlesAreBoundedAndEnd(t *testing.T) {
	t.Parallel()
	bounded := newHost(t, t.TempDir(), nil, "--max-open-sessions", "2")
	bounded.want("rlm_open", arguments{})
	bounded.want("rlm_open", arguments{})
	for _, tool := range []string{"rlm_open", "rlm_exec"} {
		_, failed := bounded.call(tool, arguments{"source": "1"}) // rlm_open refuses the argument
		if tool == "rlm_open" {
			_, failed = bounded.call(tool, arguments{})
		}
		if !strings.Contains(failed, "2 sessions are open, which is the limit") {
			t.Errorf("%s: got %q", tool, failed)
		}
	}
	h := newHost(t, t.TempDir(), nil, "--max-open-sessions", "1", "--max-idle", "300ms")
	handle := h.want("rlm_open", arguments{})["session"]
	for begun := time.Now(); ; time.Sleep(50 * time.Millisecond) {
		if _, failed := h.call("rlm_open", arguments{}); failed == "" {
			break
		}
		if time.Since(begun) > patience {
			t.Fatal("no handle ends")
		}
	}
	if _, failed := h.call("rlm_exec", arguments{"session": handle, "source": "1"}); failed == "" {
		t.Error("the handle does not end")
	}
}

// servers writes a file that lists mcptest servers with the given modes.
func servers(t *testing.T, folder string, modes ...string) string {
	t.Helper()
	all := map[string]any{}
	for _, mode := range modes {
		all[mode] = map[string]any{"command": "mcpserver", "args": []string{mode}}
	}
	text, err := json.Marshal(map[string]any{"mcpServers": all})
	if err != nil {
		t.Fatal(err)
	}
	writeFile(t, folder, "mcp.json", string(text))
	return filepath.Join(folder, "mcp.json")
}

// TestAGatewayHidesAThousandTools checks that the host sees six tools instead of a thousand.
func TestAGatewayHidesAThousandTools(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	h := newHost(t, folder, nil, "--mcp", servers(t, folder, "many", "kind"), "--max-tool-calls", "2")
	size := 0
	for tool, err := range h.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		text, _ := json.Marshal(tool)
		size += len(text)
		if hints := tool.Annotations; tool.Name == "rlm_exec" && !*hints.DestructiveHint {
			t.Error("snippets that call tools of others are said to destroy nothing")
		}
	}
	if names := h.names(); len(names) != 5 || size > 8_000 {
		t.Errorf("the tools are %v, with %d bytes", names, size)
	}
	found := h.want("rlm_search_tools", arguments{"query": "work number 17", "limit": 1})
	if text, _ := json.Marshal(found); !strings.Contains(string(text), `"name":"many.tool_17"`) {
		t.Errorf("found %s", text)
	}
	if _, failed := h.call("rlm_search_tools", arguments{"query": "x", "limit": 1000}); failed == "" {
		t.Error("the limit is 1000")
	}
	got := h.want("rlm_exec", arguments{"source": "import asyncio\n" +
		"print(await asyncio.gather(many.tool_17(text='!'), kind.say(text='ann')))"})
	if got["stdout"] != "['17!', 'hello ann']\n" {
		t.Errorf("got %v", got)
	}
	_, failed := h.call("rlm_exec", arguments{"source": "for i in range(3): kind.say(text='x')"})
	if !strings.Contains(failed, "is used up: see --max-tool-calls") {
		t.Errorf("got %q", failed)
	}
}

// TestAGatewayPassesOn checks that hosts receive the prompts and resources of servers, and the
// tools of --direct.
func TestAGatewayPassesOn(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	h := newHost(t, folder, nil, "--mcp", servers(t, folder, "kind", "mail"), "--max-tool-calls", "2",
		"--direct", "kind__*", "--direct", "mail__say", "--approve", "deny kind__say matching secret",
		"--approve", "deny mail__get_prompt")
	names := h.names()
	for _, want := range []string{"add-numbers", "say", "picture", "mail__say", "rlm_exec"} {
		if !slices.Contains(names, want) {
			t.Errorf("the host does not see %s: %v", want, names)
		}
	}

	if _, failed := h.call("say", arguments{"text": "secret"}); !strings.Contains(failed, "denies it") {
		t.Errorf("a denied call says %q", failed)
	}
	careful := newHost(t, folder, nil, "--mcp", servers(t, folder, "kind"),
		"--approve", "allow kind__* hinted read-only", "--approve", "deny kind__*")
	code := "print(kind.say(text='x'))\nkind.add_numbers(a=1)"
	if _, failed := careful.call("rlm_exec", arguments{"source": code}); !strings.Contains(failed, "hello x") ||
		!strings.Contains(failed, "denies it") {
		t.Errorf("by the hints: %q", failed)
	}

	got := h.want("add-numbers", arguments{"a": 1, "b": 2})
	if got["total"] != 3.0 {
		t.Errorf("got %v", got)
	}
	if _, failed := h.call("fail", arguments{"text": "!"}); failed != "the shop is closed: !" {
		t.Errorf("got %q", failed)
	}
	if _, failed := h.call("say", arguments{"text": "x"}); !strings.Contains(failed, "is used up") {
		t.Errorf("got %q", failed)
	}

	read, err := h.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "test://readme"})
	if err != nil || read.Contents[0].Text != "Read me." {
		t.Errorf("read %v, %v", read, err)
	}
	greet := &mcp.GetPromptParams{Name: "greet", Arguments: map[string]string{"who": "Ann"}}
	prompt, err := h.GetPrompt(t.Context(), greet)
	if err != nil || prompt.Messages[0].Content.(*mcp.TextContent).Text != "Greet Ann" {
		t.Errorf("the prompt is %v, %v", prompt, err)
	}
	greet.Name = "mail__greet"
	if _, err = h.GetPrompt(t.Context(), greet); err == nil || !strings.Contains(err.Error(), "denies it") {
		t.Errorf("a denied prompt says %v", err)
	}
}

// TestHostsDecideOnCalls checks that a person at the host decides on calls, in both generations of
// the protocol.
func TestHostsDecideOnCalls(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	file := servers(t, folder, "kind")
	for _, version := range []string{"2025-11-25", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			var asked atomic.Int32
			actions := []string{"accept", "decline", "accept", "cancel"}
			options := &mcp.ClientOptions{
				ElicitationHandler: func(_ context.Context, r *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
					n := asked.Add(1)
					if !strings.Contains(r.Params.Message, `kind__say {"named":{"text":"`) {
						t.Errorf("asked %q", r.Params.Message)
					}
					return &mcp.ElicitResult{Action: actions[n-1], Content: arguments{"allow": n != 3}}, nil
				},
			}
			h := startHost(t, folder, options, version, "--mcp", file, "--approve", "ask kind__say")
			got := h.want("rlm_exec", arguments{"source": `
for i in range(4):
    try:
        print(kind.say(text=str(i)))
    except Exception as e:
        print(str(e).split(": ", 1)[1])
`})
			const want = "hello 0\nthe user has denied it\nthe user has denied it\n" +
				"the rule \"ask kind__say\" asks first: the answer comes later\n"
			if got["stdout"] != want || asked.Load() != 4 {
				t.Errorf("asked %d times, got %v", asked.Load(), got["stdout"])
			}

			none := startHost(t, folder, nil, version, "--mcp", file, "--approve", "ask kind__say")
			_, failed := none.call("rlm_exec", arguments{"source": "kind.say(text='x')"})
			if !strings.Contains(failed, "the answer comes later") {
				t.Errorf("without a person: %q", failed)
			}
		})
	}
}

func TestHostsAskModels(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	writeFile(t, folder, "s.yaml", "version: 1\nrules:\n  - when: {purpose: root}\n    reply: |\n"+
		"      ```repl\n      FINAL(len(context))\n      ```\n")
	h := newHost(t, folder, nil, "--model", "scripted/s.yaml")
	handle := h.want("rlm_open", arguments{"contexts": []arguments{{"text": "twelve bytes"}}})["session"]
	got := h.want("rlm_ask", arguments{"session": handle, "question": "how long?"})
	if got["answer"] != 12.0 || got["status"] != "answered" {
		t.Errorf("got %v", got)
	}
	record, err := h.ReadResource(t.Context(), &mcp.ReadResourceParams{URI: "rlm://runs/" + got["run"].(string)})
	if err != nil || !strings.Contains(record.Contents[0].Text, `"kind":"turn_started"`) {
		t.Errorf("the record is %v, %v", record, err)
	}
	_, failed := h.call("rlm_ask", arguments{"question": " "})
	if !strings.Contains(failed, "the question has 1 bytes") {
		t.Errorf("got %q", failed)
	}
}

// TestHostsComeOverHTTP checks that the server accepts both generations of the protocol, and
// refuses foreign web pages.
func TestHostsComeOverHTTP(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "rlm", "mcp", "--http", "127.0.0.1:0")
	pipe, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	address := ""
	for lines := bufio.NewScanner(pipe); address == "" && lines.Scan(); {
		address = regexp.MustCompile(`http://\S+`).FindString(lines.Text())
	}
	if address == "" {
		t.Fatal("it does not serve")
	}

	handle := any(nil)
	for _, version := range []string{"2025-06-18", "2026-07-28"} {
		client := mcp.NewClient(&mcp.Implementation{Name: "test", Version: "1"}, nil)
		session, err := client.Connect(t.Context(), &mcp.StreamableClientTransport{Endpoint: address},
			&mcp.ClientSessionOptions{ProtocolVersion: version})
		if err != nil {
			t.Fatal(err)
		}
		h := host{session, t}
		if handle == nil {
			handle = h.want("rlm_open", arguments{})["session"]
		}
		if got := h.want("rlm_exec", arguments{"session": handle, "source": "2+3"}); got["stdout"] != "5\n" {
			t.Errorf("%s: got %v", version, got)
		}
		if err := session.Close(); err != nil {
			t.Errorf("%s: %v", version, err)
		}
	}

	const head = `{"jsonrpc":"2.0","id":1,"method":"ping","params":[`
	heavy := strings.NewReader(head + strings.Repeat("[],", 2<<20) + `0]}`)
	response, err := http.Post(address, "application/json", heavy)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusRequestEntityTooLarge ||
		!strings.Contains(string(text), "too many values") {
		t.Errorf("a heavy message: %s %s, %v", response.Status, text, err)
	}
	_ = response.Body.Close()

	for _, header := range []struct{ name, value string }{
		{"Origin", "https://evil.example"}, {"Origin", "null"}, {"Host", "evil.example"},
	} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Accept", "application/json, text/event-stream")
		req.Header.Set(header.name, header.value)
		if header.name == "Host" {
			req.Host = header.value
		}
		response, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
		if response.StatusCode != http.StatusForbidden {
			t.Errorf("%s %s: status %d", header.name, header.value, response.StatusCode)
		}
	}
}
