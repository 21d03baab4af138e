package flow_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/testing/skip"
	"github.com/rlmhq/rlm/repl/workflow/internal/flow"
)

func TestKeysOfAFileAndOfANode(t *testing.T) {
	file := parse(t, `
name: the name
description: what it does
nodes:
  - name: first
    description: asks
    uses: llm.call
    with: {prompt: hello}
    output: greeting
  - run: |
      return {}
`)
	if file.Title != "the name" || file.Description != "what it does" || len(file.Nodes) != 2 {
		t.Errorf("got %+v", file)
	}
	first, second := file.Nodes[0], file.Nodes[1]
	if first.Name != "first" || first.Uses != "llm.call" || first.Output != "greeting" ||
		first.With.Get("prompt").Text != "hello" {
		t.Errorf("got %+v", first)
	}
	if second.Name != "node 2" || second.Run != "return {}\n" || second.With != nil {
		t.Errorf("got %+v", second)
	}
}

func TestYAMLBecomesJSON(t *testing.T) {
	file := parse(
		t,
		"nodes:\n  - uses: x\n    with: {a: &s {b: 1}, v: [1, 2.5, true, null, \"1\", "+
			"2026-11-21, 0x10, *s], 2026: x, true: y}\n",
	)
	data, err := json.Marshal(file.Nodes[0].With.Plain())
	const want = `{"2026":"x","a":{"b":1},"true":"y","v":[1,2.5,true,null,"1","2026-11-21",16,{"b":1}]}`
	if err != nil || string(data) != want {
		t.Errorf("got %s, %v, want %s", data, err, want)
	}
}

// TestProblemsPointAtLineAndColumn checks where problems are reported, and that the nearest name
// is suggested.
func TestProblemsPointAtLineAndColumn(t *testing.T) {
	skip.WithoutJail(t)
	for _, c := range []struct{ source, want string }{
		{"", "w.yaml:1:1: the file is empty"},
		{"- a\n", "w.yaml:1:1: a workflow must be an object"},
		{"name: x\n", `w.yaml:1:1: "nodes" is missing`},
		{"name: [x]\nnodes: [{run: x}]\n", `w.yaml:1:7: "name" must be a text`},
		{"nodes: {}\n", `w.yaml:1:8: "nodes" must be a list`},
		{"nodez: []\nnodes:\n  - run: x\n", `w.yaml:1:1: unknown key "nodez" of a workflow; did you mean nodes?`},
		{"nodes:\n  - uss: llm.call\n    run: x\n", `w.yaml:2:5: unknown key "uss" of a node; did you mean uses?`},
		{"nodes:\n  - name: a\n", `w.yaml:2:5: a node needs exactly one of "uses"`},
		{"nodes:\n  - run: x\n    with: {}\n", `w.yaml:3:11: "with" is allowed only with "uses"`},
		{"nodes:\n  - {name: a, run: x}\n  - {name: a, run: x}\n", `w.yaml:3:5: an earlier node has the name "a"`},
		{"nodes:\n  - run: x\n    output: a.b\n", `w.yaml:3:13: "output" must be a plain name`},
		{"nodes:\n  - run: x\n    run: y\n", `w.yaml:3:5: the key "run" appears twice`},
		{"nodes:\n  - run: x\n---\nnodes: []\n", "the file has a second document"},
		{"nodes: [\n", "w.yaml:"},
		{"nodes:\n  - uses: llm.cal\n", `w.yaml:2:11: unknown action "llm.cal"; did you mean llm.call?`},
		{"nodes:\n  - uses: llm.call\n", `w.yaml:2:5: "prompt" is missing`},
		{"nodes:\n  - uses: llm.call\n    with:\n      promt: x\n" +
			"      prompt: y\n", `w.yaml:4:7: unknown parameter "promt" of llm.call; did you mean prompt?`},
		{"nodes:\n  - uses: llm.call\n    with:\n      prompt: [x]\n", `w.yaml:4:15: "prompt" must be a text`},
		{"nodes:\n  - uses: llm.call\n    with:\n      prompt: x\n" +
			"      max_tokens: many\n", `w.yaml:5:19: "max_tokens" must be a whole number`},
		{"nodes:\n  - uses: llm.call\n    with:\n      prompt: x\n" +
			"      max_tokens: 0\n", `w.yaml:5:19: "max_tokens" must be a whole number from 1 to`},
		{"nodes:\n  - uses: llm.call\n    with:\n      prompt: x\n" +
			"      schema: {type: objekt}\n", "w.yaml:5:15: cannot compile the schema"},
		{"nodes:\n  - uses: llm.call\n    with:\n" +
			"      prompt: \"{{ state. }}\"\n", "w.yaml:4:15: the template cannot be read"},
		{"nodes:\n  - uses: llm.call\n    with:\n      prompt: |\n        fine {{ state.a }}\n" +
			"        {% for x in %}\n", "w.yaml:6:1: the template cannot be read"},
	} {
		t.Run(fmt.Sprintf("%.60s", c.source), func(t *testing.T) {
			err := problems(t, c.source)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%q: got %v, want %s", c.source, err, c.want)
			}
		})
	}
}

