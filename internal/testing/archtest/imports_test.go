package archtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// suite is the folder of the tests shared by tiers.
const suite = "tiers/tiertest"

func TestArrowsPointDown(t *testing.T) {
	floors := readMap(t).floors
	for i, from := range floors {
		for _, name := range from.imports {
			to := slices.IndexFunc(floors, func(f floor) bool {
				return f.name == name || slices.Contains(f.folders, name)
			})
			if to <= i {
				t.Errorf("%s: %s may import %s, which does not stand below it", mapPage, from.name, name)
			}
		}
	}
}

func TestImportsRunOneWay(t *testing.T) {
	m := readMap(t)
	for _, f := range goFiles(t) {
		for _, imported := range f.imports {
			if why := m.forbid(f.folder(), imported, f.test); why != "" {
				t.Errorf("%s imports %s: %s", f.path, imported, why)
			}
		}
	}
}

// forbid returns why a package in folder from must not import the package in folder to, or an empty
// string if it may.
func (m *archMap) forbid(from, to string, test bool) string {
	above, below := m.floorOf(from), m.floorOf(to)
	switch {
	case above == nil || below == nil:
		return mapPage + " has no part for it: add its folder to the table of floors"
	case from == to, test && (below.name == "suite" || below.name == "testing"):
		return ""
	case test && mayTest(above.name, below.name):
		return ""
	case above.name == "tiers" && below == above && tierOf(from) != tierOf(to):
		return "tiers do not know one another"
	case below == above, slices.Contains(above.imports, below.name), slices.Contains(above.imports, to):
		return ""
	}
	return fmt.Sprintf("of this module, %s may import only itself and %q: see %s",
		above.name, above.imports, mapPage)
}

// mayTest reports whether tests of a part may import another part that the code of the part must
// not import. Loops, engines and servers are tested with the parts that their users provide.
func mayTest(part, other string) bool {
	uses := map[string][]string{
		"command":  {"tiers"},
		"python":   {"data"},
		"wall":     {"snippet"},
		"plan":     {"tiers"}, // an analyser is tested in the tier that it runs in
		"testing":  {"tiers"},
		"loops":    {"rlm", "standard", "store", "tables", "inputs"},
		"rlm":      {"standard", "store", "tables", "tiers", "inputs"},
		"scripts":  {"server", "inputs", "wall"},
		"standard": {"rlm"},
		"tables":   {"rlm", "standard", "inputs"},
		"server":   {"standard", "store", "tables", "tiers"},
		"mcp":      {"standard"},
		"viewer":   {"rlm", "standard"},
	}
	return slices.Contains(uses[part], other)
}

// tierOf returns the name of the tier that a folder below tiers belongs to.
func tierOf(folder string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(folder, "tiers/"), "/")
	return name
}

func TestForbiddenKnowsTheArrows(t *testing.T) {
	m := readMap(t)
	for _, c := range []struct {
		from, to string
		test, ok bool
	}{
		{from: "cmd/rlm", to: ".", ok: true},
		{from: ".", to: "tiers/wasm", ok: true},
		{from: ".", to: "cmd/rlm"},
		{from: ".", to: "tiers/docker"},
		{from: ".", to: "inputs"},
		{from: ".", to: "store"},
		{from: ".", to: "tables"},
		{from: ".", to: "tables", test: true, ok: true},
		{from: "standard", to: "tiers/docker", ok: true},
		{from: "repl/run", to: "repl", ok: true},
		{from: "repl", to: "tiers/wasm"},
		{from: "graph", to: "repl", ok: true},
		{from: "graph", to: "tiers/wasm"},
		{from: "repl", to: "graph"},
		{from: "repl", to: "."},
		{from: "internal/plan/analyser/python", to: "router", ok: true},
		{from: "internal/snippet/session", to: "internal/plan/analyser/python"},
		{from: "router", to: "internal/plan/analyser/python"},
		{from: "router", to: "repl"},
		{from: "tiers", to: "internal/data/bigtext"},
		{from: "tiers", to: "internal/python/pykernel"},
		{from: "tiers", to: "tiers/wasm"},
		{from: "tiers/wasm", to: "tiers", ok: true},
		{from: "tiers/local", to: "tiers/local/internal/goworker", ok: true},
		{from: "tiers/wasm", to: "tiers/docker"},
		{from: "tiers/wasm", to: "router"},
		{from: "tiers/wasm", to: suite, test: true, ok: true},
		{from: "tiers/wasm", to: suite},
		{from: "internal/python/pykernel", to: "internal/snippet/session", ok: true},
		{from: "internal/python/pykernel", to: "tiers", ok: true},
		{from: "internal/python/pykernel", to: "tiers/wasm"},
		{from: "internal/snippet/session", to: "router"},
		{from: "server/internal/connect", to: ".", ok: true},
		{from: "internal/wall/jail", to: "internal/machine/mapbudget", ok: true},
		{from: "internal/machine/aot", to: "internal/wall/jail"},
		{from: ".", to: "server"},
		{from: "unknown", to: "tiers"},
		{from: "internal/snippet/session", to: "internal/plan/results"},
		{from: suite, to: "internal/testing/tiersuite", ok: true},
		{from: suite, to: "internal/wall/jail"},
		{from: suite, to: "tiers/wasm"},
		{from: "internal/testing/tiersuite", to: suite},
		{from: "schema", to: "tiers"},
		{from: "scripts/corpus", to: "internal/testing/corpus", ok: true},
		{from: "internal/testing/llmtest", to: "repl/llm", ok: true},
		{from: "repl/reflect", to: "internal/testing/llmtest", test: true, ok: true},
		{from: "repl/reflect", to: "internal/testing/llmtest"},
		{from: "internal/wall/jail", to: "internal/testing/llmtest"},
	} {
		if why := m.forbid(c.from, c.to, c.test); (why == "") != c.ok {
			t.Errorf("%s imports %s (test: %v): %q", c.from, c.to, c.test, why)
		}
	}
}
