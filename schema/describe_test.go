package schema

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden file of descriptions and strict forms")

// described holds the contracts whose descriptions and strict forms are recorded.
var described = []string{
	`"bool"`, `"Optional[list[str]]"`, `"Literal['a', 'b', 3, None]"`, `"dict[str, list[int]]"`,
	`"dict[Literal['x'], int]"`,
	`"tuple[str, int]"`, `"set[date]"`, `"Any"`, `true`, `false`, `"int | str"`,
	`{"type":"integer","minimum":1,"exclusiveMaximum":10,"multipleOf":0.5}`,
	`{"type":"string","minLength":1,"maxLength":5,"pattern":"^a+$"}`,
	`{"type":"string","format":"email"}`,
	`{"type":["string","null"],"maxLength":3}`,
	`{"type":"array","items":{"type":"integer"},"minItems":2,"maxItems":2}`,
	`{"const":{"a":1}}`,
	`{"type":"object","properties":{"title":{"type":"string","description":"what it\n is"},` +
		`"severity":{"enum":["low","high"]}, ` +
		`"lines":{"type":"array","items":{"type":"integer"},"description":"where"}},` +
		`"required":["title","severity"],"additionalProperties":false}`,
	`{"$ref":"#/$defs/Node","$defs":{"Node":{"type":"object","properties":{` +
		`"value":{"type":"integer"},"children":{"type":"array","items":{"$ref":"#/$defs/Node"}}},` +
		`"required":["value"]}}}`,
	`{"type":"array","items":{"anyOf":[{"$ref":"#/$defs/A"},{"$ref":"#/$defs/B"}]},"$defs":{` +
		`"A":{"type":"object","properties":{"kind":{"const":"a"},"of":{"$ref":"#/$defs/S"}},` +
		`"required":["kind"]}, ` +
		`"B":{"type":"object","properties":{"kind":{"const":"b"}},"required":["kind"]},` +
		`"S":{"enum":["x","y"]}}}`,
	`{"type":"object","properties":{"self":{"$ref":"#"}}}`,
	`{"allOf":[{"type":"object","properties":{"a":{"type":"integer"}}},` +
		`{"properties":{"b":{"type":"boolean"}}}]}`,
	`{"type":"object","properties":{"a":{"type":"integer"}},` +
		`"additionalProperties":{"type":"string"}}`,
	`{"type":"object","minProperties":1}`,
	`{"$schema":"http://json-schema.org/draft-07/schema#","type":"array",` +
		`"items":{"$ref":"#/definitions/d"},"definitions":{"d":{"type":"object",` +
		`"properties":{"n":{"type":["number","null"]}}}}}`,
}

func TestDescriptionsAndStrictForms(t *testing.T) {
	var b strings.Builder
	for _, text := range described {
		c := mustParse(t, text)
		b.WriteString("# " + strings.Join(strings.Fields(text), " ") + "\n" + c.Describe() +
			"\nstrict: ")

		if strict, err := c.Strict(); err != nil {
			b.WriteString(err.Error())
		} else {
			b.Write(strict)
			if _, err := Compile(strict); err != nil {
				t.Errorf("the strict form of %s is no schema: %v", text, err)
			}
		}

		b.WriteString("\n\n")
	}

	const file = "testdata/descriptions.txt"
	if *update {
		if err := os.WriteFile(file, []byte(b.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}

	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if b.String() != string(want) {
		t.Errorf("not as in %s (write it with -update):\n%s", file, b.String())
	}
}

// TestStrictRepliesAreUndone checks a reply in the strict form against the contract.
func TestStrictRepliesAreUndone(t *testing.T) {
	for _, c := range []struct{ schema, reply, want string }{
		{`"list[int]"`, `{"value":[1,2]}`, `=> [1,2]`},
		{`"Optional[bool]"`, `{"value":null}`, `=> null`},
		{
			`{"type":"object","properties":{"a":{"type":"integer"},"b":{"type":"string"}},` +
				`"required":["a"]}`,
			`{"a":1,"b":null}`, `=> {"a":1}`,
		},
		{
			`{"anyOf":[{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]},` +
				`{"type":"null"}]}`,
			`{"value":{"a":1}}`, `=> {"a":1}`,
		},
		{
			`{"type":"object","properties":{"value":{"type":"integer"}},"required":["value"]}`,
			`{"value":3}`, `=> {"value":3}`,
		},
	} {
		t.Run(fmt.Sprintf("%.60s", c.schema), func(t *testing.T) {
			contract := mustParse(t, c.schema)
			strict, err := contract.Strict()
			if err != nil {
				t.Errorf("%s: %v", c.schema, err)
				return
			}

			if got := outcome(mustParse(t,
				string(strict)).Check(json.RawMessage(c.reply))); !strings.HasPrefix(got, "=>") {
				t.Errorf("%s does not fit %s: %s", c.reply, strict, got)
			}

			if got := outcome(contract.CheckReply(c.reply)); got != c.want {
				t.Errorf("%s for %s: %s, want %s", c.reply, c.schema, got, c.want)
			}
		})
	}
}
