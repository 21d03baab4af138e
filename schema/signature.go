package schema

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Field is one named input or output of a signature, or one property of a
// contract of objects.
type Field struct {
	Name string
	// Contract is what the field's value must meet.
	Contract *Contract
	// Description is what the schema says of it, often empty.
	Description string
	// Required says that the field may not be left out.
	Required bool
}

// maxFields bounds a signature.
const maxFields = 50

// FromSignature reads a signature of named fields, inputs and outputs parted by
// an arrow: "question, passage -> answer: str, score: float". A field without a
// type is a str; the types are those of [FromType].
//
// The output is always an object with just these members, even for one of
// them; [Contract.Fields] lists them in their order.
func FromSignature(text string) (inputs []Field, output *Contract, err error) {
	if len(text) > maxTypeText || !utf8.ValidString(text) {
		return nil, nil, fmt.Errorf("cannot read a signature of %d bytes: it must be UTF-8 of at most %d", len(text), maxTypeText)
	}
	in, out, found := strings.Cut(text, "->")
	if !found {
		return nil, nil, fmt.Errorf("cannot read the signature %q: it has no \"->\" between inputs and outputs", clip(text, 100))
	}
	fail := func(err error) ([]Field, *Contract, error) {
		return nil, nil, fmt.Errorf("cannot read the signature %q: %w", clip(text, 100), err)
	}
	parts, err := signatureFields(in)
	if err != nil {
		return fail(err)
	}
	results, err := signatureFields(out)
	if err != nil {
		return fail(err)
	}
	if len(results) == 0 {
		return fail(errors.New("it names no output"))
	}
	for _, p := range parts {
		contract, err := Compile(p.schema.appendJSON(nil))
		if err != nil {
			return fail(err)
		}
		inputs = append(inputs, Field{Name: p.name, Contract: contract, Required: true})
	}
	output, err = Compile(objectOf(results).appendJSON(nil))
	if err != nil {
		return fail(err)
	}
	return inputs, output, nil
}

// signatureField is a field before it is compiled.
type signatureField struct {
	name   string
	schema *node
}

// signatureFields reads "name: type, name".
func signatureFields(text string) ([]signatureField, error) {
	p := typeParser{text: text}
	p.next()
	var fields []signatureField
	for p.token != "" {
		name := p.token
		if !isIdentifier(name) || strings.ContainsAny(name, ".-") {
			return nil, p.refuse("expected the name of a field")
		}
		p.next()
		made := typed("string")
		if p.take(":") {
			var err error
			if made, err = p.union(0); err != nil {
				return nil, err
			}
		}
		if slices.ContainsFunc(fields, func(f signatureField) bool { return f.name == name }) {
			return nil, fmt.Errorf("the field %q is there twice", clip(name, 60))
		}
		if fields = append(fields, signatureField{name, made}); len(fields) > maxFields {
			return nil, fmt.Errorf("it has more than %d fields", maxFields)
		}
		if p.token != "" && !p.take(",") {
			return nil, p.refuse("expected a comma")
		}
	}
	if p.bad != "" {
		return nil, p.refuse("")
	}
	return fields, nil
}

// objectOf returns the schema of a closed object that has all of the fields.
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

// Fields returns the properties of a contract of objects in the order of the
// document, and none for any other contract. Their own contracts check a
// property alone.
func (c *Contract) Fields() []Field {
	s := c.object(c.root)
	properties := c.facts[s].node.member("properties")
	if properties == nil {
		return nil
	}
	var fields []Field
	for _, name := range properties.keys {
		sub := s.Properties[name]
		fields = append(fields, Field{
			Name: name, Contract: c.alone(sub), Required: slices.Contains(s.Required, name),
			Description: cmp.Or(sub.Description, c.object(sub).Description),
		})
	}
	return fields
}

// object follows references to where a schema's properties are.
func (c *Contract) object(s *jsonschema.Schema) *jsonschema.Schema {
	for len(s.Properties) == 0 && s.Ref != nil {
		s = s.Ref
	}
	return s
}

// alone returns the contract of one schema in the document. It shares what has
// been compiled; its own document takes the definitions along.
func (c *Contract) alone(s *jsonschema.Schema) *Contract {
	document := c.facts[s].node
	if document.kind == objectKind {
		keys, kids := slices.Clone(document.keys), slices.Clone(document.kids)
		for _, name := range []string{"$schema", "$defs", "definitions"} {
			if value := c.document.member(name); value != nil && document.member(name) == nil {
				keys, kids = append(keys, name), append(kids, value)
			}
		}
		document = newObject(keys, kids)
	}
	return &Contract{root: s, document: document, facts: c.facts, programs: c.programs}
}
