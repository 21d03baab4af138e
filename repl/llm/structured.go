package llm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Shaped is a schema in the form in which servers take one.
type Shaped struct {
	Schema  json.RawMessage
	Wrapped bool // the reply is {"value": …}, because servers want an object at the top
	Strict  bool // the server can be asked to keep to it exactly
}

// Shape prepares a schema for a server that enforces schemas. Servers want an
// object at the top, so anything else goes into an object of one field; they
// are strict only with objects that are closed and whose fields are all
// required (https://platform.openai.com/docs/guides/structured-outputs).
// It reports false for a schema that cannot be sent: one that is no object, or
// whose references would break in the wrapping.
func Shape(schema json.RawMessage) (Shaped, bool) {
	top := map[string]json.RawMessage{}
	if err := json.Unmarshal(schema, &top); err != nil || len(top) == 0 {
		return Shaped{}, false
	}
	var tree any
	if err := json.Unmarshal(schema, &tree); err != nil {
		return Shaped{}, false
	}
	strict := closed(tree, 0)
	if string(bytes.TrimSpace(top["type"])) == `"object"` {
		return Shaped{Schema: schema, Strict: strict}, true
	}
	outer := map[string]any{"type": "object", "required": []string{"value"}, "additionalProperties": false}
	for _, name := range []string{"$defs", "definitions", "$schema"} {
		if part, ok := top[name]; ok {
			outer[name] = part
			delete(top, name)
		}
	}
	if !portable(tree) {
		return Shaped{}, false
	}
	outer["properties"] = map[string]any{"value": top}
	wrapped, err := json.Marshal(outer)
	if err != nil {
		return Shaped{}, false
	}
	return Shaped{Schema: wrapped, Wrapped: true, Strict: strict}, true
}

// maxSchemaDepth is how deep schemas are looked at; deeper ones are not strict.
const maxSchemaDepth = 64

// closed reports whether every object schema in a tree is closed and requires
// all its fields.
func closed(node any, depth int) bool {
	if depth > maxSchemaDepth {
		return false
	}
	switch n := node.(type) {
	case []any:
		return !slices.ContainsFunc(n, func(inner any) bool { return !closed(inner, depth+1) })
	case map[string]any:
		if properties, ok := n["properties"].(map[string]any); ok || n["type"] == "object" {
			required, _ := n["required"].([]any)
			if n["additionalProperties"] != false || len(required) != len(properties) {
				return false
			}
		}
		for _, inner := range n {
			if !closed(inner, depth+1) {
				return false
			}
		}
	}
	return true
}

// portable reports whether all references of a schema point into its
// definitions, so that they still hold when the rest moves one level down.
func portable(node any) bool {
	switch n := node.(type) {
	case []any:
		return !slices.ContainsFunc(n, func(inner any) bool { return !portable(inner) })
	case map[string]any:
		for name, inner := range n {
			if target, ok := inner.(string); ok && name == "$ref" &&
				!strings.HasPrefix(target, "#/$defs/") && !strings.HasPrefix(target, "#/definitions/") {
				return false
			}
			if !portable(inner) {
				return false
			}
		}
	}
	return true
}

// Unwrap returns the value of a reply to a wrapped schema as JSON. A reply that
// is not wrapped, as by a server that did not enforce the schema after all, is
// returned as it is.
func Unwrap(text string) string {
	var outer map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &outer); err != nil || len(outer) != 1 || outer["value"] == nil {
		return text
	}
	return string(outer["value"])
}

// Instruct returns the messages with an order to reply by the schema, for
// servers that cannot enforce one. It stands at the end of the last message of
// a user, where models heed it most.
func Instruct(messages []Message, schema json.RawMessage) []Message {
	order := fmt.Sprintf("Reply with one JSON value and nothing else: no explanation, no code fence. "+
		"The value must meet this JSON Schema:\n%s", schema)
	messages = slices.Clone(messages)
	for i, m := range slices.Backward(messages) {
		if m.Role == RoleUser {
			messages[i].Content = m.Content + "\n\n" + order
			return messages
		}
	}
	return append(messages, Message{Role: RoleUser, Content: order})
}

// Unfence returns a reply without the code fence around the whole of it, which
// models add to JSON even when told not to.
func Unfence(text string) string {
	trimmed := strings.TrimSpace(text)
	inner, ok := strings.CutPrefix(trimmed, "```")
	if !ok {
		return text
	}
	inner, ok = strings.CutSuffix(inner, "```")
	label, body, found := strings.Cut(inner, "\n")
	if !ok || !found || strings.Contains(body, "```") || strings.ContainsAny(strings.TrimSpace(label), " {[\"") {
		return text
	}
	return strings.TrimSpace(body)
}