// problems returns the problems found by parsing or checking.
func problems(t *testing.T, source string) error {
	t.Helper()
	file, err := flow.Parse("w.yaml", []byte(source))
	if err == nil {
		err = file.Check(t.Context())
	}
	var found *flow.FileError
	if err != nil && !errors.As(err, &found) {
		t.Fatalf("%q: an error of another type: %v", source, err)
	}
	return err
}

func TestHostileFilesAreRefused(t *testing.T) {
	aliases := "a: &a [x, x, x, x, x, x, x, x, x]\n"
	for c := 'b'; c < 'j'; c++ {
		aliases += fmt.Sprintf(
			"%c: &%c [*%c, *%c, *%c, *%c, *%c, *%c, *%c, *%c, *%c]\n", c, c, c-1, c-1, c-1, c-1,
			c-1, c-1, c-1, c-1, c-1,
		)
	}
	texts := "a: &a " + strings.Repeat("x", 500_000) + "\nb: [" + strings.Repeat("*a, ", 100) + "]\n"
	for name, c := range map[string]struct{ source, want string }{
		"alias bomb":      {aliases, "more than 20000 values"},
		"alias of texts":  {texts, "more than 4194304 bytes together"},
		"alias of itself": {"a: &a [*a]\n", "w.yaml:1:"},
		"alias to nobody": {"a: *b\n", "this is not YAML"},
		"deep flow":       {strings.Repeat("[", 100_000), "w.yaml:1:1: "},
		"deep blocks":     {strings.Repeat("- ", 9_000) + "x\n", "nested more than 40 levels"},
		"deep objects":    {strings.Repeat("{a: ", 60) + "x" + strings.Repeat("}", 60), "nested more than 40 levels"},
		"huge":            {strings.Repeat("#", 1<<20+1), "more than 1048576 bytes"},
		"many values":     {"a: [" + strings.Repeat("x, ", 30_000) + "]", "more than 20000 values"},
		"many nodes":      {"nodes:\n" + strings.Repeat("  - run: x\n", 201), "more than 200 nodes"},
		"merge key":       {"a: &a {b: c}\nd: {<<: *a}\n", "merge keys are not allowed"},
		"binary":          {"a: !!binary aGVsbG8=\n", "w.yaml:1:"},
		"other tag":       {"a: !ruby/object:Gem {b: c}\nnodes: [{run: x}]\n", "w.yaml:1:1: "},
		"no number":       {"a: .nan\n", "is not a number in JSON"},
		"list as key":     {"? [a]\n: b\n", "a key must be a text"},
		"not UTF-8":       {"name: \xff\xfe\n", "w.yaml:1:1: "},
		"control bytes":   {"name: \x00\n", "w.yaml:1:1: "},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := flow.Parse("w.yaml", []byte(c.source))
			var found *flow.FileError
			if !errors.As(err, &found) || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: got %v, want %s", name, err, c.want)
			}
		})
	}
}

func TestAReportHasTwentyProblemsAtMost(t *testing.T) {
	_, err := flow.Parse("w.yaml", []byte("nodes:\n"+strings.Repeat("  - uss: x\n", 50)))
	var found *flow.FileError
	if !errors.As(err, &found) || len(found.Problems) != 20 {
		t.Errorf("got %d: %v", len(found.Problems), err)
	}
}

