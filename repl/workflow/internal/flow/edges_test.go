package flow_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/repl/workflow/internal/flow"
)

// threeNodes returns a file with the nodes b, a and c, and some edges.
func threeNodes(edges string) string {
	return "nodes:\n  - {name: b, run: x}\n  - {name: a, run: x}\n  - {name: c, run: x}\nedges:" + edges
}

// TestEdgesOrderTheNodes checks that a line of edges, with or without its ends, determines the
// order of the nodes.
func TestEdgesOrderTheNodes(t *testing.T) {
	for edges, want := range map[string]string{
		" []": "b a c",
		"\n  - {from: __start__, to: a}\n  - {from: a, to: b}" +
			"\n  - {from: b, to: c}\n  - {from: c, to: __end__}": "a b c",
		"\n  - {from: c, to: b, type: normal}\n  - {from: a, to: c}": "a c b",
	} {
		t.Run(fmt.Sprintf("%.60s", edges), func(t *testing.T) {
			var names []string
			for _, n := range parse(t, threeNodes(edges)).Nodes {
				names = append(names, n.Name)
			}
			if got := strings.Join(names, " "); got != want {
				t.Errorf("%s: got %s, want %s", edges, got, want)
			}
		})
	}
}

// TestOtherEdgesAreRefused checks that branches, loops and conditions are refused, because they
// would not run as written.
func TestOtherEdgesAreRefused(t *testing.T) {
	for edges, want := range map[string]string{
		" {}":                    `w.yaml:5:8: "edges" must be a list`,
		"\n  - a":                `w.yaml:6:5: an edge must be an object`,
		"\n  - {from: a}":        `w.yaml:6:5: "to" is missing: name a node, or __end__`,
		"\n  - {from: a, to: d}": `w.yaml:6:19: there is no node "d"`,
		"\n  - {from: a, to: b}\n  - {from: a, to: c}": `w.yaml:7:5: a second edge leaves "a"`,
		"\n  - {from: a, to: b}\n  - {from: c, to: b}": `w.yaml:7:5: a second edge enters "b"`,
		"\n  - {from: a, to: b, when: true}":           `w.yaml:6:22: an edge with "when" is not supported`,
		"\n  - {from: a, to: b, type: parallel}":       `w.yaml:6:28: an edge of type "parallel" is not supported`,
		"\n  - {from: a, to: b}":                       `w.yaml:4:5: the line of edges from __start__ does not reach`,
		"\n  - {from: __start__, to: a}\n  - {from: a, to: b}\n  - {from: b, to: c}" +
			"\n  - {from: c, to: a}": `a second edge enters "a"`,
	} {
		t.Run(fmt.Sprintf("%.60s", edges), func(t *testing.T) {
			_, err := flow.Parse("w.yaml", []byte(threeNodes(edges)))
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%q: got %v, want %s", edges, err, want)
			}
		})
	}
}

// TestIgnoredKeysAreNoted checks that files of other programs load, with notes about the ignored
// keys.
func TestIgnoredKeysAreNoted(t *testing.T) {
	file := parse(t, "name: x\nversion: 1\nstate_schema: {a: str}\nsettings: {ltm: {}}\nnodes:\n  - run: return {}\n")
	var notes []string
	for _, note := range file.Notes() {
		notes = append(notes, note.String())
	}
	want := `w.yaml:2:1: note: "version" has no effect
w.yaml:3:1: note: "state_schema" has no effect
w.yaml:4:1: note: "settings" has no effect`
	if got := strings.Join(notes, "\n"); got != want {
		t.Errorf("got %s", got)
	}
}

// TestMessagesOfLLMCall checks that a conversation can replace the prompt.
func TestMessagesOfLLMCall(t *testing.T) {
	models := says("hi")
	outcome, err := parse(t, `
nodes:
  - uses: llm.call
    with:
      messages:
        - {role: system, content: Be short.}
        - {role: user, content: "Greet {{ state.name }}."}
        - {role: assistant, content: Hello.}
        - {role: user, content: Shorter.}
`).Run(t.Context(), config(models), map[string]any{"name": "Ann"})
	if err != nil || asJSON(t, outcome.Result) != `{"content":"hi"}` {
		t.Fatalf("got %+v, %v", outcome, err)
	}
	var asked []string
	for _, m := range models.requests[0].Messages {
		asked = append(asked, string(m.Role)+": "+m.Content)
	}
	if got := strings.Join(asked, "|"); got != "system: Be short.|user: Greet Ann.|assistant: Hello.|user: Shorter." {
		t.Errorf("asked %s", got)
	}

	for with, want := range map[string]string{
		"{}":                        `"prompt" is missing`,
		"{messages: []}":            `"messages" must have at least one message`,
		"{prompt: x, messages: []}": `"prompt" excludes "messages"`,
		"{system: x, messages: [{role: user, content: y}]}": `"system" excludes "messages"`,
		"{messages: [{role: tool, content: y}]}":            `"role" must be one of system, user, assistant`,
		"{messages: [{role: user}]}":                        `"content" is missing`,
	} {
		t.Run(with, func(t *testing.T) {
			if err := problems(t, "nodes:\n  - uses: llm.call\n    with: "+with+"\n"); err == nil ||
				!strings.Contains(err.Error(), want) {
				t.Errorf("%s: got %v, want %s", with, err, want)
			}
		})
	}
}

// TestTheResultOfCode checks that the result of code is the returned value, or else the variable
// result, in every node.
//
// Source 004, repl/workflow/internal/flow/python.go: run: code returns a value, or sets
// result.
func TestTheResultOfCode(t *testing.T) {
	for code, want := range map[string]string{
		"result = {'a': 1}":                         `{"a":1}`,
		"if True:\n    result = {'a': 2}":           `{"a":2}`,
		"result = {'a': 1}\nreturn {'a': 3}":        `{"a":3}`,
		"return None":                               `null`,
		"result = None":                             `null`,
		"result = [1]\nif False: return":            "node \"n\": the result is a list",
		"x = 1":                                     "the code neither returns a value nor sets the variable result",
		"# nothing":                                 "the code neither returns a value nor sets the variable result",
		"def f():\n    result = 1\nf()":             "the code neither returns a value nor sets the variable result",
		"state['a'] = 1":                            "the code neither returns a value nor sets the variable result",
		"result = 1\nraise ValueError('no')":        "ValueError: no",
		"import math\nresult = {'a': math.inf > 1}": `{"a":true}`,
	} {
		t.Run(code, func(t *testing.T) {
			source := "nodes:\n  - name: n\n    run: |\n      " + strings.ReplaceAll(code, "\n", "\n      ") + "\n"
			outcome, err := parse(t, source).Run(t.Context(), config(nil), nil)
			got := asJSON(t, outcome.Result)
			if err != nil {
				got = err.Error()
			}
			if !strings.Contains(got, want) {
				t.Errorf("%q: got %s, want %s", code, got, want)
			}
		})
	}
}
