package tools

import "strings"

// schemas converts the schemas of an operation to JSON Schema, including the definitions to which
// they refer.
type schemas struct {
	api  *api
	defs map[string]any
	left int // number of nodes that may still be converted
}

const definitions = "#/components/schemas/"

// These members of a schema contain a single schema, a list of schemas, or an object of schemas.
var (
	schemaMembers = wordSet("items additionalProperties not if then else contains propertyNames " +
		"unevaluatedItems unevaluatedProperties")
	schemaLists   = wordSet("allOf anyOf oneOf prefixItems")
	schemaObjects = wordSet("properties patternProperties dependentSchemas")
	notInSchemas  = wordSet("discriminator xml externalDocs example examples deprecated readOnly " +
		"writeOnly nullable $schema $id $anchor $dynamicRef $dynamicAnchor $defs definitions format")
)

// convert converts a schema. Unsupported parts are replaced by schemas that allow any value.
func (s *schemas) convert(value any) any {
	object, isObject := value.(map[string]any)
	s.left--
	if !isObject || s.left < 0 {
		return value == nil || value != false // a boolean schema is kept
	}
	if pointer, ok := object["$ref"].(string); ok {
		return s.refer(pointer)
	}

	out := map[string]any{}
	for name, member := range object {
		switch {
		case notInSchemas[name] || strings.HasPrefix(name, "x-"):
		case schemaMembers[name]:
			out[name] = s.convert(member)
		case schemaLists[name]:
			list, _ := member.([]any)
			converted := make([]any, 0, len(list))
			for _, item := range list {
				converted = append(converted, s.convert(item))
			}
			out[name] = converted
		case schemaObjects[name]:
			members, _ := member.(map[string]any)
			converted := map[string]any{}
			for key, item := range members {
				converted[key] = s.convert(item)
			}
			out[name] = converted
		default:
			out[name] = member
		}
	}
	if s.api.isOld {
		renew(object, out)
	}
	return out
}

// renew converts the keywords that version 3.0 defines differently.
func renew(old, out map[string]any) {
	for name, bound := range map[string]string{"exclusiveMinimum": "minimum", "exclusiveMaximum": "maximum"} {
		if isExclusive, isOld := old[name].(bool); isOld {
			delete(out, name)
			if isExclusive && out[bound] != nil {
				out[name] = out[bound]
				delete(out, bound)
			}
		}
	}

	kind, isText := out["type"].(string)
	if old["nullable"] != true || !isText {
		return
	}
	out["type"] = []any{kind, "null"}
	if values, ok := out["enum"].([]any); ok {
		out["enum"] = append(values[:len(values):len(values)], nil)
	}
}

// refer returns a reference to a definition, which it converts once.
func (s *schemas) refer(pointer string) any {
	escaped, ok := strings.CutPrefix(pointer, definitions)
	if !ok || strings.Contains(escaped, "/") {
		return true
	}
	name := unescape(escaped)
	if _, known := s.defs[name]; !known {
		components, _ := s.api.document["components"].(map[string]any)
		all, _ := components["schemas"].(map[string]any)
		if all[name] == nil {
			return true
		}
		s.defs[name] = true // before conversion, because it may refer to itself
		s.defs[name] = s.convert(all[name])
	}
	return map[string]any{"$ref": "#/$defs/" + escaped}
}