// FuzzParse parses random files and checks that an accepted file is within its bounds, and that
// each problem has a position.
func FuzzParse(f *testing.F) {
	f.Add(
		[]byte(
			"name: a\nnodes:\n  - uses: llm.call\n" +
				"    with: {prompt: \"{{ state.x }}\", schema: {type: object}}\n    output: o\n" +
				"  - run: |\n      return 1\n",
		),
	)
	f.Add([]byte("a: &a [1, *a]\nnodes: *a\n"))
	f.Add([]byte("nodes: [{run: x, <<: {a: b}}]"))
	f.Add([]byte("? [a]\n: !!binary x\n--- 2026-01-01\n"))
	f.Fuzz(func(t *testing.T, source []byte) {
		file, err := flow.Parse("w", source)
		var found *flow.FileError
		if err != nil {
			if !errors.As(err, &found) || len(found.Problems) == 0 {
				t.Fatalf("an error of another type: %v", err)
			}
			for _, p := range found.Problems {
				if p.Line < 1 || p.Column < 1 || p.Message == "" || p.File != "w" {
					t.Errorf("a problem at %+v", p)
				}
			}
			return
		}
		for _, n := range file.Nodes {
			if (n.Uses == "") == (n.Run == "") || n.Name == "" {
				t.Errorf("a node %+v", n)
			}
			if n.With != nil {
				if _, ok := n.With.Plain().(map[string]any); !ok {
					t.Errorf("parameters that are no object: %+v", n.With)
				}
			}
		}
		if len(file.Models()) > 20_000 {
			t.Error("a file without bounds")
		}
	})
}

// TestSchemasOfOtherFilesAreFollowed checks references to schemas in other files.
//
// Source 004, repl/workflow/internal/flow/refs.go: External schema references via $ref.
func TestSchemasOfOtherFilesAreFollowed(t *testing.T) {
	skip.WithoutJail(t)
	folder := t.TempDir()
	outside := filepath.Join(filepath.Dir(folder), "outside.json")
	for name, text := range map[string]string{
		filepath.Join(folder, "user.yaml"): "type: object\nrequired: [name]\n" +
			"properties: {name: {$ref: \"sub/text.json#/$defs/short\"}, self: {$ref: \"#\"}}\n",
		filepath.Join(folder, "sub", "text.json"): "{\n\t\"$comment\": \"by " +
			"tabs\"," + `"$defs": {"short": {"$ref": "#/$defs/base", "maxLength": 5}, "base": {"type": "string"}}}`,
		filepath.Join(folder, "sub", "up.json"): `{"$ref": "../user.yaml"}`,
		filepath.Join(folder, "dialect.json"):   `{"$id": "https://example.com/x"}`,
		filepath.Join(folder, "broken.json"):    `{`,
		filepath.Join(folder, "round.json"):     `{"$ref": "round.json"}`,
		outside:                                 `{"type": "string"}`,
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(outside, filepath.Join(folder, "link.json")); err != nil {
		t.Fatal(err)
	}
	for ref, want := range map[string]string{
		"user.yaml":                  "",
		"sub/up.json":                "",
		"sub/text.json#/$defs/short": "",
		"../outside.json":            "leads out of the workflow's folder",
		outside:                      "leads out of the workflow's folder",
		"file:///etc/passwd":         "leads out of the workflow's folder",
		"https://example.com/x.json": "leads out of the workflow's folder",
		"link.json":                  "the reference",
		"missing.json":               "the reference",
		"sub":                        "not a regular file",
		"dialect.json":               "remove it",
		"broken.json":                "not YAML",
		"user.yaml#anchor":           "the part after # must be a path",
		"round.json":                 "the schema at round.json refers to itself",
	} {
		file := parse(
			t,
			fmt.Sprintf(
				"nodes:\n  - uses: llm.call\n    with:\n      prompt: x\n      schema: {properties: {a: {$ref: %q}}}\n",
				ref,
			),
		)
		file.Folder = folder
		err := file.Check(t.Context())
		if want == "" && err != nil || want != "" &&
			(err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "w.yaml:5:15: ")) {
			t.Errorf("%s: got %v, want %q", ref, err, want)
		}
	}
}

// BenchmarkParse measures parsing the manual's example.
func BenchmarkParse(b *testing.B) {
	source, err := os.ReadFile(filepath.Join("..", "..", "..", "..", "examples", "workflow", "profile.yaml"))
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(source)))
	for b.Loop() {
		if _, err := flow.Parse("profile.yaml", source); err != nil {
			b.Fatal(err)
		}
	}
}
