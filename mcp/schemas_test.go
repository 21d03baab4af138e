package mcp

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rlmhq/rlm/mcp/tools"
)

// TestClientsSeePlainSchemas checks that the listed schemas have neither lists of types nor boolean
// schemas, and that a tool accepts null for an optional argument.
func TestClientsSeePlainSchemas(t *testing.T) {
	s := &Server{cfg: Config{Asks: true, Servers: &tools.Servers{}}}
	s.shown = map[string]shownSchemas{}
	server := mcp.NewServer(&mcp.Implementation{Name: "rlm", Version: "1"}, nil)
	s.addSessionTools(server)
	s.addFiles(server)
	s.addAsk(server)
	s.addSearch(server)
	server.AddReceivingMiddleware(s.showPlain, s.nameArguments)

	host, guest := mcp.NewInMemoryTransports()
	if _, err := server.Connect(t.Context(), guest, nil); err != nil {
		t.Fatal(err)
	}
	client, err := mcp.NewClient(&mcp.Implementation{Name: "t", Version: "1"}, nil).Connect(t.Context(), host, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()

	count := 0
	for tool, err := range client.Tools(t.Context(), nil) {
		if err != nil {
			t.Fatal(err)
		}
		count++
		schema, _ := tool.InputSchema.(map[string]any)
		checkPlain(t, tool.Name, schema)
		if output, _ := tool.OutputSchema.(map[string]any); output["type"] != "object" {
			t.Errorf("%s has the result %v", tool.Name, tool.OutputSchema)
		}
	}
	if count != 6 {
		t.Errorf("there are %d tools", count)
	}

	for arguments, want := range map[string]string{
		`{"source": "", "session": null, "language": "cobol"}`: "give python or go",
		`{"code": "1"}`: "the arguments of rlm_exec are language, session, source",
	} {
		result, err := client.CallTool(t.Context(), &mcp.CallToolParams{
			Name: "rlm_exec", Arguments: json.RawMessage(arguments),
		})
		if err != nil {
			t.Fatal(err)
		}
		text, _ := result.Content[0].(*mcp.TextContent)
		if text == nil || !strings.Contains(text.Text, want) {
			t.Errorf("%s: got %+v", arguments, result.Content[0])
		}
	}
}

// TestResultsKeepAllDigits checks a value that a tool returns as rlm_exec does.
func TestResultsKeepAllDigits(t *testing.T) {
	s := &Server{shown: map[string]shownSchemas{}}
	server := mcp.NewServer(&mcp.Implementation{Name: "rlm", Version: "1"}, nil)
	const value = `{"id":9007199254740993,"x":1.10}`
	addTool(s, server, &mcp.Tool{Name: "rlm_exec"}, func(
		context.Context, *mcp.CallToolRequest, struct{},
	) (*mcp.CallToolResult, execOut, error) {
		return nil, execOut{Value: json.RawMessage(value)}, nil
	})
	var sent json.RawMessage
	server.AddReceivingMiddleware(func(next mcp.MethodHandler) mcp.MethodHandler {
		return func(ctx context.Context, method string, req mcp.Request) (mcp.Result, error) {
			result, err := next(ctx, method, req)
			if called, ok := result.(*mcp.CallToolResult); ok {
				sent, _ = json.Marshal(called)
			}
			return result, err
		}
	})

	host, guest := mcp.NewInMemoryTransports()
	if _, err := server.Connect(t.Context(), guest, nil); err != nil {
		t.Fatal(err)
	}
	client, err := mcp.NewClient(&mcp.Implementation{Name: "t", Version: "1"}, nil).Connect(t.Context(), host, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if _, err := client.CallTool(t.Context(), &mcp.CallToolParams{Name: "rlm_exec"}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(sent), `"value":`+value) {
		t.Errorf("got %s", sent)
	}
}

// checkPlain checks that each part of a schema has one type.
func checkPlain(t *testing.T, at string, schema map[string]any) {
	t.Helper()
	if _, isOne := schema["type"].(string); !isOne {
		t.Errorf("%s has the type %v", at, schema["type"])
	}
	if schema["additionalProperties"] != nil {
		t.Errorf("%s has a rule about other members", at)
	}
	properties, _ := schema["properties"].(map[string]any)
	for name, member := range properties {
		part, _ := member.(map[string]any)
		checkPlain(t, at+"."+name, part)
	}
	if items, has := schema["items"]; has {
		part, _ := items.(map[string]any)
		checkPlain(t, at+".items", part)
	}
}

func TestValuesMayBeTextsOfJSON(t *testing.T) {
	for value, want := range map[string]string{
		`{"n": 2}`: `{"n":2}`, `"{\"n\": 2}"`: `{"n": 2}`, `[1]`: `[1]`, `"[1]"`: `[1]`, `7`: `7`,
		`"Ann"`: `error: the value "Ann" is not JSON: give a text as text`,
	} {
		var c contextIn
		if err := json.Unmarshal([]byte(`{"value": `+value+`}`), &c); err != nil {
			t.Fatal(err)
		}
		got, err := c.json()
		if err != nil {
			got = json.RawMessage("error: " + err.Error())
		}
		if string(got) != want {
			t.Errorf("%s: got %s, want %s", value, got, want)
		}
	}
}
