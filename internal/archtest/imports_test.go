package archtest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// layers are the parts of the project from the bottom up. A part imports only parts
// below it, and of those only the ones that arrows names.
//
// The contract, package tiers, lies at the bottom: it imports nothing of the module. So
// code in internal may use the words of the contract and serve several tiers.
var layers = []string{
	"tiers", "internal", "schema", "images", "a tier", "router",
	"routing", // internal/analyser and internal/runner: what fills in and follows the router's plans
	"repl", "viewer", "graph", "root",
	"standard", "inputs", "hook", // what an engine is given, and a light program does without
	"testing", // internal/testing: what only tests and scripts import
	"suite",   // tiers/tiertest: the suite for authors of tiers
	"serve",   // internal/serve: the engine as a service
	"cmd", "examples", "scripts",
}

// arrows says which parts a part may import, itself apart. A part that is not named here
// may import nothing of the module.
var arrows = map[string][]string{
	"tiers":    {},
	"internal": {"tiers"},
	"schema":   {"internal"},
	"images":   {"internal"},
	"a tier":   {"tiers", "images", "internal"},
	"router":   {"tiers", "internal"},
	"routing":  {"router", "tiers", "internal"},
	"repl":     {"router", "schema", "tiers", "internal"},
	"viewer":   {"repl", "router", "tiers", "internal"},
	"graph":    {"repl", "tiers", "internal"},
	"root":     {"repl", "routing", "router", "tiers", "tiers/wasm", "schema", "internal"},
	"standard": {"a tier", "tiers", "internal"},
	"inputs":   {"root", "tiers", "internal"},
	"hook":     {"inputs", "root", "repl"},
	"testing":  {"standard", "root", "graph", "repl", "tiers", "internal"},
	"suite":    {"tiers", "testing"},
	"serve":    {"inputs", "root", "viewer", "repl", "router", "tiers", "schema", "internal"},
	"cmd": {
		"serve", "standard", "hook", "root", "viewer", "graph", "repl", "router", "tiers", "a tier",
		"schema", "inputs", "images", "internal",
	},
	"examples": {"standard", "root", "graph", "repl", "router", "tiers", "a tier", "schema", "inputs"},
	"scripts": {
		"standard", "root", "viewer", "graph", "repl", "routing", "router", "tiers", "a tier",
		"schema", "images", "internal", "testing",
	},
}

// suite is the folder of the shared tests of tiers.
const suite = "tiers/tiertest"

func TestArrowsPointDown(t *testing.T) {
	for from, all := range arrows {
		if !slices.Contains(layers, from) {
			t.Errorf("%s is in no layer", from)
		}
		for _, to := range all {
			if slices.Contains(layers, part(to)) {
				to = part(to)
			}
			if slices.Index(layers, to) >= slices.Index(layers, from) {
				t.Errorf("the arrow from %s to %s does not point down: see layers", from, to)
			}
		}
	}
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
	case from == to, test && (toPart == "suite" || toPart == "testing"):
		return ""
	case test && fromPart == "routing" && toPart == "a tier":
		return "" // an analyser is tested in the tier that it runs in
	case test && fromPart == "testing" && toPart == "a tier":
		return "" // moves between tiers are tested
	case test && fromPart == "repl" && (toPart == "root" || toPart == "standard"),
		test && (fromPart == "root" || fromPart == "serve") && (toPart == "standard" || toPart == "a tier"),
		test && fromPart == "root" && toPart == "inputs", test && fromPart == "standard" && toPart == "root":
		return "" // a loop, an engine and a server are tested with what their users hand over
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
	case folder == suite:
		return "suite"
	case first == "tiers" && rest != "":
		return "a tier"
	case first == "internal" && strings.HasPrefix(rest, "testing/"):
		return "testing"
	case first == "internal" && (strings.HasPrefix(rest, "analyser/") || rest == "runner"):
		return "routing"
	case folder == "internal/viewer", strings.HasPrefix(folder, "internal/viewer/"):
		return "viewer" // the one part of internal that knows the events of loops
	case first == "internal" && (rest == "serve" || strings.HasPrefix(rest, "serve/")):
		return "serve"
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
		{from: ".", to: "tiers/docker"},
		{from: ".", to: "inputs"},
		{from: "standard", to: "tiers/docker", ok: true},
		{from: "repl/run", to: "repl", ok: true},
		{from: "repl", to: "tiers/wasm"},
		{from: "graph", to: "repl", ok: true},
		{from: "graph", to: "tiers/wasm"},
		{from: "repl", to: "graph"},
		{from: "repl", to: "."},
		{from: "internal/analyser/python", to: "router", ok: true},
		{from: "internal/session", to: "internal/analyser/python"},
		{from: "router", to: "internal/analyser/python"},
		{from: "router", to: "repl"},
		{from: "tiers", to: "internal/bigtext"},
		{from: "tiers", to: "internal/pykernel"},
		{from: "tiers", to: "tiers/wasm"},
		{from: "tiers/wasm", to: "tiers", ok: true},
		{from: "tiers/local", to: "tiers/local/internal/goworker", ok: true},
		{from: "tiers/wasm", to: "tiers/docker"},
		{from: "tiers/wasm", to: "router"},
		{from: "tiers/wasm", to: suite, test: true, ok: true},
		{from: "tiers/wasm", to: suite},
		{from: "internal/pykernel", to: "internal/bigtext", ok: true},
		{from: "internal/pykernel", to: "tiers", ok: true},
		{from: "internal/pykernel", to: "tiers/wasm"},
		{from: "internal/session", to: "router"},
		{from: "internal/serve/connect", to: ".", ok: true},
		{from: "internal/session", to: "internal/serve/results"},
		{from: suite, to: "internal/testing/tiersuite", ok: true},
		{from: suite, to: "internal/jail"},
		{from: suite, to: "tiers/wasm"},
		{from: "internal/testing/tiersuite", to: suite},
		{from: "schema", to: "tiers"},
		{from: "scripts/corpus", to: "internal/testing/corpus", ok: true},
		{from: "internal/testing/llmtest", to: "repl/llm", ok: true},
		{from: "repl/reflect", to: "internal/testing/llmtest", test: true, ok: true},
		{from: "repl/reflect", to: "internal/testing/llmtest"},
		{from: "internal/jail", to: "internal/testing/llmtest"},
	} {
		t.Run(fmt.Sprintf("%.60s", c.from), func(t *testing.T) {
			if why := forbidden(c.from, c.to, c.test); (why == "") != c.ok {
				t.Errorf("%s imports %s (test: %v): %q", c.from, c.to, c.test, why)
			}
		})
	}
}
