package schema

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// plainTypes maps the types without arguments to JSON Schema.
var plainTypes = map[string]string{
	"bool": `{"type":"boolean"}`, "boolean": `{"type":"boolean"}`,
	"int": `{"type":"integer"}`, "integer": `{"type":"integer"}`,
	"float": `{"type":"number"}`, "number": `{"type":"number"}`, "Decimal": `{"type":"number"}`,
	"str": `{"type":"string"}`, "string": `{"type":"string"}`, "text": `{"type":"string"}`,
	"None": `{"type":"null"}`, "null": `{"type":"null"}`, "NoneType": `{"type":"null"}`,
	"Any": `{}`, "any": `{}`,
	"list": `{"type":"array"}`, "List": `{"type":"array"}`, "array": `{"type":"array"}`,
	"tuple": `{"type":"array"}`, "Tuple": `{"type":"array"}`, "Sequence": `{"type":"array"}`,
	"set": `{"type":"array","uniqueItems":true}`, "Set": `{"type":"array","uniqueItems":true}`,
	"frozenset": `{"type":"array","uniqueItems":true}`,
	"dict":      `{"type":"object"}`, "Dict": `{"type":"object"}`,
	"object": `{"type":"object"}`, "Mapping": `{"type":"object"}`,
	"date":     `{"type":"string","format":"date"}`,
	"datetime": `{"type":"string","format":"date-time"}`,
	"time":     `{"type":"string","format":"time"}`,
	"UUID":     `{"type":"string","format":"uuid"}`,
}

// plainType returns the schema of a type without arguments.
func plainType(name string) (*node, error) {
	made, ok := plainTypes[name]
	if !ok {
		return nil, fmt.Errorf("unknown type %q: "+
			"use bool, int, float, str, list[…], dict[str, …], Optional[…], Literal[…], …",
			clip(name, 60))
	}
	return decode([]byte(made), schemaBounds)
}

// genericType returns the schema of a type with arguments. A nil argument stands for "...".
func genericType(name string, args []*node) (*node, error) {
	lower := strings.ToLower(name)
	if slices.Contains(args, nil) {
		isTuple := lower == "tuple" && len(args) == 2 && args[0] != nil
		if !isTuple {
			return nil, errors.New(`"..." is allowed only in tuple[T, ...]`)
		}
		return arrayOf(args[0]), nil
	}

	switch lower {
	case "tuple":
		return tupleOf(args), nil
	case "union":
		return anyOf(args), nil
	case "list", "array", "sequence", "iterable":
		if len(args) == 1 {
			return arrayOf(args[0]), nil
		}
	case "set", "frozenset":
		if len(args) == 1 {
			return setOf(args[0]), nil
		}
	case "optional":
		if len(args) == 1 {
			return anyOf([]*node{args[0], typed("null")}), nil
		}
	case "dict", "mapping":
		if len(args) == 2 {
			return dictOf(args[0], args[1])
		}
	}
	return nil, fmt.Errorf("%s cannot have %d types in brackets", clip(name, 60), len(args))
}

// typed returns the schema of a type of JSON Schema.
func typed(name string) *node { return newObject([]string{"type"}, []*node{newText(name)}) }

// arrayOf returns the schema of a list.
func arrayOf(item *node) *node {
	return newObject([]string{"type", "items"}, []*node{newText("array"), item})
}

// setOf returns the schema of a list without repetitions.
func setOf(item *node) *node {
	return newObject([]string{"type", "items", "uniqueItems"},
		[]*node{newText("array"), item, isTrue})
}

// tupleOf returns the schema of a list with a fixed number of items.
func tupleOf(items []*node) *node {
	count := newNumber(strconv.Itoa(len(items)))
	return newObject([]string{"type", "prefixItems", "items", "minItems", "maxItems"},
		[]*node{newText("array"), newArray(items), isFalse, count, count})
}

// dictOf returns the schema of a dict. Keys in JSON are always strings.
func dictOf(key, value *node) (*node, error) {
	var made objectBuilder
	made.put("type", newText("object"))
	made.put("additionalProperties", value)

	kind := key.member("type")
	isText := kind != nil && kind.text == "string"
	isAny := len(key.keys) == 0
	switch {
	case key.member("enum") != nil, isText && len(key.keys) > 1:
		made.put("propertyNames", key)
	case kind != nil && kind.text == "integer":
		digits := newObject([]string{"pattern"}, []*node{newText("^-?[0-9]+$")})
		made.put("propertyNames", digits)
	case !isText && !isAny:
		return nil, errors.New("the keys of a dict must be str, int or a Literal")
	}
	return made.build(), nil
}

// anyOf returns the schema of a union. It flattens nested unions.
func anyOf(all []*node) *node {
	var flat []*node
	for _, one := range all {
		if inner := one.member("anyOf"); inner != nil {
			flat = append(flat, inner.kids...)
		} else {
			flat = append(flat, one)
		}
	}

	if len(flat) == 1 {
		return flat[0]
	}
	return newObject([]string{"anyOf"}, []*node{newArray(flat)})
}

// objectOf returns the schema of a closed object with exactly these fields.
func objectOf(fields []signatureField) *node {
	var names []string
	var schemas, required []*node
	for _, f := range fields {
		names, schemas = append(names, f.name), append(schemas, f.schema)
		required = append(required, newText(f.name))
	}

	return newObject([]string{"type", "properties", "required", "additionalProperties"},
		[]*node{newText("object"), newObject(names, schemas), newArray(required), isFalse})
}
