package schema

import ("testing";"fmt";"encoding/json")

func TestTry(t *testing.T) {
	for _, x := range [][2]string{
		{`"int"`, `"3"`}, {`"bool"`, `"True"`}, {`"list[int]"`, `["1", 2.0, "x"]`}, {`"Optional[int]"`, `"abc"`},
		{`"Literal['low','high']"`, `"LOW"`}, {`"list[tuple[str, float]]"`, `[["a","1.5"],["b"]]`},
		{`"dict[str, int]"`, `{"z":"1","a":2}`},
		{`{"type":"object","properties":{"a":{"type":"integer","minimum":3},"b":{"type":"string"}},"required":["a"],"additionalProperties":false}`, `{"a":1,"b":null,"c":2}`},
		{`{"$ref":"other.json"}`, `1`}, {`{"$ref":"file:///etc/passwd"}`, `1`}, {`{"$ref":"https://json-schema.org/draft/2020-12/schema"}`, `1`}, {`{"$ref":"#"}`, `1`},
		{`{"allOf":[{"$ref":"#/$defs/a"}],"$defs":{"a":{"anyOf":[{"$ref":"#"},{"type":"null"}]}}}`, `1`},
		{`{"$dynamicRef":"#x","$defs":{"a":{"$dynamicAnchor":"x","type":"integer"}}}`, `"x"`},
		{`{"type":"integer"}`, `1e999`},{`{"type":"integer"}`, `NaN`},{`{"type":"integer"}`, `{"a":1,"a":2}`},
		{`{"pattern":"(?=x)"}`, `"x"`},
		{`{"oneOf":[{"type":"object","properties":{"k":{"const":"a"},"n":{"type":"integer"}},"required":["k","n"]},{"type":"object","properties":{"k":{"const":"b"}},"required":["k"]}]}`, `{"k":"a","n":"x"}`},
	} {
		c, err := Parse(json.RawMessage(x[0]))
		if err != nil { fmt.Println(x[0], "ERR", err); continue }
		v, vs, err := c.Check(json.RawMessage(x[1]))
		fmt.Println(x[0], x[1], "->", string(v), vs, err)
		fmt.Println("  ", c.Describe())
		s, err := c.Strict()
		fmt.Println("  ", string(s), err)
	}
}
