package schema

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Field is an input or output of a signature, or a property of a contract of objects.
type Field struct {
	Name string
	// Contract is the contract that the field's value must meet.
	Contract *Contract
	// Description is the schema's description of the field. It is often empty.
	Description string
	// Required reports that the field must not be left out.
	Required bool
}

// maxFields bounds the inputs, and the outputs, of a signature.
const maxFields = 50

// FromSignature reads a signature of named fields with an arrow between inputs and outputs:
// "question, passage -> answer: str, score: float". A field without a type is a str; the types are
// those of type text: see [Parse].
//
// The output is always an object with exactly these members, even if there is only one.
// [Contract.Fields] lists them in order.
func FromSignature(text string) (inputs []Field, output *Contract, err error) {
	if len(text) > maxTypeText || !utf8.ValidString(text) {
		return nil, nil, fmt.Errorf(
			"cannot read a signature of %d bytes: it must be UTF-8 of at most %d",
			len(text), maxTypeText)
	}
	in, out, found := strings.Cut(text, "->")
	if !found {
		return nil, nil, fmt.Errorf(
			"cannot read the signature %q: it has no \"->\" between inputs and outputs",
			clip(text, 100))
	}

	if inputs, err = compileInputs(in); err == nil {
		output, err = compileOutput(out)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("cannot read the signature %q: %w", clip(text, 100), err)
	}
	return inputs, output, nil
}

// compileInputs returns the inputs of a signature.
func compileInputs(text string) ([]Field, error) {
	fields, err := parseFields(text)
	if err != nil {
		return nil, err
	}

	var inputs []Field
	for _, f := range fields {
		contract, err := Compile(f.schema.appendJSON(nil))
		if err != nil {
			return nil, err
		}
		inputs = append(inputs, Field{Name: f.name, Contract: contract, Required: true})
	}
	return inputs, nil
}

// compileOutput returns the contract of a signature's outputs.
func compileOutput(text string) (*Contract, error) {
	fields, err := parseFields(text)
	if err != nil {
		return nil, err
	}
	if len(fields) == 0 {
		return nil, errors.New("the signature names no output")
	}
	return Compile(objectOf(fields).appendJSON(nil))
}

// signatureField is a field before it is compiled.
type signatureField struct {
	name   string
	schema *node
}

// parseFields parses "name: type, name".
func parseFields(text string) ([]signatureField, error) {
	p := newTypeParser(text)
	var fields []signatureField
	for p.token != "" {
		field, err := parseField(p)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(fields,
			func(f signatureField) bool { return f.name == field.name }) {
			return nil, fmt.Errorf("the field %q appears twice", clip(field.name, 60))
		}

		if fields = append(fields, field); len(fields) > maxFields {
			return nil, fmt.Errorf("it has more than %d fields", maxFields)
		}
		if p.token != "" && !p.take(",") {
			return nil, p.reject("expected a comma")
		}
	}
	if p.bad != "" {
		return nil, p.reject("")
	}
	return fields, nil
}

// parseField parses "name: type" or "name".
func parseField(p *typeParser) (field signatureField, err error) {
	name := p.token
	if !isIdentifier(name) || strings.ContainsAny(name, ".-") {
		return field, p.reject("expected the name of a field")
	}
	p.next()

	field = signatureField{name, typed("string")}
	if p.take(":") {
		field.schema, err = p.parseUnion(0)
	}
	return field, err
}

// Fields returns the properties of a contract of objects in the order of the document, or none
// for any other contract. The contract of a field checks only its value.
func (c *Contract) Fields() []Field {
	s := c.root.followToObject()
	properties := s.node.member("properties")
	if properties == nil {
		return nil
	}

	var fields []Field
	for _, name := range properties.keys {
		sub := s.properties[name]
		fields = append(fields, Field{
			Name: name, Contract: c.extract(sub), Required: slices.Contains(s.required, name),
			Description: cmp.Or(sub.description(), sub.followToObject().description()),
		})
	}
	return fields
}

// followToObject follows references to the schema that holds the properties.
func (s *subschema) followToObject() *subschema {
	for len(s.properties) == 0 && len(s.refs) > 0 {
		s = s.refs[0]
	}
	return s
}

// extract returns the contract of one schema in the document. It shares the compiled parts; its
// document includes the definitions.
func (c *Contract) extract(s *subschema) *Contract {
	document := s.node
	if document.kind == objectKind {
		made := objectBuilder{slices.Clone(document.keys), slices.Clone(document.kids)}
		for _, name := range []string{"$schema", "$defs", "definitions"} {
			if value := c.document.member(name); value != nil && document.member(name) == nil {
				made.put(name, value)
			}
		}
		document = made.build()
	}
	return &Contract{root: s, document: document}
}

// Parameters formats the fields of an object as the parameters of a Python function: "name: str,
// currency: str = None".
func (c *Contract) Parameters() string {
	var parts []string
	for _, field := range c.Fields() {
		part := field.Name
		if kind := field.Contract.Describe(); fitsAnnotation(kind) {
			part += ": " + kind
		}
		if !field.Required {
			part += " = None"
		}
		parts = append(parts, part)
	}
	return strings.Join(parts, ", ")
}

// fitsAnnotation reports whether a description can annotate a parameter, that is, whether it is
// short and contains no character that would end the parameter.
func fitsAnnotation(description string) bool {
	return len(description) <= 60 && !strings.ContainsAny(description, "\n,()[]{}\"'")
}
