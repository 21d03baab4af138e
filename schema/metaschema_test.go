package schema

import (
	"encoding/json"
	"strings"
	"testing"
)

// TestTheMetaschemasAreSchemas checks each metaschema with its own rules and with those of the
// other one.
func TestTheMetaschemasAreSchemas(t *testing.T) {
	for _, m := range []*metaschema{newMetaschema, oldMetaschema} {
		text, err := metaschemaFiles.ReadFile(m.file)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Compile(text); err != nil {
			t.Errorf("%s: %v", m.file, err)
		}
		if root := m.compile(); len(root.properties) < 40 {
			t.Errorf("%s has %d keywords", m.file, len(root.properties))
		}
	}
}

// TestWrongKeywordsAreFound checks that errors name the place of a wrong keyword, even in parts
// that no keyword refers to.
func TestWrongKeywordsAreFound(t *testing.T) {
	const old = `"$schema":"http://json-schema.org/draft-07/schema#",`
	for document, want := range map[string]string{
		`{"type":["integer","integer"]}`:                           "$.type: the items 0 and 1 are the same",
		`{"properties":{"a":{"required":"a"}}}`:                    "$.properties.a.required: must be array, is string",
		`{"$defs":{"a":{"maxItems":1.5}}}`:                         `$["$defs"].a.maxItems: must be integer, is number`,
		`{"allOf":[]}`:                                             "$.allOf: must have at least 1 items, has 0",
		`{"items":[{}]}`:                                           "$.items: must be boolean or object, is array",
		`{"multipleOf":0}`:                                         "$.multipleOf: must be greater than 0, is 0",
		`{"patternProperties":{"(":true}}`:                         `is not a valid name: invalid pattern "("`,
		`{"$anchor":"1"}`:                                          `$["$anchor"]: must match the pattern`,
		`{"$ref":"#/examples/0","examples":[{"type":"x"}]}`:        "$.type: ",
		`{` + old + `"items":[{"type":"x"}]}`:                      "$.items",
		`{` + old + `"dependencies":{"a":[1]}}`:                    "$.dependencies.a[0]: must be string, is number",
		`{` + old + `"prefixItems":3,"$defs":{"a":{"type":"x"}}}`:  "", // unknown to draft-07
		`{"dependencies":{"a":["b"]},"definitions":{"b":{}}}`:      "", // 2020-12 keeps them
		`{"dependentRequired":{"a":{"type":"integer"}}}`:           "$.dependentRequired.a: must be array, is object",
		`{"type":"integer","additionalItems":3,"default":{"a":1}}`: "",
	} {
		_, err := Compile(json.RawMessage(document))
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", document, err, want)
		}
	}
}
