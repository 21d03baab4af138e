package schema

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/internal/testing/skip"
)

// tower returns definitions, each of which applies the next one twice.
func tower(keyword string, levels int) string {
	var b strings.Builder
	b.WriteString(`{"$ref":"#/$defs/d0","$defs":{`)

	for i := range levels {
		fmt.Fprintf(&b, `"d%d":{%q:[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%d"}]},`, i, keyword,
			i+1, i+1)
	}

	fmt.Fprintf(&b, `"d%d":{"type":"integer"}}}`, levels)
	return b.String()
}

// TestHostileSchemas checks that schemas are rejected with the right reason.
func TestHostileSchemas(t *testing.T) {
	for name, c := range map[string]struct{ schema, want string }{
		"file":          {`{"$ref":"file:///etc/passwd"}`, "refers to another document"},
		"relative file": {`{"$ref":"../secret.json"}`, "refers to another document"},
		"http": {
			`{"properties":{"a":{"$ref":"http://127.0.0.1:1/x"}}}`,
			"refers to another document",
		},
		"by id": {
			`{"$id":"file:///etc/","properties":{"a":{"$ref":"passwd"}}}`,
			"refers to another document",
		},
		"meta schema": {
			`{"$ref":"https://json-schema.org/draft/2020-12/schema"}`,
			"another document",
		},
		"own meta schema": {
			`{"$schema":"https://example.org/meta"}`,
			`"$schema" is "https://example.org/meta"`,
		},
		"old draft": {
			`{"$schema":"http://json-schema.org/draft-04/schema#"}`,
			"remove it",
		},
		"inner schema": {
			`{"properties":{"a":{"$id":"x","$schema":"http://json-schema.org/draft-04/schema#"}}}`,
			"only at the top level",
		},
		"zero behind an ignored keyword": {
			`{"type":"number","$ref":"#/additionalItems","additionalItems":{"multipleOf":0}}`,
			"it is not a JSON Schema",
		},
		"no schema behind an ignored keyword": {
			`{"$ref":"#/additionalItems","additionalItems":{"dependentRequired":{"a":` +
				`{"$ref":"#/$defs/x"}}},"$defs":{"x":{}}}`, "it is not a JSON Schema",
		},
		"a new keyword in an old draft": {
			`{"$schema":"http://json-schema.org/draft-07/schema#","$ref":"#/$defs/x",` +
				`"$defs":{"x":{"type":"strng","minimum":"3"}}}`, "it is not a JSON Schema",
		},
		"dangling":    {`{"$ref":"#/$defs/none"}`, "not found"},
		"no anchor":   {`{"$ref":"#none"}`, "not found"},
		"self":        {`{"$ref":"#"}`, "refers to itself"},
		"self, allOf": {`{"allOf":[{"$ref":"#"}]}`, "refers to itself"},
		"ring": {
			`{"$ref":"#/$defs/a","$defs":{"a":{"anyOf":[{"$ref":"#/$defs/b"}]},` +
				`"b":{"not":{"$ref":"#/$defs/a"}}}}`, "refers to itself",
		},
		"dependent ring": {`{"dependentSchemas":{"a":{"$ref":"#"}}}`, "refers to itself"},
		"dynamic ring":   {`{"$dynamicAnchor":"x","$dynamicRef":"#x"}`, "refers to itself"},
		"two anchors": {
			`{"$dynamicAnchor":"x","$defs":{"a":{"$id":"a","$dynamicAnchor":"x"}},` +
				`"properties":{"p":{"$dynamicRef":"#x"}}}`, `have the name "x"`,
		},
		"deep": {
			strings.Repeat(`{"not":`, 200) + "true" + strings.Repeat("}", 200),
			"nested deeper",
		},
		"very deep": {strings.Repeat(`{"not":`, 30_000), "nested deeper"},
		"long": {
			`{"description":"` + strings.Repeat("x", 300_000) + `"}`,
			"bytes, more than",
		},
		"many": {
			`{"enum":[` + strings.Repeat("1,", 30_000) + "2]}",
			"more than 20000 parts",
		},
		"many schemas": {
			`{"anyOf":[` + strings.Repeat(`{"type":"null"},`, 5_000) + "{}]}",
			"more than 2000 schemas",
		},
		"huge number": {`{"minimum":1e999999999}`, "out of range"},
		"tiny number": {`{"multipleOf":1e-999999999}`, "out of range"},
		"long pattern": {
			`{"pattern":"` + strings.Repeat("a", 2_000) + `"}`,
			"2000 characters",
		},
		"repeats": {`{"pattern":"(a{1,100}){1,100}"}`, "invalid repeat count"},
		"repeats in a row": {
			`{"pattern":"` + strings.Repeat("[a-z]{1000}", 90) + `"}`,
			"expands to",
		},
		"many patterns": {
			`{"patternProperties":{` + patterns(40) + `"x":{}}}`,
			"expand to more than",
		},
		"nested parens":  {`{"pattern":"` + strings.Repeat("(", 990) + `"}`, "error parsing"},
		"look-ahead":     {`{"pattern":"^(?=.*a)"}`, "look-around and back-references are not supported"},
		"back-reference": {`{"pattern":"(a)\\1"}`, "look-around and back-references are not supported"},
		"no pattern":     {`{"pattern":"("}`, "error parsing"},
		"wrong type":     {`{"type":"integr"}`, "$.type"},
		"wrong keyword":  {`{"properties":[]}`, "$.properties"},
		"negative":       {`{"minLength":-1}`, "$.minLength"},
		"no keyword":     {`{"name":"str","age":"int"}`, "none of name, age is a keyword"},
		"list":           {`[{"type":"integer"}]`, "a schema must be an object"},
		"number":         {`3`, "a schema must be an object"},
		"null":           {`null`, "a schema must be an object"},
		"twice":          {`{"type":"integer","type":"string"}`, "appears twice"},
		"cut":            {`{"type":`, "ends too early"},
		"empty":          {``, "ends too early"},
		"not UTF-8":      {"{\"title\":\"\xff\"}", "not UTF-8"},
		"duplicate ids": {
			`{"$defs":{"a":{"$id":"x"},"b":{"$id":"x"}},"properties":{"p":{"$ref":"x"}}}`,
			"cannot compile",
		},
		"duplicate anchors": {
			`{"$defs":{"a":{"$anchor":"x"},"b":{"$anchor":"x"}}}`,
			"cannot compile",
		},
		"into a value": {
			`{"properties":{"a":{"$ref":"#/properties/a/title"}},"title":"t"}`,
			"cannot",
		},
		"bad pointer": {`{"$ref":"#/%zz"}`, "cannot"},
		"bad url":     {`{"$ref":"http://[::1"}`, "cannot"},
	} {
		t.Run(name, func(t *testing.T) {
			c2, err := Parse(json.RawMessage(c.schema))
			if err == nil {
				t.Errorf("%s: taken: %.100s", name, c2)
			} else if !strings.Contains(err.Error(), c.want) || len(err.Error()) > 1000 {
				t.Errorf("%s: %v\nwant %q", name, err, c.want)
			}
		})
	}
}

