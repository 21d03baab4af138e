package chat

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/schema"
)

// Shape is a schema in a form that servers accept.
type Shape struct {
	Schema  json.RawMessage
	Wrapped bool // the reply is {"value": …}, because servers require an object at the top
	Strict  bool // the server can be asked to follow it exactly: see [schema.Contract.Strict]
}

// definitionKeys are the members that must stay at the top of a schema.
var definitionKeys = []string{"$defs", "definitions", "$schema"}

// newShape prepares a schema for a server that enforces schemas. The strict form is the one that
// servers follow exactly (https://platform.openai.com/docs/guides/structured-outputs). A schema
// without a strict form is sent unchanged. Servers require an object at the top, so any other
// schema is wrapped in an object with one member.
//
// It returns false for a schema that cannot be sent: a schema that is not an object, or has
// references that would break when wrapped.
func newShape(text json.RawMessage) (Shape, bool) {
	top := map[string]json.RawMessage{}
	if err := json.Unmarshal(text, &top); err != nil || len(top) == 0 {
		return Shape{}, false
	}
	if contract, err := schema.Compile(text); err == nil {
		if strict, err := contract.Strict(); err == nil {
			return Shape{Schema: strict, Wrapped: !isObject(top), Strict: true}, true
		}
	}

	if string(bytes.TrimSpace(top["type"])) == `"object"` {
		return Shape{Schema: text}, true
	}
	var tree any
	if err := json.Unmarshal(text, &tree); err != nil || !isPortable(tree) {
		return Shape{}, false
	}
	wrapped, err := json.Marshal(wrapSchema(top))
	if err != nil {
		return Shape{}, false
	}
	return Shape{Schema: wrapped, Wrapped: true}, true
}

// isObject reports whether a schema, or the definition to which it refers, describes an object.
func isObject(top map[string]json.RawMessage) bool {
	at := top
	for range maxRefs {
		var target string
		if json.Unmarshal(at["$ref"], &target) != nil || !isDefinition(target) {
			break
		}
		_, name, _ := strings.Cut(strings.TrimPrefix(target, "#/"), "/")
		definitions, next := map[string]json.RawMessage{}, map[string]json.RawMessage{}
		_ = json.Unmarshal(top[strings.TrimSuffix(strings.TrimPrefix(target, "#/"), "/"+name)], &definitions)
		_ = json.Unmarshal(definitions[name], &next)
		at = next
	}

	_, hasProperties := at["properties"]
	kind := string(bytes.TrimSpace(at["type"]))
	return kind == `"object"` || kind == "" && hasProperties
}

// maxRefs bounds the chain of references that lead to a definition.
const maxRefs = 8

// wrapSchema returns the schema of an object whose member "value" has the given schema.
func wrapSchema(inner map[string]json.RawMessage) map[string]any {
	outer := map[string]any{
		"type": "object", "required": []string{"value"}, "additionalProperties": false,
	}
	for _, name := range definitionKeys {
		if part, ok := inner[name]; ok {
			outer[name] = part
			delete(inner, name)
		}
	}
	outer["properties"] = map[string]any{"value": inner}
	return outer
}

// isPortable reports whether all references in a schema point into its definitions, so they stay
// valid when the rest of the schema moves one level down.
func isPortable(node any) bool {
	isBound := func(inner any) bool { return !isPortable(inner) }
	switch n := node.(type) {
	case []any:
		return !slices.ContainsFunc(n, isBound)
	case map[string]any:
		for name, inner := range n {
			if target, ok := inner.(string); ok && name == "$ref" && !isDefinition(target) {
				return false
			}
			if isBound(inner) {
				return false
			}
		}
	}
	return true
}

// isDefinition reports whether a reference points into the definitions of a schema.
func isDefinition(target string) bool {
	return strings.HasPrefix(target, "#/$defs/") || strings.HasPrefix(target, "#/definitions/")
}

// unwrapValue returns, as JSON, the value in a reply to a wrapped schema. A reply without the
// wrapping is returned unchanged, because the server did not enforce the schema.
func unwrapValue(text string) string {
	var outer map[string]json.RawMessage
	err := json.Unmarshal([]byte(text), &outer)
	if err != nil || len(outer) != 1 || outer["value"] == nil {
		return text
	}
	return string(outer["value"])
}

// appendInstruction returns the messages with an instruction to follow the schema, for servers that
// cannot enforce one. The instruction is at the end of the last user message, where models follow
// it best.
func appendInstruction(messages []llm.Message, text json.RawMessage) []llm.Message {
	instruction := fmt.Sprintf(
		"Reply with one JSON value and nothing else: no explanation, no code fence. "+
			"The value must meet this JSON Schema:\n%s", text)

	messages = slices.Clone(messages)
	for i, m := range slices.Backward(messages) {
		if m.Role == llm.RoleUser {
			messages[i].Content = m.Content + "\n\n" + instruction
			return messages
		}
	}
	return append(messages, llm.Message{Role: llm.RoleUser, Content: instruction})
}

// removeFence returns a reply without the code fence around it, which some models add to JSON
// despite instructions.
func removeFence(text string) string {
	inner, opened := strings.CutPrefix(strings.TrimSpace(text), "```")
	inner, closed := strings.CutSuffix(inner, "```")
	if !opened || !closed {
		return text
	}

	label, body, found := strings.Cut(inner, "\n")
	isLabel := !strings.ContainsAny(strings.TrimSpace(label), " {[\"")
	if !found || !isLabel || strings.Contains(body, "```") {
		return text
	}
	return strings.TrimSpace(body)
}

// dropNulls returns a reply to the strict form of a schema without the nulls that replace missing
// members. A reply that does not meet the schema is returned unchanged.
func dropNulls(text string, original json.RawMessage) string {
	if !strings.Contains(text, "null") {
		return text
	}
	contract, err := schema.Compile(original)
	if err != nil {
		return text
	}
	checked, violations, err := contract.Check(json.RawMessage(text))
	if err != nil || len(violations) > 0 || len(checked) == 0 {
		return text
	}
	return string(checked)
}
