package tools

import (
	"encoding/json"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/tiers"
)

// startForBenchmark starts a server in the given mode.
func startForBenchmark(b *testing.B, mode string) *Servers {
	b.Helper()
	servers, err := Start(b.Context(), Options{Files: []string{file(b, mode)}, Version: "1"})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = servers.Close() })
	return servers
}

// BenchmarkThousandTools measures the cost of a thousand tools at the start: of reading the
// server's list with the official client, and then of making the functions.
func BenchmarkThousandTools(b *testing.B) {
	session := startForBenchmark(b, "many").all[0].session
	var found []*mcp.Tool
	list := func(b *testing.B) {
		b.Helper()
		found = nil
		for tool, err := range session.Tools(b.Context(), nil) {
			if err != nil {
				b.Fatal(err)
			}
			found = append(found, tool)
		}
	}
	b.Run("list", func(b *testing.B) {
		for b.Loop() {
			list(b)
		}
	})
	b.Run("functions", func(b *testing.B) {
		list(b)
		for b.Loop() {
			taken := map[string]bool{}
			one := &server{name: "many", given: "many"}
			for _, tool := range found {
				one.tools = append(one.tools, newTool(one, tool, taken))
			}
			all := &Servers{all: []*server{one}}
			if _, err := repl.NewTools(all.Tools()...); err != nil {
				b.Fatal(err)
			}
			if len(all.Python()) == 0 {
				b.Fatal("there is no Python")
			}
		}
	})
}

// BenchmarkOpen measures how long a session takes until its first snippet has run, with no tools,
// with a few, and with a thousand. The servers are already running.
func BenchmarkOpen(b *testing.B) {
	engine, err := rlm.New(rlm.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = engine.Close() })

	for _, mode := range []string{"", "kind", "many"} {
		b.Run("tools="+mode, func(b *testing.B) {
			var servers *Servers
			if mode != "" {
				servers = startForBenchmark(b, mode)
			}
			for b.Loop() {
				openForBenchmark(b, engine, servers)
			}
		})
	}
}

// openForBenchmark opens a session with the tools of servers, runs a snippet and closes it.
func openForBenchmark(b *testing.B, engine *rlm.Engine, servers *Servers) {
	b.Helper()
	snippets, cfg := []string{"1 + 1"}, rlm.SessionConfig{}
	if servers != nil {
		tools, err := repl.NewTools(servers.Tools()...)
		if err != nil {
			b.Fatal(err)
		}
		cfg.Ask.Tools, snippets = tools, []string{servers.Python(), "1 + 1"}
	}

	session, err := engine.Open(b.Context(), cfg)
	if err != nil {
		b.Fatal(err)
	}
	defer session.Close()
	for _, snippet := range snippets {
		if r, err := session.Run(b.Context(), snippet); err != nil || r.Exception != nil {
			b.Fatal(r.Exception, err)
		}
	}
}

// BenchmarkCall measures a call over stdio, by the official client and by a function.
func BenchmarkCall(b *testing.B) {
	servers := startForBenchmark(b, "kind")
	tools, err := repl.NewTools(servers.Tools()...)
	if err != nil {
		b.Fatal(err)
	}
	args := map[string]json.RawMessage{"a": json.RawMessage("1"), "b": json.RawMessage("2")}
	b.Run("client", func(b *testing.B) {
		for b.Loop() {
			_, err := servers.all[0].session.CallTool(b.Context(),
				&mcp.CallToolParams{Name: "add-numbers", Arguments: args})
			if err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("function", func(b *testing.B) {
		call := tiers.Call{
			Function: "kind__add_numbers", Named: map[string]tiers.Value{"a": tiers.Value("1"), "b": tiers.Value("2")},
		}
		for b.Loop() {
			if _, err := tools.Call(b.Context(), call); err != nil {
				b.Fatal(err)
			}
		}
	})
}