func patterns(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `"%d[a-z]{900}[a-z]{900}":{},`, i)
	}
	return b.String()
}

// recursiveUnion is a schema whose check takes time exponential in the depth of a value, because
// each level is examined once for each alternative.
const recursiveUnion = `{"$ref":"#/$defs/e","$defs":{"e":{"anyOf":[` +
	`{"type":"object","properties":{"op":{"const":"add"},"l":{"$ref":"#/$defs/e"},` +
	`"r":{"$ref":"#/$defs/e"}},"required":["op","l","r"]},` +
	`{"type":"object","properties":{"op":{"const":"mul"},"l":{"$ref":"#/$defs/e"},` +
	`"r":{"$ref":"#/$defs/e"}},"required":["op","l","r"]},` +
	`{"type":"integer"}]}}}`

func expression(depth int, leaf string) string {
	e := leaf
	for range depth {
		e = `{"op":"add","l":` + e + `,"r":1}`
	}
	return e
}

// TestHostileWork checks schemas and values that together would take too long. The check must be
// rejected before it begins.
func TestHostileWork(t *testing.T) {
	skip.Short(t, "it reads megabytes of hostile schemas")
	items := "[" + strings.Repeat("1,", 150_000) + "1]"
	for name, c := range map[string]struct{ schema, value string }{
		"allOf tower":     {tower("allOf", 60), "1"},
		"anyOf tower":     {tower("anyOf", 60), `"x"`},
		"oneOf tower":     {tower("oneOf", 60), `"x"`},
		"deep expression": {recursiveUnion, expression(60, `"x"`)},
		"double descent": {
			`{"properties":{"a":{"allOf":[{"$ref":"#"},{"$ref":"#"}]}}}`,
			strings.Repeat(`{"a":`, 60) + "1" + strings.Repeat("}", 60),
		},
		"enum": {`{"items":{"enum":[` + strings.Repeat(`"x",`, 15_000) + `1]}}`, items},
		"pattern": {
			`{"pattern":"(x+x+)+y[a-z]{1000}"}`,
			`"` + strings.Repeat("x", 3<<20) + `"`,
		},
		"missing members": {
			`{"items":{"required":[` + enumerate(15_000, `"a%d"`) + `]}}`,
			"[" + strings.Repeat("{},", 2_000) + "{}]",
		},
		"dependent members": {
			`{"items":{"dependentRequired":{"b":[` + enumerate(15_000, `"a%d"`) + `]}}}`,
			"[" + strings.Repeat(`{"b":1},`, 2_000) + "{}]",
		},
		"enum of numbers": {
			`{"items":{"enum":[` + enumerate(15_000, "%d") + `]}}`,
			"[" + enumerate(1_000, "%d.5") + "]",
		},
		"enum of arrays": {
			`{"items":{"enum":[` + enumerate(600, "["+strings.Repeat("1e300,", 25)+"%d]") + `]}}`,
			"[" + enumerate(200, "["+strings.Repeat("1e300,", 25)+"-%d]") + "]",
		},
		"pairs of items": {`{"uniqueItems":true}`, "[" + enumerate(19, "["+strings.Repeat("1,", 10_000)+"%d]") + "]"},
		"items at each depth": {
			`{"$defs":{"l":{"uniqueItems":true,"items":{"$ref":"#/$defs/l"}}},"$ref":"#/$defs/l"}`,
			strings.Repeat("[", 60) + enumerate(150_000, "%d") + strings.Repeat("]", 60),
		},
		"long fractions": {`{"items":{"multipleOf":1.25e300}}`, "[" + enumerate(190_000, "1.%de-300") + "]"},
		"deep errors": {
			`{"$defs":{"l":{"type":"array","items":{"$ref":"#/$defs/l"}}},"$ref":"#/$defs/l"}`,
			strings.Repeat("[", 60) + enumerate(190_000, "%d") + strings.Repeat("]", 60),
		},
		"regex values": {
			`{"items":{"format":"regex"}}`,
			"[" + strings.Repeat(`"[a-z]{999}",`, 150_000) + `"x"]`,
		},
		"property names": {
			`{"patternProperties":{"` + strings.Repeat("[a-z]?", 150) + `$":{}}}`,
			`{"` + strings.Repeat("x", 3<<20) + `":1}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			contract, err := Parse(json.RawMessage(c.schema))
			if err != nil {
				t.Errorf("%s: %v", name, err)
				return
			}

			value, violations, err := contract.Check(json.RawMessage(c.value))
			if err == nil {
				t.Errorf("%s: %.100s, %v", name, value, violations)
			}
			if d := contract.Describe(); len(d) > maxDescription+10 {
				t.Errorf("%s: described in %d bytes", name, len(d))
			}

			if _, _, err := contract.CheckReply(c.value); err == nil && name != "pattern" &&
				name != "property names" {
				t.Errorf("%s: the reply is checked", name)
			}
		})
	}
}

// enumerate returns n strings in a format, each with its number, joined by commas.
func enumerate(n int, format string) string {
	all := make([]string, n)
	for i := range all {
		all[i] = fmt.Sprintf(format, i)
	}
	return strings.Join(all, ",")
}

// TestMillionsOfErrorsBecomeAFewViolations checks that the reported violations are the first ones
// by path.
func TestMillionsOfErrorsBecomeAFewViolations(t *testing.T) {
	skip.Short(t, "it counts millions of errors")
	for name, c := range map[string]struct{ schema, value, first string }{
		"items": {
			`{"items":{"allOf":[` + strings.Repeat(`{"type":"array"},`, 17) + `{"type":"null"}]}}`,
			"[" + enumerate(100_000, "%d") + "]", "$[0]: must be array, is number",
		},
		"members": {
			`{"additionalProperties":false}`, "{" + enumerate(190_000, `"m%06d":1`) + "}",
			"$.m000000: is not an allowed member: remove it",
		},
		"alternatives": {
			`{"items":{"anyOf":[{"type":"array"},{"items":{"type":"null"},"type":"array"}]}}`,
			"[" + enumerate(190_000, "%d") + "]", "$[0]: must be array, is number",
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, violations, err := mustParse(t, c.schema).Check(json.RawMessage(c.value))
			if err != nil || len(violations) != maxViolations || violations[0].String() != c.first ||
				!strings.HasPrefix(violations[maxViolations-1].Message, "and more than ") {
				t.Errorf("%s: %v, %v", name, violations, err)
			}
		})
	}
}

// TestHonestWork checks similar schemas and values that are acceptable.
func TestHonestWork(t *testing.T) {
	rows := "[" + strings.Repeat(`{"name":"x","n":"7"},`, 9_999) + `{"name":"y","n":1}]`
	for name, c := range map[string]struct{ schema, value string }{
		"expression": {recursiveUnion, expression(8, `"3"`)},
		"long list": {
			`{"items":{"type":"object","properties":{"name":{"type":"string"},` +
				`"n":{"type":"integer"}},"required":["n"]}}`, rows,
		},
		"deep list": {
			`{"$defs":{"l":{"items":{"$ref":"#/$defs/l"}}},"$ref":"#/$defs/l"}`,
			strings.Repeat("[", 60) + strings.Repeat("]", 60),
		},
		"long list of numbers": {
			`{"items":{"type":"integer","minimum":0},"uniqueItems":true}`, "[" + enumerate(180_000, "%d") + "]",
		},
		"choices": {
			`{"items":{"type":"object","properties":{"a":{"enum":[` + enumerate(100, `"c%d"`) + `]},` +
				`"n":{"enum":[` + enumerate(20, "%d") + `]}},"required":["a","n"]}}`,
			"[" + strings.Repeat(`{"a":"c99","n":19},`, 9_999) + `{"a":"C7","n":"3"}]`,
		},
		"tower":     {tower("allOf", 8), `"3"`},
		"long text": {`{"pattern":"^x*$"}`, `"` + strings.Repeat("x", 100_000) + `"`},
	} {
		t.Run(name, func(t *testing.T) {
			if _, violations, err := mustParse(t,
				c.schema).Check(json.RawMessage(c.value)); err != nil || len(violations) > 0 {
				t.Errorf("%s: %v, %v", name, violations, err)
			}
		})
	}
}

// TestAReplyThatIsNotReadToItsEndHasNoValue checks that a reply has no value if its end is not
// read, because the last value is the answer.
func TestAReplyThatIsNotReadToItsEndHasNoValue(t *testing.T) {
	c, err := Parse(json.RawMessage(`{"type":"object","required":["n"]}`))
	if err != nil {
		t.Fatal(err)
	}
	reply := `It was {"n":1}. ` + strings.Repeat("[", 9_000) + ` It is {"n":2}.`
	if value, violations, err := c.CheckReply(reply); err != nil || len(violations) == 0 {
		t.Errorf("%s, %v, %v", value, violations, err)
	}
}

// TestABlockThatTheProseBehindItContradictsIsNoValue checks that a different value after a block
// rules the block out, because a model that corrects itself means the later value. Prose before the
// block may quote an example.
func TestABlockThatTheProseBehindItContradictsIsNoValue(t *testing.T) {
	c, err := Parse(json.RawMessage(`{"type":"object","required":["n"]}`))
	if err != nil {
		t.Fatal(err)
	}
	const block = "```json\n{\"n\": 1}\n```\n"
	for reply, want := range map[string]string{
		block + `Wait, it is {"n": 2}.`:                   "",
		block + `That is {"n": 1}, as a sum of {"m": 2}.`: `{"n":1}`,
		`Not {"n": 2}, but` + "\n" + block:                `{"n":1}`,
	} {
		t.Run(fmt.Sprintf("%.60s", reply), func(t *testing.T) {
			value, violations, err := c.CheckReply(reply)
			if err != nil || string(value) != want || (want == "") != (len(violations) > 0) {
				t.Errorf("%q: %s, %v, %v", reply, value, violations, err)
			}
		})
	}
}
