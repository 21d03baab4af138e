package schema_test

import (
	"encoding/json"
	"testing"

	"github.com/rlmhq/rlm/schema"
)

// TestAlmostJSONIsRepaired checks replies that are not JSON but have only one meaning.
func TestAlmostJSONIsRepaired(t *testing.T) {
	contract := compileOf(t, `{"type":"object","properties":{"a":{},"b":{}},"required":["a"]}`)
	for name, test := range map[string]struct{ reply, want string }{
		"a comma at the end":       {`{"a": [1, 2,], "b": {"c": 3,},}`, `{"a":[1,2],"b":{"c":3}}`},
		"a line comment":           {"{\"a\": 1, // the first\n\"b\": 2}", `{"a":1,"b":2}`},
		"a comment of Python":      {"{\"a\": 1 # the first\n}", `{"a":1}`},
		"a block comment":          {`{/* one */ "a": 1}`, `{"a":1}`},
		"a comment's sign in text": {`{"a": "http://x # y",}`, `{"a":"http://x # y"}`},
		"a dict of Python": {
			`{'a': True, 'b': [None, False, 'say "x"']}`, `{"a":true,"b":[null,false,"say \"x\""]}`,
		},
		"an escaped quote":          {`{'a': 'it\'s'}`, `{"a":"it's"}`},
		"curly quotes":              {`{“a”: “x”}`, `{"a":"x"}`},
		"keys without quotes":       {`{a: 1, b: -2.5e3}`, `{"a":1,"b":-2.5e3}`},
		"a line break in a text":    {"{\"a\": \"one\ntwo\"}", `{"a":"one\ntwo"}`},
		"in a fence":                {"Here:\n```json\n{'a': 1}\n```", `{"a":1}`},
		"in prose":                  {"The result is {'a': [1, 2,]} as asked.", `{"a":[1,2]}`},
		"valid JSON stays as it is": {`{"a": "True, 'x' // y"}`, `{"a":"True, 'x' // y"}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, violations, err := contract.CheckReply(test.reply)
			if err != nil || len(violations) > 0 || string(got) != test.want {
				t.Errorf("%s: got %s, %v, %v; want %s", test.reply, got, violations, err, test.want)
			}
		})
	}

	for name, reply := range map[string]string{
		"cut off":                 `{"a": [1, 2`,
		"cut off in a comment":    `{"a": 1 /* x`,
		"an apostrophe in quotes": `{'a': 'it's'}`,
		"a name that is no value": `{"a": undefined}`,
		"two commas":              `{"a": [1,, 2]}`,
		"without commas":          `{"a": [1 2]}`,
		"elided":                  `{"a": [1, ...]}`,
	} {
		t.Run(name, func(t *testing.T) {
			if got, violations, err := contract.CheckReply(reply); err != nil || len(violations) == 0 {
				t.Errorf("%s: got %s, %v", reply, got, err)
			}
		})
	}
}

// TestTheSchemaIsNotAnAnswer checks replies that repeat the contract.
func TestTheSchemaIsNotAnAnswer(t *testing.T) {
	const document = `{"type":"object","properties":{"name":{"type":"string"}}}`
	contract := compileOf(t, document)
	for _, reply := range []string{
		document, "```json\n" + document + "\n```",
		`{"title":"Answer","properties":{"name":{"type":"string"}},"type":"object"}`,
	} {
		if got, violations, err := contract.CheckReply(reply); err != nil || len(violations) == 0 {
			t.Errorf("%s: got %s, %v", reply, got, err)
		}
	}

	if _, violations, err := contract.CheckReply(`{"name":"x"}`); err != nil || len(violations) > 0 {
		t.Errorf("a value: %v, %v", violations, err)
	}
	ofSchemas := compileOf(t, `{"type":"object","properties":{"properties":{"type":"object"}}}`)
	if _, violations, err := ofSchemas.CheckReply(`{"properties":{"properties":{"type":"object"}}}`); err != nil ||
		len(violations) > 0 {
		t.Errorf("a schema that was asked for: %v, %v", violations, err)
	}
}

func compileOf(t *testing.T, document string) *schema.Contract {
	t.Helper()
	contract, err := schema.Compile(json.RawMessage(document))
	if err != nil {
		t.Fatal(err)
	}
	return contract
}
