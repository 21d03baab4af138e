package schema

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rlmhq/rlm/internal/testing/skip"
)

func TestTypeTexts(t *testing.T) {
	text, err := os.ReadFile("testdata/types.txt")
	if err != nil {
		t.Fatal(err)
	}

	for i, line := range strings.Split(string(text), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		source, want, good := strings.Cut(line, " => ")
		if !good {
			source, want, _ = strings.Cut(line, " ! ")
		}
		c, err := fromType(source)
		switch {
		case good && err != nil:
			t.Errorf("line %d: %v", i+1, err)
		case good && c.String() != want:
			t.Errorf("line %d: %s\nwant %s", i+1, c, want)
		case !good && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("line %d: %v, want %q", i+1, err, want)
		}
	}
}

func TestTypeTextsAreBounded(t *testing.T) {
	for _, text := range []string{
		strings.Repeat("list[", 500) + "int" +
			strings.Repeat("]", 500), strings.Repeat("(", 5000), strings.Repeat("x", 5000),
		"int" + strings.Repeat("[]", 500), "Literal[" + strings.Repeat("1,", 3000) +
			"1]", "list[\xff]",
	} {
		t.Run(fmt.Sprintf("%.60s", text), func(t *testing.T) {
			if _, err := fromType(text); err == nil {
				t.Errorf("%.40s… is taken", text)
			}
		})
	}
}

func TestReplies(t *testing.T) {
	eachCase(t, "testdata/replies.txt", func(number int, c *Contract, line string) {
		var reply string
		d := json.NewDecoder(strings.NewReader(line))
		if err := d.Decode(&reply); err != nil {
			t.Fatalf("line %d: %v", number, err)
		}

		want := strings.TrimSpace(line[d.InputOffset():])
		if got := outcome(c.CheckReply(reply)); got != want {
			t.Errorf("line %d: %q for %s\n got %s\nwant %s", number, reply, c, got, want)
		}
	})
}

// TestHostileReplies checks replies in which a careless search would take minutes.
func TestHostileReplies(t *testing.T) {
	skip.Short(t, "it reads many megabytes")
	skip.UnderRace(t)
	c := mustParse(t, `{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}`)
	for name, reply := range map[string]string{
		"brackets":    strings.Repeat("[", 4<<20),
		"braces":      strings.Repeat(`{"a":`, 800_000),
		"open text":   strings.Repeat(`{"`, 2<<20),
		"long opens":  strings.Repeat(`{"a": "`+strings.Repeat("x", 1000), 4000),
		"fences":      strings.Repeat("```\n{}\n```\n", 300_000),
		"open fences": strings.Repeat("```\n", 1<<20),
		"too long":    strings.Repeat("x", 5<<20),
		"not UTF-8":   strings.Repeat("\xff", 1<<20),
		"many values": strings.Repeat(`{"a":"x"} `, 400_000),
		"names":       "a = {} " + strings.Repeat("b = {} c ", 400_000),
		"think":       "<think>" + strings.Repeat("</think>", 400_000),
	} {
		t.Run(name, func(t *testing.T) {
			start := time.Now()
			value, violations, err := c.CheckReply(reply)
			if err != nil || len(violations) == 0 {
				t.Errorf("%s: %.80s, %v, %v", name, value, violations, err)
			}
			t.Logf("%s: %v", name, time.Since(start))
		})
	}
}

func TestSignatures(t *testing.T) {
	inputs, output, err := FromSignature(" question, passage: list[str]\n" +
		"-> answer: str, score: float, kind: Literal['a', 'b, c']")
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, f := range inputs {
		names = append(names, f.Name+" "+f.Contract.String())
	}
	const want = `question {"type":"string"}; passage {"type":"array","items":{"type":"string"}}`
	if got := strings.Join(names, "; "); got != want {
		t.Error(got)
	}
	names = nil
	for _, f := range output.Fields() {
		names = append(names, f.Name+" "+f.Contract.Describe())
		if !f.Required {
			t.Errorf("%s is optional", f.Name)
		}
	}

	if got := strings.Join(names, "; "); got != `answer str; score number; kind "a" | "b, c"` {
		t.Error(got)
	}
	got := outcome(output.Check(json.RawMessage(`{"answer":"x","score":"1","kind":"A"}`)))
	if got != `=> {"answer":"x","score":1,"kind":"a"}` {
		t.Error(got)
	}

	for text, want := range map[string]string{
		"question": `no "->"`, "q ->": "names no output", "q -> a, a": `"a" appears twice`,
		"q -> a b":    "expected a comma",
		"q -> a: Foo": "unknown type \"Foo\"", "3 -> a": "expected the name of a field",
		"-> a: list[":                     "expected a type",
		strings.Repeat("a", 5000) + "->b": "5003 bytes", "a->b->c": "expected a comma",
		"-> a: Literal['x": "does not end",
	} {
		t.Run(fmt.Sprintf("%.60s", text), func(t *testing.T) {
			if _, _, err := FromSignature(text); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%.40s: %v, want %q", text, err, want)
			}
		})
	}

	if inputs, _, err := FromSignature("-> answer"); err != nil || len(inputs) != 0 {
		t.Errorf("without inputs: %v, %v", inputs, err)
	}
}

func TestFieldsFollowReferences(t *testing.T) {
	c := mustParse(t, `{"$ref":"#/$defs/F","$defs":{"F":{"type":"object","properties":{`+
		`"z":{"$ref":"#/$defs/G"},"a":{"type":"integer","description":"count"}},`+
		`"required":["a"]},"G":{"description":"a word","enum":["x"]}}}`)
	fields := c.Fields()
	if len(fields) != 2 || fields[0].Name != "z" || fields[0].Required ||
		fields[0].Description != "a word" ||
		fields[1].Description != "count" || !fields[1].Required {
		t.Fatalf("%+v", fields)
	}

	if got := outcome(fields[0].Contract.Check(json.RawMessage(`"X"`))); got != `=> "x"` {
		t.Error(got)
	}

	if again, err := Compile(fields[0].Contract.JSONSchema()); err != nil ||
		again.Describe() != `"x"` {
		t.Errorf("a field's own document does not stand alone: %v", err)
	}

	if mustParse(t, `"list[int]"`).Fields() != nil {
		t.Error("a list has fields")
	}
}

func TestCheckReplyAllFindsWhatIsQuoted(t *testing.T) {
	c, err := Parse(json.RawMessage(
		`{"type": "object", "required": ["ok"], "properties": {"ok": {"type": "boolean"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	values, violations, err := c.CheckReplyAll(
		"```json\n{\"ok\": true}\n```\nno: {\"ok\": \"false\"}, and not [1]")
	if err != nil || violations != nil ||
		fmt.Sprintf("%s", values) != `[{"ok":true} {"ok":false} {"ok":true}]` {
		t.Errorf("got %s, %v, %v", values, violations, err)
	}

	if values, violations, err = c.CheckReplyAll("nothing"); err != nil || values != nil ||
		len(violations) != 1 {
		t.Errorf("got %s, %v, %v", values, violations, err)
	}

	if values, violations, err = c.CheckReplyAll(strings.Repeat(`{"ok": true} `, 50)); err != nil ||
		values != nil || len(violations) != 1 {
		t.Errorf("of 50 values it takes %s, %v, %v", values, violations, err)
	}
}
