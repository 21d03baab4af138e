package tools

import (
	"encoding/json"
	"io"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/tiers"
)

func TestOldServersThatLogToStdoutAreUsed(t *testing.T) {
	var mu sync.Mutex
	var warnings []string
	servers, err := Start(t.Context(), Options{Files: []string{file(t, "old")}, Warn: func(text string) {
		mu.Lock()
		defer mu.Unlock()
		warnings = append(warnings, text)
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = servers.Close() })
	tools, err := repl.NewTools(servers.Tools()...)
	if err != nil {
		t.Fatal(err)
	}

	for function, want := range map[string]string{"old__texts": `"n is 7"`, "old__value": `{"n":7}`} {
		for range 2 {
			if got := call(t, tools, function, `{"x": null}`); got != want {
				t.Errorf("%s: got %s, want %s", function, got, want)
			}
		}
	}
	mu.Lock()
	defer mu.Unlock()
	const want = `the MCP server "old" also writes lines that are not messages to stdout, which are skipped: ` +
		"Server running on stdio"
	if len(warnings) != 1 || warnings[0] != want {
		t.Errorf("got %q", warnings)
	}
}

func TestNoiseIsBounded(t *testing.T) {
	line := strings.Repeat("x", 1<<20) + "\n"
	stdout := strings.NewReader(strings.Repeat(line, maxNoise>>20+1) + `{"jsonrpc":"2.0"}` + "\n")
	m := newMessages(&bounded{ReadCloser: io.NopCloser(stdout), framing: lines, what: theReply}, nil)
	if got, err := io.ReadAll(m); err != errOnlyNoise || len(got) > 0 { //nolint:errorlint // itself
		t.Errorf("got %d bytes, %v", len(got), err)
	}
}

func TestMessagesAreFound(t *testing.T) {
	for line, want := range map[string]bool{
		`{"jsonrpc":"2.0","id":1}`:                               true,
		` {"id": {"a": [1]}, "jsonrpc": "2.0"}`:                  true,
		`[{"jsonrpc":"2.0"}]`:                                    true,
		`{"jsonrpc":"2.0","id":`:                                 true, // the protocol library reports it
		"":                                                       false,
		"Server running on stdio":                                false,
		`[info] sent {"jsonrpc":"2.0"}`:                          false,
		`received {"jsonrpc":"2.0"}`:                             false,
		`{"level":30,"msg":"x"}`:                                 false,
		`{"level":30,"sent":{"jsonrpc":"2.0"}}`:                  false,
		`{"level":30,"msg":"\"jsonrpc\""}`:                       false,
		`{'jsonrpc': '2.0'}`:                                     false,
		`{"x": tru, "jsonrpc":"2.0"}`:                            false,
		`["jsonrpc"]`:                                            false,
		strings.Repeat(`{"a":`, 100_000) + `"jsonrpc"`:           false,
		`{"a":"` + strings.Repeat("x", 1<<20) + `","jsonrpc":1}`: true,
	} {
		if got := isMessage([]byte(line)); got != want {
			t.Errorf("%.80s: got %t", line, got)
		}
	}
}

func TestHostsSeePlainSchemas(t *testing.T) {
	for _, c := range []struct{ schema, want string }{
		{
			`{"type":["null","object"],"properties":{"a":true,"b":{"type":["string","null"]}},
				"additionalProperties":false}`,
			`{"type":"object","properties":{"a":{},"b":{"type":"string"}}}`,
		},
		{
			`{"type":"object","properties":{"a":{"type":"array","items":true},
				"b":{"type":"array","items":{"type":["object","null"]}}}}`,
			`{"type":"object","properties":{"a":{"type":"array","items":{}},
				"b":{"type":"array","items":{"type":"object"}}}}`,
		},
		{
			`{"type":"object","properties":{"a":{"anyOf":[{"type":"integer"},{"type":"null"}],"default":null}}}`,
			`{"type":"object","properties":{"a":{"type":"integer","default":null}}}`,
		},
		{
			`{"type":"object","properties":{"a":{"anyOf":[{"type":"integer"},{"type":"string"},{"type":"null"}]}}}`,
			`{"type":"object","properties":{"a":{"anyOf":[{"type":"integer"},{"type":"string"}]}}}`,
		},
		{
			`{"type":"object","properties":{"type":{"type":"string"}},"$defs":{"x":{"type":["number","null"]}}}`,
			`{"type":"object","properties":{"type":{"type":"string"}},"$defs":{"x":{"type":"number"}}}`,
		},
		{
			`{"type":"object","properties":{"not":{"type":"array","prefixItems":[{"type":["string","null"]}],
				"items":false},"b":false},"patternProperties":{"^x":{}},"not":{"required":["c"]}}`,
			`{"type":"object","properties":{"not":{"type":"array","items":{}}}}`,
		},
	} {
		t.Run(c.schema, func(t *testing.T) {
			var given, before, want any
			for text, to := range map[string]*any{c.schema: &given, c.want: &want} {
				if err := json.Unmarshal([]byte(text), to); err != nil {
					t.Fatal(err)
				}
			}
			_ = json.Unmarshal([]byte(c.schema), &before)
			if got := plainSchema(given); !reflect.DeepEqual(got, want) {
				t.Errorf("got %v", got)
			}
			if !reflect.DeepEqual(given, before) {
				t.Errorf("the original became %v", given)
			}
		})
	}
}

// TestNullIsPassedOnWhereItIsAllowed checks that None becomes null only where the schema allows it.
func TestNullIsPassedOnWhereItIsAllowed(t *testing.T) {
	const schema = `{"type":"object","properties":{"a":{"type":["integer","null"],"default":10},
		"b":{"type":"integer"},"c":{"type":"object","properties":{"d":{"type":"string"}}}}}`
	var decoded any
	if err := json.Unmarshal([]byte(schema), &decoded); err != nil {
		t.Fatal(err)
	}
	one := newTool(&server{name: "s"}, &mcp.Tool{Name: "t", InputSchema: decoded}, map[string]bool{})

	for given, want := range map[string]string{
		`{"a":null,"b":null}`:  `{"a":null}`,
		`{"b":null,"c":null}`:  `{}`,
		`{"c":{"d":null}}`:     `{"c":{}}`,
		`{"a":1,"b":2,"c":{}}`: `{"a":1,"b":2,"c":{}}`,
	} {
		call := tiers.Call{}
		if err := json.Unmarshal([]byte(given), &call.Named); err != nil {
			t.Fatal(err)
		}
		args, err := one.bind(call)
		got, _ := json.Marshal(args)
		if err != nil || string(got) != want {
			t.Errorf("%s: got %s, %v, want %s", given, got, err, want)
		}
	}
}
