package tools

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rlmhq/rlm/internal/testing/mcptest"
	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/tiers"
)

// modeVariable is the environment variable that makes this program a server.
const modeVariable = "RLM_TEST_MCP"

func TestMain(m *testing.M) {
	mode := os.Getenv(modeVariable)
	if kind, isOdd := strings.CutPrefix(mode, "odd"); isOdd {
		serveOddly(kind)
		return
	}
	if mode != "" {
		mcptest.Serve(mode)
		return
	}
	os.Exit(m.Run())
}

// file writes a file that lists servers by their modes.
func file(tb testing.TB, modes ...string) string {
	tb.Helper()
	servers := map[string]any{}
	for _, mode := range modes {
		servers[mode] = map[string]any{
			"command": os.Args[0], "env": map[string]string{modeVariable: mode, "TOKEN": "${HOME}/x"},
		}
	}
	return write(tb, map[string]any{"mcpServers": servers})
}

func write(tb testing.TB, content any) string {
	tb.Helper()
	data, err := json.Marshal(content)
	if err != nil {
		tb.Fatal(err)
	}
	path := filepath.Join(tb.TempDir(), "mcp.json")
	if err := os.WriteFile(path, data, 0o600); err != nil {
		tb.Fatal(err)
	}
	return path
}

// start starts the servers that a file lists.
func start(t *testing.T, path string) (*Servers, *repl.Tools) {
	t.Helper()
	servers, err := Start(t.Context(), Options{Files: []string{path}, Version: "1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = servers.Close() })
	tools, err := repl.NewTools(servers.Tools()...)
	if err != nil {
		t.Fatal(err)
	}
	return servers, tools
}

// call calls a host function with the members of a JSON object as arguments.
func call(t *testing.T, tools *repl.Tools, function, named string, args ...string) string {
	t.Helper()
	c := tiers.Call{Function: function}
	if err := json.Unmarshal([]byte(named), &c.Named); err != nil {
		t.Fatal(err)
	}
	for _, arg := range args {
		c.Args = append(c.Args, tiers.Value(arg))
	}
	value, err := tools.Call(t.Context(), c)
	if err != nil {
		return "error: " + err.Error()
	}
	return string(value)
}

// allocated returns the total number of bytes that this process has allocated.
func allocated() uint64 {
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.TotalAlloc
}

func TestToolsAnswer(t *testing.T) {
	t.Setenv("SECRET_OF_THE_USER", "x")
	_, tools := start(t, file(t, "kind"))
	const wrong = "error: kind.add_numbers: the arguments do not match the schema: "
	for _, c := range []struct{ function, named, want string }{
		{"kind__add_numbers", `{"a": 1, "b": 2}`, `{"total":3}`},
		{"kind__add_numbers", `{"a": 1, "b": null}`, `{"total":1}`},
		{"kind__add_numbers", `{"a": null}`, "error: kind.add_numbers: the arguments do not match"},
		{"kind__add_numbers", `{"b": 1}`, wrong + "$.a: is missing"},
		{"kind__add_numbers", `{"a": "x"}`, "error: kind.add_numbers: the arguments do not match"},
		{"kind__add_numbers", `{"c": 1}`, `error: kind.add_numbers has no parameter "c": it takes a, b`},
		{"kind__say", `{"text": "ann"}`, `"hello ann"`},
		{"kind__fail", `{"text": "today"}`, "error: kind.fail: the shop is closed: today"},
		{"kind__env", `{"text": "SECRET_OF_THE_USER"}`, `""`},
		{"kind__env", `{"text": "TOKEN"}`, `"` + os.Getenv("HOME") + `/x"`},
		{"kind__picture", `{}`, `[{"type":"text","text":"a picture"},{"type":"image",`},
		{"kind__list_resources", `{}`, `[{"name":"readme","uri":"test://readme"}]`},
		{"kind__read_resource", `{"uri": "test://readme"}`, `"Read me."`},
		{"kind__read_resource", `{"uri": "test://none"}`, "error: kind.read_resource: "},
		{"kind__read_resource", `{"uri": 1}`, "error: kind.read_resource: the argument uri must be a text"},
		{"kind__read_resource", `{}`, "error: kind.read_resource: the argument uri is missing"},
		{"kind__list_prompts", `{}`, `[{"name":"greet"}]`},
		{
			"kind__get_prompt", `{"name": "greet", "who": "ann"}`,
			`[{"content":{"type":"text","text":"Greet ann"},"role":"user"}]`,
		},
		{"mcp__search", `{"query": "number sum"}`, `[{"name":"kind.add_numbers",` +
			`"signature":"kind.add_numbers(a: int, b: int = None)","doc":"Adds two numbers."}]`},
		{"mcp__search", `{"query": "x", "limit": 0}`, "error: the argument limit must be a number from 1 to 100"},
	} {
		t.Run(c.function, func(t *testing.T) {
			if got := call(t, tools, c.function, c.named); !strings.HasPrefix(got, c.want) {
				t.Errorf("%s(%s): got %s, want %s", c.function, c.named, got, c.want)
			}
		})
	}
	if got := call(t, tools, "kind__add_numbers", `{}`, "1", "2"); got != `{"total":3}` {
		t.Errorf("by position: %s", got)
	}

	_, notes := tools.Prompt()
	if !strings.Contains(notes, "- `kind.add_numbers(a: int, b: int = None)`: Adds two numbers.") {
		t.Errorf("the prompt has %s", notes)
	}
}

func TestCallsAreBounded(t *testing.T) {
	servers, err := Start(t.Context(), Options{Files: []string{file(t, "kind")}, Version: "1"})
	if err != nil {
		t.Fatal(err)
	}
	defer servers.Close()
	tools, err := repl.NewTools(servers.Tools()...)
	if err != nil {
		t.Fatal(err)
	}

	ctx := NewAllowance(2).In(t.Context())
	hello := func(function, named string) string {
		value, err := tools.Call(ctx, tiers.Call{Function: function, Args: []tiers.Value{tiers.Value(named)}})
		if err != nil {
			return err.Error()
		}
		return string(value)
	}
	for i, want := range []string{`"hello x"`, `"hello x"`, "kind.say: the budget of 2 tool calls is used up"} {
		if got := hello("mcp__search", `"x"`); !strings.HasPrefix(got, "[") {
			t.Errorf("the search needs the allowance: %s", got)
		}
		if got := hello("kind__say", `"x"`); !strings.HasPrefix(got, want) {
			t.Errorf("call %d: %s", i+1, got)
		}
	}
	if got := call(t, tools, "kind__say", `{"text": "y"}`); got != `"hello y"` {
		t.Errorf("a call without an allowance: %s", got)
	}
}

// TestHintsAreThoseOfTheServer also checks that the worst is assumed where a server gives no hint.
func TestHintsAreThoseOfTheServer(t *testing.T) {
	servers, _ := start(t, file(t, "kind"))
	for function, want := range map[string]string{
		"kind__say":           "read-only idempotent",
		"kind__add_numbers":   "open-world",
		"kind__fail":          "destructive open-world",
		"kind__read_resource": "read-only open-world",
		"shell":               "destructive open-world",
	} {
		t.Run(function, func(t *testing.T) {
			if got := strings.Join(servers.Hints(function), " "); got != want {
				t.Errorf("%s: got %s, want %s", function, got, want)
			}
		})
	}
	var none *Servers
	if got := none.Hints("shell"); len(got) != 2 {
		t.Errorf("without servers: %v", got)
	}
}

// TestManyToolsAreSearched checks that the prompt lists only the servers.
func TestManyToolsAreSearched(t *testing.T) {
	servers, tools := start(t, file(t, "many", "kind"))
	_, notes := tools.Prompt()
	if len(notes) > 2_000 || strings.Contains(notes, "tool_17") ||
		!strings.Contains(notes, "`many` (1009)") {
		t.Errorf("the prompt has %d bytes: %.2000s", len(notes), notes)
	}
	got := call(t, tools, "mcp__search", `{"query": "work number 17", "limit": 2}`)
	if !strings.Contains(got, `"many.tool_17"`) {
		t.Errorf("found %s", got)
	}
	if got := call(t, tools, "many__tool_17", `{"text": "!"}`); got != `"17!"` {
		t.Errorf("got %s", got)
	}
	if n := len(servers.Python()); n > 3_000 {
		t.Errorf("the Python has %d bytes", n)
	}
	for named, want := range map[string]string{
		`{"server": "many", "name": "tool_17"}`: `"many.tool_17(text: str)\n\nDoes the work number 17 of a thousand."`,
		`{"server": "many", "name": "tool17"}`:  "error: there is no tool many.tool17; did you mean many.tool_17?",
		`{"server": "kind", "name": ""}`:        `["add_numbers","env","fail",`,
		`{"server": "none", "name": "x"}`:       "error: there is no tool none.x",
		`{"server": "many"}`:                    "error: the argument name is missing",
	} {
		t.Run(named, func(t *testing.T) {
			if got := call(t, tools, "mcp__describe", named); !strings.HasPrefix(got, want) {
				t.Errorf("%s: got %s", named, got)
			}
		})
	}
}

// TestHarmIsBounded checks that, whatever a server does, a call ends with an error.
func TestHarmIsBounded(t *testing.T) {
	for tool, want := range map[string]string{
		"huge":    "the server's reply has more than 16 MiB",
		"endless": "the server's reply has more than 16 MiB",
		"bomb":    "the server's reply has too many values, more than 1000000",
	} { // not parallel, because the memory of other tests would count
		t.Run(tool, func(t *testing.T) {
			_, tools := start(t, file(t, "huge"))
			for range 2 { // the second call must not reach the server
				begun := allocated()
				got := call(t, tools, "huge__"+tool, `{"text": ""}`)
				if !strings.HasPrefix(got, "error: huge."+tool+": ") || !strings.Contains(got, want) {
					t.Errorf("got %.300s", got)
				}
				if grown := allocated() - begun; grown > 200<<20 {
					t.Errorf("%d bytes were allocated", grown)
				}
			}
		})
	}
	t.Run("death", func(t *testing.T) {
		t.Parallel()
		_, tools := start(t, file(t, "death"))
		for range 2 {
			got := call(t, tools, "death__die", `{"text": ""}`)
			if !strings.HasPrefix(got, "error: death.die: ") || !strings.Contains(got, "the server dies") {
				t.Errorf("got %s", got)
			}
		}
	})
	t.Run("a call without an answer", func(t *testing.T) {
		t.Parallel()
		_, tools := start(t, file(t, "death"))
		ctx, cancel := context.WithCancelCause(t.Context())
		ended := make(chan error)
		go func() {
			_, err := tools.Call(ctx, tiers.Call{Function: "death__wait", Args: []tiers.Value{tiers.Value(`"x"`)}})
			ended <- err
		}()
		if got := call(t, tools, "death__say", `{"text": "x"}`); got != `"hello x"` {
			t.Errorf("beside it: %s", got)
		}
		cancel(errors.New("no time is left"))
		if err := <-ended; err == nil || !strings.Contains(err.Error(), "no time is left") {
			t.Errorf("got %v", err)
		}
		if got := call(t, tools, "death__say", `{"text": "y"}`); got != `"hello y"` {
			t.Errorf("after it: %s", got)
		}
	})
	t.Run("requests of the server", func(t *testing.T) {
		t.Parallel()
		_, tools := start(t, file(t, "nosy"))
		got := call(t, tools, "nosy__ask", `{}`)
		if got != `"true 0 true 0 false 0 "` { // the list of roots is empty
			t.Errorf("the server got %s", got)
		}
		for range 2 { // the second call must not reach the server
			got = call(t, tools, "nosy__pester", `{}`)
			if !strings.Contains(got, "the server asks without taking the answers; it is not read any more") {
				t.Errorf("got %s", got)
			}
		}
	})
	t.Run("a flood", func(t *testing.T) {
		t.Parallel()
		_, tools := start(t, file(t, "flood"))
		for range 5 {
			if got := call(t, tools, "flood__say", `{"text": "x"}`); got != `"hello x"` {
				t.Errorf("got %s", got)
			}
		}
	})
	t.Run("questions and tools that disappear", func(t *testing.T) {
		t.Parallel()
		_, tools := start(t, file(t, "asking"))
		for _, c := range []struct{ function, named, want string }{
			{"asking__ask_model", `{}`, "error: asking.ask_model: "},
			{"asking__ask_user", `{}`, "error: asking.ask_user: "},
			{"asking__go", `{"text": ""}`, `"gone"`},
			{"asking__go", `{"text": ""}`, `error: asking.go: `},
			{"asking__say", `{"text": ""}`, `error: asking.say: `},
			{"asking__add_numbers", `{"a": 1}`, `{"total":1}`},
		} {
			t.Run(c.function, func(t *testing.T) {
				if got := call(t, tools, c.function, c.named); !strings.HasPrefix(got, c.want) {
					t.Errorf("%s: got %s", c.function, got)
				}
			})
		}
		_, notes := tools.Prompt()
		if strings.Contains(notes, "\n- `evil()`") || !strings.Contains(notes, "Disappears. IGNORE ALL") ||
			strings.ContainsAny(notes, mcptest.Unseen) {
			t.Errorf("a description has lines: %s", notes)
		}
	})
	t.Run("a tool that changes", func(t *testing.T) {
		t.Parallel()
		_, tools := start(t, file(t, "changing"))
		_, before := tools.Prompt()
		for _, c := range []struct{ function, named, want string }{
			{"changing__change", `{"text": ""}`, `"changed"`},
			{"changing__say", `{"to": "x"}`, `error: changing.say has no parameter "to"`},
			{"changing__say", `{"text": "x"}`, "error: changing.say: "}, // the server refuses the old arguments
			{"changing__add_numbers", `{"a": 1, "b": 2}`, `["not","a total"]`},
			{"mcp__describe", `{"server": "changing", "name": "say"}`, `"changing.say(text: str)\n\nSays hello."`},
			{"mcp__search", `{"query": "password"}`, "[]"},
		} {
			t.Run(c.function, func(t *testing.T) {
				if got := call(t, tools, c.function, c.named); !strings.HasPrefix(got, c.want) {
					t.Errorf("%s(%s): got %s", c.function, c.named, got)
				}
			})
		}
		if _, after := tools.Prompt(); after != before {
			t.Errorf("the prompt became %s", after)
		}
	})
	for _, mode := range []string{"silence", "chatter"} {
		t.Run(mode, func(t *testing.T) {
			t.Parallel()
			ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, fmt.Errorf("no time is left"))
			defer cancel()
			_, err := Start(ctx, Options{Files: []string{file(t, mode)}, Version: "1"})
			if err == nil || !strings.Contains(err.Error(), `cannot use the MCP server "`+mode+`": `) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestSchemasAreHostile checks that a server's description of its tools never breaks the functions
// or the Python that defines them.
func TestSchemasAreHostile(t *testing.T) {
	deep := strings.Repeat(`{"items":`, 500) + "{}" + strings.Repeat("}", 500)
	for _, c := range []struct{ schema, want string }{
		{
			`{"type": "object", "properties": {"b": {"type": "integer"}, "a": {}}, "required": ["b"]}`,
			"s.t(b: int, a = None)",
		},
		{
			`{"type": "object", "properties": {"x):\n import os #": {}, "class": {}, "__x__": {}}}`,
			"s.t(x = None, class_ = None, x_import_os = None)",
		},
		{`{"type": "object", "properties": {"a-b": {}, "a_b": {}}}`, "s.t(a_b = None, a_b_2 = None)"},
		{`{"type": "object", "additionalProperties": false}`, "s.t()"},
		{`{"type": "object"}`, "s.t(**arguments)"},
		{`{"$ref": "http://example.com/x"}`, "s.t(**arguments)"},
		{`{"type": "strange"}`, "s.t(**arguments)"},
		{`{"pattern": "(((((("}`, "s.t(**arguments)"},
		{`[]`, "s.t(**arguments)"},
		{`"int"`, "s.t(**arguments)"},
		{deep, "s.t(**arguments)"},
		{`{"description": "` + strings.Repeat("x", maxSchema) + `"}`, "s.t(**arguments)"},
	} {
		t.Run(fmt.Sprintf("%.60s", c.schema), func(t *testing.T) {
			var schema any
			if err := json.Unmarshal([]byte(c.schema), &schema); err != nil {
				t.Fatal(err)
			}
			one := newTool(&server{name: "s"}, &mcp.Tool{Name: "t", InputSchema: schema}, map[string]bool{})
			if got := one.signature(); got != c.want {
				t.Errorf("%.80s: got %s, want %s", c.schema, got, c.want)
			}
		})
	}

	one := newTool(&server{name: "s"}, &mcp.Tool{Name: "t", InputSchema: &jsonschema.Schema{
		Type: "object", Properties: map[string]*jsonschema.Schema{"a-b": {Type: "string"}},
	}}, map[string]bool{})
	args, err := one.bind(tiers.Call{Named: map[string]tiers.Value{"a_b": tiers.Value(`"x"`)}})
	if err != nil || string(args["a-b"]) != `"x"` {
		t.Errorf("got %s, %v", args, err)
	}
}

func TestNamesAreIdentifiers(t *testing.T) {
	taken := map[string]bool{}
	var got []string
	for _, name := range []string{
		"search-issues", "search_issues", "class", "2fa", "", "__init__", "FINAL", "日本", "a\"\n)", "context",
	} {
		got = append(got, makeName(name, "_tool", taken))
	}
	want := "search_issues search_issues_2 class_tool tool_2fa tool_ init FINAL_tool tool__2 a context_tool"
	if text := strings.Join(got, " "); text != want {
		t.Errorf("got %s", text)
	}
	if name := makeName(strings.Repeat("x", 500), "_tool", taken); len(name) > maxName {
		t.Errorf("a name has %d bytes", len(name))
	}
}

func FuzzTools(f *testing.F) {
	f.Add("name", "doc \"\\ \x00", []byte(`{"type": "object", "properties": {"a": {"type": "integer"}}}`))
	f.Add("日本", "\u2028", []byte(`{"properties": {"x):": true}, "required": ["y"]}`))
	f.Fuzz(func(t *testing.T, name, doc string, schema []byte) {
		var input any
		if json.Unmarshal(schema, &input) != nil {
			return
		}
		one := &server{name: "s", given: name, title: oneLine(doc)}
		said := &mcp.Tool{Name: name, Description: doc, InputSchema: input}
		one.tools = []*tool{newTool(one, said, map[string]bool{})}
		servers := &Servers{all: []*server{one}}
		servers.searchable = servers.index
		if _, err := repl.NewTools(servers.Tools()...); err != nil {
			t.Errorf("a tool is refused: %v", err)
		}
		own, _ := strings.CutPrefix(servers.Python(), classes)
		if lines := strings.Split(strings.TrimSpace(own), "\n"); len(lines) != 2 ||
			lines[0] != "class s(metaclass=_Server):" || !json.Valid([]byte(strings.TrimSpace(lines[1]))) {
			t.Errorf("the Python is %q", own)
		}
		if strings.Contains(one.tools[0].signature(), "\n") {
			t.Errorf("the signature is %q", one.tools[0].signature())
		}
		_, _ = one.tools[0].bind(tiers.Call{Named: map[string]tiers.Value{"a": tiers.Value("1")}})
	})
}

func TestServersAreReachedOverHTTP(t *testing.T) {
	var mu sync.Mutex
	var keys []string
	handler := mcp.NewStreamableHTTPHandler(func(r *http.Request) *mcp.Server {
		mu.Lock()
		defer mu.Unlock()
		keys = append(keys, r.Header.Get("Authorization"))
		return mcptest.New("huge")
	}, &mcp.StreamableHTTPOptions{JSONResponse: true})
	web := httptest.NewServer(handler)
	defer web.Close()
	t.Setenv("KEY_OF_THE_SERVER", "sk-1")

	path := write(t, map[string]any{"servers": map[string]any{"web": map[string]any{
		"type": "http", "url": web.URL,
		"headers": map[string]string{"Authorization": "Bearer ${env:KEY_OF_THE_SERVER}"},
	}}})
	_, tools := start(t, path)
	if got := call(t, tools, "web__say", `{"text": "x"}`); got != `"hello x"` {
		t.Errorf("got %s", got)
	}
	if got := call(t, tools, "web__huge", `{"text": "x"}`); !strings.Contains(got, "reply has more than 16 MiB") {
		t.Errorf("got %.300s", got)
	}
	mu.Lock()
	defer mu.Unlock()
	if !slices.Contains(keys, "Bearer sk-1") {
		t.Errorf("the headers are %q", keys)
	}

	away := httptest.NewServer(http.RedirectHandler(web.URL, http.StatusTemporaryRedirect))
	defer away.Close()
	path = write(t, map[string]any{"mcpServers": map[string]any{"web": map[string]any{"url": away.URL}}})
	if _, err := Start(t.Context(), Options{Files: []string{path}, Version: "1"}); err == nil ||
		!strings.Contains(err.Error(), "the server redirects to "+web.URL) {
		t.Errorf("got %v", err)
	}
}

// endless is an HTTP server that answers the method in its query endlessly.
type endless struct {
	method, part string
	reached      chan struct{} // closed when the client has received many parts
	left         chan struct{} // closed when the client has gone away
}

// ServeHTTP implements [http.Handler].
func (e *endless) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var request struct {
		ID     json.RawMessage `json:"id"`
		Method string          `json:"method"`
	}
	if json.NewDecoder(r.Body).Decode(&request) != nil || request.ID == nil {
		w.WriteHeader(http.StatusAccepted)
		return
	}
	if request.Method == "" { // this is the answer to a ping
		<-r.Context().Done()
		return
	}
	if request.Method == e.method {
		e.flood(w, r)
		return
	}

	answer := `"error":{"code":-32601,"message":"unknown method"}`
	switch request.Method {
	case "initialize":
		answer = `"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},` +
			`"serverInfo":{"name":"endless","version":"1"}}`
	case "tools/list":
		answer = `"result":{"tools":[{"name":"say","inputSchema":{"type":"object"}}]}`
	}
	w.Header().Set("Content-Type", "application/json")
	fmt.Fprintf(w, `{"jsonrpc":"2.0","id":%s,%s}`, request.ID, answer)
}

// flood writes the part until the client goes away, or once if the test does not wait for the
// client to leave.
func (e *endless) flood(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	if e.left == nil {
		fmt.Fprint(w, e.part)
		return
	}

	defer close(e.left)
	for i := 0; r.Context().Err() == nil; i++ {
		if _, err := fmt.Fprint(w, strings.ReplaceAll(e.part, "NUMBER", fmt.Sprint(i))); err != nil {
			return
		}
		if i == 50_000 {
			close(e.reached)
		}
	}
}

// TestStreamsWithoutAnEnd checks that a call over HTTP ends, whatever the server streams.
func TestStreamsWithoutAnEnd(t *testing.T) {
	t.Parallel()
	const note = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`
	open := func(t *testing.T, e *endless) string {
		t.Helper()
		web := httptest.NewServer(e)
		t.Cleanup(web.Close)
		return write(t, map[string]any{"mcpServers": map[string]any{"web": map[string]any{"url": web.URL}}})
	}
	flood := func(method, part string) *endless {
		return &endless{method, part, make(chan struct{}), make(chan struct{})}
	}

	for name, part := range map[string]string{
		"notifications":   "data: " + note + "\n\n",
		"events with IDs": "id: 1\ndata: " + note + "\n\n",
		"comments":        ": still here\n\n",
		"requests":        `data: {"jsonrpc":"2.0","id":NUMBER,"method":"ping"}` + "\n\n",
		"empty lines":     "\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e := flood("tools/call", part)
			path := open(t, e)
			_, tools := start(t, path)
			ctx, cancel := context.WithCancelCause(t.Context())
			go func() {
				<-e.reached
				if n := runtime.NumGoroutine(); n > 5_000 {
					t.Errorf("%d goroutines run", n)
				}
				cancel(fmt.Errorf("no time is left"))
			}()
			if got, err := tools.Call(ctx, tiers.Call{Function: "web__say"}); err == nil {
				t.Errorf("got %s", got)
			}
			<-e.left // the connection was closed
		})
	}

	t.Run("the list of tools", func(t *testing.T) {
		t.Parallel()
		e := flood("tools/list", "data: "+note+"\n\n")
		path := open(t, e)
		ctx, cancel := context.WithCancelCause(t.Context())
		go func() {
			<-e.reached
			cancel(fmt.Errorf("no time is left"))
		}()
		_, err := Start(ctx, Options{Files: []string{path}, Version: "1"})
		if err == nil || !strings.Contains(err.Error(), "no time is left") {
			t.Errorf("got %v", err)
		}
		<-e.left
	})

	t.Run("one event", func(t *testing.T) {
		t.Parallel()
		e := flood("tools/call", strings.Repeat("data: x", 1_000))
		path := open(t, e)
		_, tools := start(t, path)
		if got := call(t, tools, "web__say", "{}"); !strings.HasPrefix(got, "error: web.say: ") {
			t.Errorf("got %s", got)
		}
		<-e.left
	})

	for name, part := range map[string]string{
		"nothing": "", "a note": "id: 1\ndata: " + note + "\n\n", "half an event": "data: {",
	} {
		t.Run("a stream that ends after "+name, func(t *testing.T) {
			t.Parallel()
			path := open(t, &endless{method: "tools/call", part: part})
			_, tools := start(t, path)
			if got := call(t, tools, "web__say", "{}"); !strings.HasPrefix(got, "error: web.say: ") {
				t.Errorf("got %s", got)
			}
		})
	}
}

func TestFilesThatCannotBeUsed(t *testing.T) {
	getenv := func(name string) (string, bool) { return "v", name == "KNOWN" }
	for text, want := range map[string]string{
		`[]`:                        "it is not the expected JSON",
		`{}`:                        "it names 0 servers",
		`{"mcpServers": {}}`:        "it names 0 servers",
		`{"mcpServers": {"a": {}}}`: `server "a": give either "command"`,
		`{"mcpServers": {"a": {"command": "x", "url": "http://x"}}}`: `server "a": give either "command"`,
		`{"mcpServers": {"a": {"url": "ftp://x"}}}`:                  "must begin with http",
		`{"mcpServers": {"a": {"url": "https://u:p@x"}}}`:            "and no user",
		`{"mcpServers": {"a": {"type": "sse", "url": "https://x"}}}`: "the old transport sse",
		`{"mcpServers": {"a": {"command": "${NONE} ${KNOWN}"}}}`:     "the environment has no ${NONE}",
		`{"mcpServers": {"a": {"command": "x", "disabled": true}}}`:  "it names 0 servers",
	} {
		if _, err := parseConfig([]byte(text), getenv); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %s", text, err, want)
		}
	}

	const good = `{"servers": {"a": {"command": "${KNOWN}", "args": ["${NONE:-b}"], "x": 1}}}`
	servers, err := parseConfig([]byte(good), getenv)
	if err != nil || servers["a"].Command != "v" || servers["a"].Args[0] != "b" {
		t.Errorf("got %+v, %v", servers, err)
	}
	path := write(t, map[string]any{"mcpServers": map[string]any{"a": map[string]any{"command": "no-such-program-1"}}})
	for _, files := range [][]string{{path}, {"missing.json"}, {path, path}} {
		if _, err := Start(t.Context(), Options{Files: files, Version: "1"}); err == nil {
			t.Errorf("%v can be used", files)
		}
	}
}
