package schema

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

const findings = `{"type":"array","items":{"$ref":"#/$defs/Finding"},` +
	`"$defs":{"Finding":{"type":"object","properties":{` +
	`"title":{"type":"string","minLength":1},"severity":{"enum":["low","mid","high"]},` +
	`"line":{"type":"integer","minimum":1},"score":{"anyOf":[{"type":"number"},{"type":"null"}]},` +
	`"tags":{"type":"array","items":{"type":"string"}}},` +
	`"required":["title","severity","line"],"additionalProperties":false}}}`

// kilobyte returns a value of 1 KB whose rows have the given line.
func kilobyte(line string) string {
	var rows []string
	for i := range 9 {
		rows = append(rows, fmt.Sprintf(`{"title":"finding number %d of the text",`+
			`"severity":"high","line":%s,"score":0.75,"tags":["a","bb"]}`, i, line))
	}
	return "[" + strings.Join(rows, ",") + "]"
}

func benchmarkCheck(b *testing.B, schema, value string) {
	b.Helper()
	c := mustParse(b, schema)
	b.SetBytes(int64(len(value)))
	b.ReportAllocs()

	for b.Loop() {
		if _, violations, err := c.Check(json.RawMessage(value)); err != nil ||
			len(violations) > 0 {
			b.Fatal(violations, err)
		}
	}
}

func BenchmarkCheck1KB(b *testing.B)        { benchmarkCheck(b, findings, kilobyte("12")) }
func BenchmarkCheckCoerced1KB(b *testing.B) { benchmarkCheck(b, findings, kilobyte(`"12"`)) }
func BenchmarkCheckBool(b *testing.B)       { benchmarkCheck(b, `"bool"`, "true") }

func BenchmarkCheckReply1KB(b *testing.B) {
	c := mustParse(b, findings)
	reply := "Here are the findings:\n```json\n" + kilobyte("12") + "\n```\nThat is all."
	b.ReportAllocs()

	for b.Loop() {
		if _, violations, err := c.CheckReply(reply); err != nil || len(violations) > 0 {
			b.Fatal(violations, err)
		}
	}
}

func BenchmarkCompile(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Compile(json.RawMessage(findings)); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkParseCached(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(json.RawMessage(findings)); err != nil {
			b.Fatal(err)
		}
	}
}
