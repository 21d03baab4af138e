package chat

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/rlmhq/rlm/repl/llm"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestSchemasAreShapedForServers(t *testing.T) {
	for _, c := range []struct {
		schema          string
		ok, wrap, exact bool
	}{
		{`{"type":"boolean"}`, true, true, true},
		{`{"type":["object","null"]}`, true, true, false},
		{
			`{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"],` +
				`"additionalProperties":false}`, true, false, true,
		},
		{
			`{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}`, true, false,
			true,
		},
		{
			`{"type":"object","properties":{"a":{},"b":{}},"required":["a"],` +
				`"additionalProperties":false}`, true, false, false,
		},
		{`{"type":"array","items":{"type":"object"}}`, true, true, false},
		{`{"$ref":"#/$defs/a","$defs":{"a":{"type":"string"}}}`, true, true, true},
		{`{"type":"array","items":{"$ref":"#"}}`, false, false, false},
		{`{"items":{"$ref":"https://example.com/x"}}`, false, false, false},
		{`{}`, false, false, false},
		{`true`, false, false, false},
		{`{"type":"array","items":` + strings.Repeat(`{"items":`, 100) + `{}` +
			strings.Repeat(`}`, 101), true, true, false},
	} {
		t.Run(fmt.Sprintf("%.60s", c.schema), func(t *testing.T) {
			shape, ok := newShape(json.RawMessage(c.schema))
			if ok != c.ok || shape.Wrapped != c.wrap || shape.Strict != c.exact ||
				ok && !json.Valid(shape.Schema) {
				t.Errorf("%s: got %v %+v %s", c.schema, ok, shape, shape.Schema)
			}
		})
	}

	shape, _ := newShape(json.RawMessage(`{"$ref":"#/$defs/a","$defs":{"a":{"type":"string"}}}`))
	const want = `{"type":"object","properties":{"value":{"type":"string"}},"required":["value"],` +
		`"additionalProperties":false,"$defs":{"a":{"type":"string"}}}`
	if string(shape.Schema) != want {
		t.Errorf("got %s", shape.Schema)
	}
}

func TestFencesAroundAWholeReplyAreTakenOff(t *testing.T) {
	for text, want := range map[string]string{
		"```json\n[1]\n```": "[1]", " ```\n{}\n``` \n": "{}", "[1]": "[1]", "```json": "```json",
		"```{}```":                        "```{}```",
		"```a\nx\n```\nand\n```b\ny\n```": "```a\nx\n```\nand\n```b\ny\n```",
		"see ```x\n1\n```":                "see ```x\n1\n```",
	} {
		t.Run(text, func(t *testing.T) {
			if got := removeFence(text); got != want {
				t.Errorf("%q: got %q", text, got)
			}
		})
	}
}

func TestTheOrderToFollowASchemaStandsLast(t *testing.T) {
	messages := []llm.Message{
		{Role: llm.RoleUser, Content: "ask"},
		{Role: llm.RoleAssistant, Content: "so"},
	}
	got := appendInstruction(messages, json.RawMessage(`{"type":"boolean"}`))
	if !strings.HasPrefix(got[0].Content, "ask\n\n") ||
		!strings.HasSuffix(got[0].Content, `{"type":"boolean"}`) || messages[0].Content != "ask" {
		t.Errorf("got %q, and the caller's is %q", got, messages)
	}

	if got := appendInstruction(messages[1:], nil); len(got) != 2 || got[1].Role != llm.RoleUser {
		t.Errorf("got %q", got)
	}
}
