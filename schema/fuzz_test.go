package schema

import (
	"encoding/json"
	"testing"
	"unicode/utf8"
)

func addAll(f *testing.F, texts ...string) {
	f.Helper()
	for _, text := range texts {
		f.Add(text)
	}
}

// exercise calls every method of a contract.
func exercise(t *testing.T, c *Contract, value string) {
	t.Helper()
	if d := c.Describe(); len(d) > maxDescription+8 || !utf8.ValidString(d) {
		t.Errorf("a description of %d bytes", len(d))
	}
	if _, err := Compile(c.JSONSchema()); err != nil {
		t.Errorf("the document of a contract does not compile: %v", err)
	}

	if strict, err := c.Strict(); err == nil {
		if _, err := Compile(strict); err != nil {
			t.Errorf("the strict form does not compile: %v\n%s", err, strict)
		}
	}

	c.Fields()
	coerced, violations, err := c.Check(json.RawMessage(value))
	if err != nil || len(violations) > 0 {
		return
	}

	again, violations, err := c.Check(coerced)
	if err != nil || len(violations) > 0 {
		t.Errorf("what was coerced is not valid: %s, %v, %v", coerced, violations, err)
	} else if string(again) != string(coerced) {
		t.Errorf("a coercion is not at its end: %s, then %s", coerced, again)
	}
}

// FuzzParse parses schemas and exercises them with a value.
func FuzzParse(f *testing.F) {
	for _, text := range described {
		f.Add(text, `{"a":"1","title":null}`)
	}
	f.Add(recursiveUnion, expression(3, `"3"`))
	f.Add(tower("anyOf", 6), `"3"`)
	f.Add(`{"$id":"a","$ref":"b#/c","$defs":{"b":{"$id":"b"}}}`, `1`)
	f.Add(`{"$dynamicRef":"#x","$defs":{"a":{"$dynamicAnchor":"x"}}}`, `[]`)
	f.Add(`{"patternProperties":{"^a":{"type":"integer"}},"unevaluatedProperties":false}`,
		`{"ab":"3"}`)
	f.Fuzz(func(t *testing.T, schema, value string) {
		c, err := Parse(json.RawMessage(schema))
		if err == nil {
			exercise(t, c, value)
		}
	})
}

// FuzzFromType parses type text and signatures.
func FuzzFromType(f *testing.F) {
	addAll(f, "bool", "list[tuple[str, float]]", "Optional[int]", "Literal['a', \"b\", 3, None]",
		"dict[str, int] | None", "int[][]", "(a")
	f.Fuzz(func(t *testing.T, text string) {
		if c, err := fromType(text); err == nil {
			exercise(t, c, `["1"]`)
		}
		if _, c, err := FromSignature(text + " -> a: " + text); err == nil {
			exercise(t, c, `{"a":"1"}`)
		}
	})
}

var fuzzed = []string{
	`"Any"`, `"list[int]"`, `"dict[str, Optional[float]]"`, `"Literal['low', 'high']"`, `"bool"`,
	`"str"`, `"set[str | int]"`,
	`{"type":"object","properties":{"a":{"type":"integer"},` +
		`"b":{"type":"array","items":{"$ref":"#"}}},"required":["a"],"additionalProperties":false}`,
	recursiveUnion,
}

// FuzzCheck checks values against several contracts.
func FuzzCheck(f *testing.F) {
	addAll(f, `[1,"2",3.0]`, `{"a":"1","b":[{"a":2}]}`, `"LOW"`, `1e999`, `{"a":1,"a":2}`,
		`[[[[]]]]`, "\"\xff\"", `"[1]"`, `-0.0`, `"+.5e1"`)
	f.Fuzz(func(t *testing.T, value string) {
		for _, schema := range fuzzed {
			exercise(t, mustParse(t, schema), value)
		}
	})
}

// FuzzCheckReply checks replies against several contracts.
func FuzzCheckReply(f *testing.F) {
	addAll(f, "```json\n[1]\n```", "Answer: yes.", `so {"a":1} or {"a":"2"}`, "<think>x</think>3",
		"```\n```", "[[[{", `{"value":[1]}`)
	f.Fuzz(func(t *testing.T, reply string) {
		for _, schema := range fuzzed {
			c := mustParse(t, schema)
			value, violations, err := c.CheckReply(reply)
			if err != nil || len(violations) > 0 {
				continue
			}

			if _, violations, err := c.Check(value); err != nil || len(violations) > 0 {
				t.Errorf("the value of a reply is not valid: %s, %v, %v", value, violations, err)
			}
		}
	})
}

// FuzzRepair checks that a repaired text is JSON, and that the repair of JSON does not change its
// value.
func FuzzRepair(f *testing.F) {
	addAll(f, `{'a': True, b: [1,], /* x */ "c": "it's"}`, `[1, 2]`, `{"a": "\u00e9", "b": {"c": null}}`,
		"{“a”: 'b\n'}")
	f.Fuzz(func(t *testing.T, text string) {
		given, err := decode([]byte(text), valueBounds)
		if err == nil && given.kind != arrayKind && given.kind != objectKind {
			return
		}
		repaired, length, ok := repairJSON(text)
		if length > len(text) {
			t.Fatalf("%d of %d bytes are used", length, len(text))
		}
		if !ok {
			if err == nil {
				t.Errorf("%q is JSON and is refused", text)
			}
			return
		}

		made, failed := decode([]byte(repaired), valueBounds)
		if err == nil && (failed != nil || !made.equals(given)) {
			t.Errorf("%q becomes %q: %v", text, repaired, failed)
		}
	})
}
