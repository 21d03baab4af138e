package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Strict returns the contract as servers with structured output want it:
// objects are closed and all their members required, what may be missing may be
// null instead, and keywords that such servers do not know are left out. A
// value that is no object is wrapped in one, under the name [Wrapped].
//
// The schema may allow more than the contract does; the reply has to be checked
// by [Contract.CheckReply], which also undoes the wrapping and the nulls. The
// error says what cannot be written this way, such as objects with any names.
func (c *Contract) Strict() (json.RawMessage, error) {
	body := c.document
	if ref := body.member("$ref"); ref != nil && c.root.Ref != nil {
		body = c.facts[c.object(c.root)].node
	}
	made, err := strict(body)
	if err != nil {
		return nil, fmt.Errorf("cannot write the contract in the strict form: %w", err)
	}
	if kind := made.member("type"); kind == nil || kind.text != "object" {
		made = objectOf([]signatureField{{Wrapped, made}})
		if refersTo(body, "#") {
			return nil, errors.New("cannot write the contract in the strict form: it refers to its own root")
		}
	}
	keys, kids := slices.Clone(made.keys), slices.Clone(made.kids)
	for _, folder := range []string{"$defs", "definitions"} {
		definitions := c.document.member(folder)
		if definitions == nil {
			continue
		}
		strictly, err := strictEach(definitions)
		if err != nil {
			return nil, fmt.Errorf("cannot write the contract in the strict form: %w", err)
		}
		keys, kids = append(keys, folder), append(kids, strictly)
	}
	return newObject(keys, kids).appendJSON(nil), nil
}

// refersTo reports whether a schema has a reference to one address.
func refersTo(n *node, address string) bool {
	if ref := n.member("$ref"); ref != nil && ref.text == address {
		return true
	}
	return slices.ContainsFunc(n.kids, func(kid *node) bool { return refersTo(kid, address) })
}

var (
	// kept are the keywords that stay as they are.
	kept = []string{
		"type", "enum", "const", "description", "pattern", "minimum", "maximum", "exclusiveMinimum",
		"exclusiveMaximum", "multipleOf", "minItems", "maxItems",
	}
	// impossible are those without which the schema would mean something else.
	impossible    = []string{"allOf", "patternProperties", "prefixItems", "$dynamicRef", "additionalItems", "unevaluatedProperties"}
	strictFormats = []string{"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
)

// strict rewrites one schema.
func strict(n *node) (*node, error) {
	if n.kind != objectKind || len(n.keys) == 0 {
		return nil, errors.New("a part of it may be anything")
	}
	var keys []string
	var kids []*node
	put := func(key string, kid *node) { keys, kids = append(keys, key), append(kids, kid) }
	said := false
	for i, key := range n.keys {
		kid := n.kids[i]
		var made *node
		var err error
		switch {
		case slices.Contains(kept, key):
			made = kid
		case key == "format" && slices.Contains(strictFormats, kid.text):
			made = kid
		case key == "$ref":
			if !strings.HasPrefix(kid.text, "#/$defs/") && !strings.HasPrefix(kid.text, "#/definitions/") && kid.text != "#" {
				return nil, fmt.Errorf("it refers to %s, which is no definition", clip(kid.text, 100))
			}
			made = kid
		case key == "items":
			made, err = strict(kid)
		case key == "anyOf" || key == "oneOf":
			key = "anyOf"
			made, err = strictAll(kid)
		case slices.Contains(impossible, key):
			err = fmt.Errorf("there is no %q in it", key)
		}
		if err != nil {
			return nil, err
		}
		if made != nil {
			put(key, made)
			said = said || slices.Contains([]string{"type", "enum", "const", "$ref", "anyOf"}, key)
		}
	}
	if kind := n.member("type"); kind != nil && kind.kind == arrayKind && slices.ContainsFunc(kind.kids, func(k *node) bool { return k.text == "object" }) {
		return nil, errors.New("an object may be of another type as well: use anyOf")
	}
	if isObject(n) {
		if n.member("type") == nil {
			put("type", newText("object"))
		}
		return strictObject(n, keys, kids)
	}
	if kind := n.member("type"); kind != nil && kind.text == "array" && n.member("items") == nil {
		return nil, errors.New("the items of a list may be anything")
	}
	if !said {
		return nil, errors.New("a part of it may be anything")
	}
	return newObject(keys, kids), nil
}

func isObject(n *node) bool {
	kind := n.member("type")
	return kind != nil && kind.text == "object" || kind == nil && n.member("properties") != nil
}

// strictObject closes an object and requires all of its members.
func strictObject(n *node, keys []string, kids []*node) (*node, error) {
	properties := n.member("properties")
	if properties == nil || len(properties.keys) == 0 {
		return nil, errors.New("an object may have members of any name")
	}
	if rest := n.member("additionalProperties"); rest != nil && rest.text != "false" {
		return nil, errors.New("an object may have members of any name")
	}
	required := n.member("required")
	var schemas, names []*node
	for i, name := range properties.keys {
		made, err := strict(properties.kids[i])
		if err != nil {
			return nil, err
		}
		if required == nil || !slices.ContainsFunc(required.kids, func(r *node) bool { return r.text == name }) {
			made = anyOf([]*node{made, typed("null")})
		}
		schemas, names = append(schemas, made), append(names, newText(name))
	}
	keys = append(keys, "properties", "required", "additionalProperties")
	return newObject(keys, append(kids, newObject(properties.keys, schemas), newArray(names), isFalse)), nil
}

func strictAll(list *node) (*node, error) {
	var made []*node
	for _, kid := range list.kids {
		one, err := strict(kid)
		if err != nil {
			return nil, err
		}
		made = append(made, one)
	}
	return newArray(made), nil
}

func strictEach(definitions *node) (*node, error) {
	made, err := strictAll(newArray(definitions.kids))
	if err != nil {
		return nil, err
	}
	return newObject(definitions.keys, made.kids), nil
}
