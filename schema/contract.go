package schema

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
)

// Contract is a compiled schema that a value must meet. It is immutable and safe for concurrent
// use.
type Contract struct {
	root     *subschema
	document *node // the schema as given, with its members in order
}

// Parse returns a contract for a JSON Schema, or for a JSON string that contains a JSON Schema or
// type text in the form of Python annotations. Callers and snippets pass contracts in these forms.
// The types are:
//
//	bool  int  float  str  None  Any  date  datetime  time  UUID
//	list[T]  set[T]  tuple[T, U]  tuple[T, ...]  dict[str, T]
//	Optional[T]  Union[T, U]  T | U  Literal['a', 'b', 3]
//
// Type text also accepts the names of JSON Schema (boolean, integer, number, string, array, object,
// null), capitalised names (List, Dict), the prefix "typing." and T[]. It does not accept the names
// of classes; pass them as JSON Schema. Parse keeps recently parsed contracts.
func Parse(raw json.RawMessage) (*Contract, error) {
	return recent.parse(raw)
}

// parse is Parse without the cache.
func parse(raw json.RawMessage) (*Contract, error) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || raw[0] != '"' {
		return Compile(raw)
	}

	text, err := decode(raw, schemaBounds)
	if err != nil {
		return nil, fmt.Errorf("cannot read the schema: %w", err)
	}
	if inner := strings.TrimSpace(text.text); strings.HasPrefix(inner, "{") {
		return Compile(json.RawMessage(inner))
	}
	return fromType(text.text)
}

// Compile returns a contract for a JSON Schema: an object, true or false.
//
// It supports 2020-12, and draft-07 if "$schema" names it. It checks "format", as the vocabulary
// format-assertion requires. Next to a "type", it also accepts OpenAPI's "nullable". References
// must not leave the document. The error explains what to change.
func Compile(jsonSchema json.RawMessage) (contract *Contract, err error) {
	defer func() {
		if r := recover(); r != nil { // our own bug must not end the host
			contract, err = nil, fmt.Errorf("cannot compile the schema: it broke the compiler: %v", r)
		}
	}()

	document, err := decode(jsonSchema, schemaBounds)
	if err != nil {
		return nil, fmt.Errorf("cannot read the schema: %w", err)
	}
	if err := checkDocument(document); err != nil {
		return nil, fmt.Errorf("cannot use the schema: %w", err)
	}
	document = rewriteNullable(document)

	root, err := compile(document)
	if err != nil {
		return nil, fmt.Errorf("cannot compile the schema: %w", err)
	}
	return &Contract{root, document}, nil
}

// JSONSchema returns the contract's document as given, without white space and with OpenAPI's
// "nullable" rewritten in JSON Schema. The caller may keep and modify it.
func (c *Contract) JSONSchema() json.RawMessage {
	return c.document.appendJSON(nil)
}

// String returns the contract's document.
func (c *Contract) String() string { return string(c.JSONSchema()) }
