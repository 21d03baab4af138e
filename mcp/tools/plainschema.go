package tools

import (
	"maps"
	"slices"
)

// refining contains the keywords that only narrow a schema, and that Gemini and old clients do not
// support.
var refining = []string{
	"contains", "dependentRequired", "dependentSchemas", "else", "if", "maxContains", "minContains",
	"not", "patternProperties", "prefixItems", "propertyNames", "then", "unevaluatedItems",
	"unevaluatedProperties",
}

// plainSchema simplifies a schema for Gemini and old clients, as far as that is easy. These clients
// do not support lists of types, boolean schemas, or keywords that only narrow. Of several types,
// plainSchema keeps the first one that is not null. The server still checks the original schema.
func plainSchema(schema any) any {
	object, ok := schema.(map[string]any)
	if !ok {
		return schema
	}

	plain := maps.Clone(object)
	for _, name := range refining {
		delete(plain, name)
	}
	if types, ok := plain["type"].([]any); ok {
		others := slices.DeleteFunc(slices.Clone(types), func(name any) bool { return name == "null" })
		if len(others) > 0 {
			plain["type"] = others[0]
		}
	}
	for _, name := range []string{"anyOf", "oneOf"} {
		dropNull(plain, name)
	}
	if _, isBool := plain["additionalProperties"].(bool); isBool {
		delete(plain, "additionalProperties")
	}

	for _, name := range []string{"properties", "$defs", "definitions"} {
		if members, ok := plain[name].(map[string]any); ok {
			members = maps.Clone(members)
			maps.DeleteFunc(members, func(_ string, schema any) bool { return schema == false })
			for member, schema := range members {
				members[member] = plainPart(schema)
			}
			plain[name] = members
		}
	}
	for _, name := range []string{"anyOf", "oneOf", "allOf"} {
		if parts, ok := plain[name].([]any); ok {
			parts = slices.Clone(parts)
			for i := range parts {
				parts[i] = plainPart(parts[i])
			}
			plain[name] = parts
		}
	}
	for _, name := range []string{"items", "additionalProperties"} {
		if part, ok := plain[name]; ok {
			plain[name] = plainPart(part)
		}
	}
	return plain
}

// plainPart is like plainSchema, for a part of a schema, which may be a boolean.
func plainPart(schema any) any {
	if _, isBool := schema.(bool); isBool {
		return map[string]any{}
	}
	return plainSchema(schema)
}

// dropNull removes null from alternatives. If only one alternative remains, it is merged into the
// schema, unless both have the same keyword.
func dropNull(schema map[string]any, name string) {
	alternatives, ok := schema[name].([]any)
	if !ok {
		return
	}
	others := slices.DeleteFunc(slices.Clone(alternatives), func(one any) bool {
		object, ok := one.(map[string]any)
		return ok && object["type"] == "null"
	})
	if len(others) == 0 {
		return
	}

	schema[name] = others
	only, isObject := others[0].(map[string]any)
	if len(others) > 1 || !isObject {
		return
	}
	for keyword := range only {
		if _, has := schema[keyword]; has {
			return
		}
	}
	delete(schema, name)
	maps.Copy(schema, only)
}
