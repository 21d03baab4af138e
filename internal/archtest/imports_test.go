package archtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// suite is the shared test suite of the tiers. Tests may import it.
const suite = "tiers/tiertest"

// arrows says which parts a part may import, itself apart. A part that is not
// named here may import nothing of the module. What is internal may speak the
// words of the contract, so that it can serve several tiers.
var arrows = map[string][]string{
	"cmd":      {"root", "repl", "router", "tiers", "a tier", "schema", "images", "internal"},
	"root":     {"repl", "router", "tiers", "a tier", "schema", "images", "internal"},
	"repl":     {"router", "schema", "tiers", "internal"},
	"router":   {"tiers", "internal"},
	"schema":   {"internal"},
	"a tier":   {"tiers", "images", "internal"},
	"tiers":    {},
	"images":   {"internal"},
	"internal": {"tiers"},
	"testing":  {"root", "repl", "internal"}, // internal/testing, for tests and scripts
	"scripts":  {"root", "repl", "router", "tiers", "a tier", "schema", "images", "internal", "testing"},
	"examples": {"root", "repl", "router", "tiers", "a tier", "schema"},
}

func TestImportsRunOneWay(t *testing.T) {
	for _, f := range goFiles(t) {
		for _, imported := range f.imports {
			if why := forbidden(f.folder(), imported, f.test); why != "" {
				t.Errorf("%s imports %s: %s", f.path, imported, why)
			}
		}
	}
}

// forbidden returns why a package in folder from may not import the package in
// folder to, empty if it may.
func forbidden(from, to string, test bool) string {
	fromPart, toPart := part(from), part(to)
	switch {
	case from == to, test && (to == suite || toPart == "testing"):
		return ""
	case test && fromPart == "router" && toPart == "a tier":
		return "" // an analyser is tested in the tier that it runs in
	case test && fromPart == "repl" && toPart == "root":
		return "" // a loop is tested over the engine that its users have
	case fromPart == "a tier" && toPart == "a tier":
		if tierOf(from) == tierOf(to) {
			return ""
		}
		return "tiers do not know one another"
	case fromPart == toPart:
		return ""
	case slices.Contains(arrows[fromPart], toPart), slices.Contains(arrows[fromPart], to):
		return ""
	}
	return fmt.Sprintf("of this module, %s may import only itself and %q", fromPart, arrows[fromPart])
}

// part returns the part of the project that a folder belongs to.
func part(folder string) string {
	first, rest, _ := strings.Cut(folder, "/")
	switch {
	case first == ".":
		return "root"
	case first == "tiers" && rest != "":
		return "a tier"
	case first == "internal" && strings.HasPrefix(rest, "testing/"):
		return "testing"
	}
	return first
}

// tierOf returns the name of the tier that a folder below tiers belongs to.
func tierOf(folder string) string {
	name, _, _ := strings.Cut(strings.TrimPrefix(folder, "tiers/"), "/")
	return name
}

func TestForbiddenKnowsTheArrows(t *testing.T) {
	for _, c := range []struct {
		from, to string
		test, ok bool
	}{
		{from: "cmd/rlm", to: ".", ok: true},
		{from: ".", to: "tiers/wasm", ok: true},
		{from: ".", to: "cmd/rlm"},
		{from: "repl/run", to: "repl", ok: true},
		{from: "repl", to: "tiers/wasm"},
		{from: "repl", to: "."},
		{from: "router/python", to: "tiers", ok: true},
		{from: "router", to: "repl"},
		{from: "tiers", to: "internal/bigtext"},
		{from: "tiers", to: "internal/pykernel"},
		{from: "tiers", to: "tiers/wasm"},
		{from: "tiers/wasm", to: "tiers", ok: true},
		{from: "tiers/wasm", to: "tiers/wasm/cpython", ok: true},
		{from: "tiers/wasm", to: "tiers/docker"},
		{from: "tiers/wasm", to: "router"},
		{from: "tiers/wasm", to: suite, test: true, ok: true},
		{from: "tiers/wasm", to: suite},
		{from: "internal/pykernel", to: "internal/bigtext", ok: true},
		{from: "internal/pykernel", to: "tiers", ok: true},
		{from: "internal/pykernel", to: "tiers/wasm"},
		{from: "schema", to: "tiers"},
		{from: "scripts/corpus", to: "internal/testing/corpus", ok: true},
		{from: "internal/testing/llmtest", to: "repl/llm", ok: true},
		{from: "repl/reflect", to: "internal/testing/llmtest", test: true, ok: true},
		{from: "repl/reflect", to: "internal/testing/llmtest"},
		{from: "internal/jail", to: "internal/testing/llmtest"},
	} {
		if why := forbidden(c.from, c.to, c.test); (why == "") != c.ok {
			t.Errorf("%s imports %s (test: %v): %q", c.from, c.to, c.test, why)
		}
	}
}
