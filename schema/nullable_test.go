package schema_test

import (
	"encoding/json"
	"testing"

	"github.com/rlmhq/rlm/schema"
)

// TestNullableOfOpenAPIAdmitsNull checks schemas as OpenAPI 3.0 writes them.
func TestNullableOfOpenAPIAdmitsNull(t *testing.T) {
	for _, test := range []struct{ name, schema, value, document string }{
		{
			"a member", `{"type":"object","properties":{"a":{"type":"string","nullable":true}},"required":["a"]}`,
			`{"a":null}`, `{"type":"object","properties":{"a":{"type":["string","null"]}},"required":["a"]}`,
		},
		{
			"an enumeration", `{"type":"string","enum":["x","y"],"nullable":true}`,
			`null`, `{"type":["string","null"],"enum":["x","y",null]}`,
		},
		{
			"items", `{"type":"array","items":{"nullable":true,"type":"integer"}}`,
			`[1,null]`, `{"type":"array","items":{"type":["integer","null"]}}`,
		},
		{
			"a property of this name", `{"type":"object","properties":{"nullable":{"type":"boolean"}}}`,
			`{"nullable":true}`, `{"type":"object","properties":{"nullable":{"type":"boolean"}}}`,
		},
		{
			"a constant", `{"const":{"type":"string","nullable":true}}`,
			`{"type":"string","nullable":true}`, `{"const":{"type":"string","nullable":true}}`,
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			contract, err := schema.Compile(json.RawMessage(test.schema))
			if err != nil {
				t.Fatal(err)
			}
			if _, violations, err := contract.Check(json.RawMessage(test.value)); err != nil || len(violations) > 0 {
				t.Errorf("Check(%s): %v, %v", test.value, violations, err)
			}
			if got := contract.String(); got != test.document {
				t.Errorf("the document is %s, want %s", got, test.document)
			}
		})
	}

	contract, err := schema.Compile(json.RawMessage(`{"type":"string","nullable":false}`))
	if err != nil {
		t.Fatal(err)
	}
	if _, violations, _ := contract.Check(json.RawMessage(`null`)); len(violations) == 0 {
		t.Error("null is admitted though it is not nullable")
	}
}
