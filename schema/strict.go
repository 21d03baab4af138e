package schema

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Strict returns the contract in the form that servers with structured output require. Objects
// are closed and require all of their members; an optional member may be null instead. Keywords
// unknown to such servers are left out. A value that is not an object is wrapped in one, as its
// member "value".
//
// The schema may allow more than the contract. Check the reply with [Contract.CheckReply], which
// also undoes the wrapping and the nulls. The error names the part that cannot be expressed in this
// form, such as an object with arbitrary member names.
func (c *Contract) Strict() (json.RawMessage, error) {
	strict, err := c.makeStrict()
	if err != nil {
		return nil, fmt.Errorf("cannot write the contract in the strict form: %w", err)
	}
	return strict.appendJSON(nil), nil
}

// makeStrict returns the strict form of the document.
func (c *Contract) makeStrict() (*node, error) {
	body := c.document
	if ref := body.member("$ref"); ref != nil && len(c.root.refs) > 0 {
		body = c.root.followToObject().node
	}
	top, err := makeStrict(body)
	if err != nil {
		return nil, err
	}

	if kind := top.member("type"); kind == nil || kind.text != "object" {
		if refersTo(body, "#") {
			return nil, errors.New("it refers to its own root")
		}
		top = objectOf([]signatureField{{wrapper, top}})
	}

	made := objectBuilder{slices.Clone(top.keys), slices.Clone(top.kids)}
	for _, folder := range []string{"$defs", "definitions"} {
		definitions := c.document.member(folder)
		if definitions == nil {
			continue
		}
		kids, err := makeAllStrict(definitions.kids)
		if err != nil {
			return nil, err
		}
		made.put(folder, newObject(definitions.keys, kids))
	}
	return made.build(), nil
}

// refersTo reports whether a schema contains a reference to an address.
func refersTo(n *node, address string) bool {
	if ref := n.member("$ref"); ref != nil && ref.text == address {
		return true
	}
	return slices.ContainsFunc(n.kids, func(kid *node) bool { return refersTo(kid, address) })
}

// objectBuilder collects the members of an object.
type objectBuilder struct {
	keys []string
	kids []*node
}

// put adds a member.
func (b *objectBuilder) put(key string, kid *node) {
	b.keys, b.kids = append(b.keys, key), append(b.kids, kid)
}

// build returns the object.
func (b *objectBuilder) build() *node { return newObject(b.keys, b.kids) }

var (
	// keptKeywords lists the keywords that are kept unchanged.
	keptKeywords = []string{
		"type", "enum", "const", "description", "pattern", "minimum", "maximum",
		"exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minItems", "maxItems",
	}
	// impossibleKeywords lists keywords that strict servers do not support and that cannot be left
	// out without changing the schema's meaning.
	impossibleKeywords = []string{
		"allOf", "patternProperties", "prefixItems", "$dynamicRef", "additionalItems",
		"unevaluatedProperties",
	}
	// choosingKeywords lists the keywords that determine the kind of a value. A schema without any
	// of these allows every value.
	choosingKeywords = []string{"type", "enum", "const", "$ref", "anyOf"}

	strictFormats = []string{
		"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid",
	}
)

var errAnything = errors.New("a part of the schema allows any value")

// makeStrict rewrites one schema.
func makeStrict(n *node) (*node, error) {
	if n.kind != objectKind || len(n.keys) == 0 {
		return nil, errAnything
	}

	var made objectBuilder
	for i, keyword := range n.keys {
		name, value, err := rewriteKeyword(keyword, n.kids[i])
		if err != nil {
			return nil, err
		}
		if value != nil {
			made.put(name, value)
		}
	}

	switch {
	case isObjectOrOther(n):
		return nil, errors.New("an object schema also allows other types: use anyOf")
	case isObject(n):
		return closeObject(n, made)
	case isArray(n) && n.member("items") == nil:
		return nil, errors.New("a list has no schema for its items: set items")
	case !slices.ContainsFunc(made.keys, isChoosing):
		return nil, errAnything
	}
	return made.build(), nil
}

// makeAllStrict rewrites several schemas.
func makeAllStrict(schemas []*node) ([]*node, error) {
	var all []*node
	for _, n := range schemas {
		made, err := makeStrict(n)
		if err != nil {
			return nil, err
		}
		all = append(all, made)
	}
	return all, nil
}

// rewriteKeyword returns the strict form of one keyword; the value is nil if the keyword
// is left out.
func rewriteKeyword(keyword string, value *node) (name string, made *node, err error) {
	switch {
	case slices.Contains(keptKeywords, keyword):
		return keyword, value, nil
	case keyword == "format" && slices.Contains(strictFormats, value.text):
		return keyword, value, nil
	case keyword == "$ref":
		return keyword, value, checkStrictRef(value.text)
	case keyword == "items":
		made, err = makeStrict(value)
		return keyword, made, err
	case keyword == "anyOf" || keyword == "oneOf":
		kids, err := makeAllStrict(value.kids)
		return "anyOf", newArray(kids), err
	case slices.Contains(impossibleKeywords, keyword):
		return "", nil, fmt.Errorf("%q is not allowed there", keyword)
	}
	return "", nil, nil
}

// checkStrictRef rejects references to anything but a definition or the root.
func checkStrictRef(target string) error {
	isDefinition := strings.HasPrefix(target, "#/$defs/") ||
		strings.HasPrefix(target, "#/definitions/")
	if !isDefinition && target != "#" {
		return fmt.Errorf("it refers to %s, which is not a definition", clip(target, 100))
	}
	return nil
}

// isChoosing reports whether a keyword determines the kind of a value.
func isChoosing(keyword string) bool { return slices.Contains(choosingKeywords, keyword) }

// isObject reports whether a schema requires an object.
func isObject(n *node) bool {
	kind := n.member("type")
	if kind == nil {
		return n.member("properties") != nil
	}
	return kind.text == "object"
}

// isArray reports whether a schema requires an array.
func isArray(n *node) bool {
	kind := n.member("type")
	return kind != nil && kind.text == "array"
}

// isObjectOrOther reports whether a schema allows one of several types, including objects.
func isObjectOrOther(n *node) bool {
	kind := n.member("type")
	return kind != nil && kind.kind == arrayKind &&
		slices.ContainsFunc(kind.kids, func(k *node) bool { return k.text == "object" })
}

// closeObject closes the schema of an object and requires all of its members. The builder holds
// the other keywords.
func closeObject(n *node, made objectBuilder) (*node, error) {
	properties, rest := n.member("properties"), n.member("additionalProperties")
	isOpen := rest != nil && rest.text != "false"
	if properties == nil || len(properties.keys) == 0 || isOpen {
		return nil, errors.New("an object allows members of any name: " +
			"list its properties and set additionalProperties to false")
	}

	var schemas, names []*node
	for i, name := range properties.keys {
		sub, err := makeStrict(properties.kids[i])
		if err != nil {
			return nil, err
		}
		if !isRequired(n, name) {
			sub = anyOf([]*node{sub, typed("null")})
		}
		schemas, names = append(schemas, sub), append(names, newText(name))
	}

	if n.member("type") == nil {
		made.put("type", newText("object"))
	}
	made.put("properties", newObject(properties.keys, schemas))
	made.put("required", newArray(names))
	made.put("additionalProperties", isFalse)
	return made.build(), nil
}

// isRequired reports whether a schema requires the member with a name.
func isRequired(n *node, name string) bool {
	required := n.member("required")
	return required != nil &&
		slices.ContainsFunc(required.kids, func(r *node) bool { return r.text == name })
}
