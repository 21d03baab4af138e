package schema

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
)

func mustParse(tb testing.TB, text string) *Contract {
	tb.Helper()
	c, err := Parse(json.RawMessage(text))
	if err != nil {
		tb.Fatalf("%s: %v", text, err)
	}
	return c
}

func joined(violations []Violation) string {
	parts := make([]string, len(violations))
	for i, v := range violations {
		parts[i] = v.String()
	}
	return strings.Join(parts, " ; ")
}

// outcome formats the result of a check as in the tables.
func outcome(value json.RawMessage, violations []Violation, err error) string {
	switch {
	case err != nil:
		return "error " + err.Error()
	case len(violations) > 0:
		return "! " + joined(violations)
	}

	return "=> " + string(value)
}

// eachCase passes each line of a file to a function, with its number and the contract above it:
// the first line of each paragraph. Comments begin with #.
func eachCase(t *testing.T, file string, check func(number int, c *Contract, line string)) {
	t.Helper()

	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var c *Contract
	fresh := true
	for i, line := range strings.Split(string(text), "\n") {
		switch {
		case line == "":
			fresh = true
		case line[0] == '#':
		case fresh:
			fresh = false
			c = mustParse(t, line)
		default:
			check(i+1, c, line)
		}
	}
}

func TestChecks(t *testing.T) {
	eachCase(t, "testdata/checks.txt", func(number int, c *Contract, line string) {
		mark := " => "
		if !strings.Contains(line, mark) {
			mark = " ! "
		}
		value, want, _ := strings.Cut(line, mark)
		want = strings.TrimLeft(mark, " ") + want

		for range 3 { // the order must be stable
			if got := outcome(c.Check(json.RawMessage(value))); got != want {
				t.Errorf("line %d: %s of %s\n got %s\nwant %s", number, value, c, got, want)
			}
		}
	})
}

func TestAValueThatNeedsNoCoercionIsNotTouched(t *testing.T) {
	c := mustParse(t, `{"type":"object","properties":{"n":{"type":"number"}}}`)
	const value = " {\"z\" : 1.50, \"n\":2.0,\n\"a\": \"\\u00e9<>\"} "
	if got, violations, err := c.Check(json.RawMessage(value)); err != nil || violations != nil ||
		string(got) != value {
		t.Errorf("%q becomes %q, %v, %v", value, got, violations, err)
	}
}

func TestCoercionKeepsTheOrderOfMembers(t *testing.T) {
	c := mustParse(t, `"dict[str, int]"`)
	got, _, err := c.Check(json.RawMessage(`{"z":"3","y":2,"a":"1","<&>":"0"}`))
	if err != nil || string(got) != `{"z":3,"y":2,"a":1,"<&>":0}` {
		t.Errorf("%s, %v", got, err)
	}
}

func TestViolationsAreBoundedAndOrdered(t *testing.T) {
	c := mustParse(t, `"list[int]"`)
	value, err := json.Marshal(strings.Split(strings.Repeat("x,", 999)+"x", ","))
	if err != nil {
		t.Fatal(err)
	}
	_, violations, err := c.Check(value)
	if err != nil || len(violations) != maxViolations {
		t.Fatalf("%d violations, %v", len(violations), err)
	}

	for i, v := range violations[:maxViolations-1] {
		if want := fmt.Sprintf("$[%d]: must be integer, is string", i); v.String() != want {
			t.Errorf("%s, want %s", v, want)
		}
	}

	if last := violations[maxViolations-1].String(); last != "$: and 981 more violations" {
		t.Error(last)
	}
	long := strings.Repeat("k", 100_000)
	_, violations, err = mustParse(t,
		`"dict[str, Literal['a']]"`).Check(json.RawMessage(`{"` + long + `":"` + long + `"}`))
	if err != nil || len(violations) != 1 || len(violations[0].String()) > maxPath+maxMessage+10 {
		t.Errorf("%d violations, %v", len(violations), err)
	}
}

func TestValuesAreBounded(t *testing.T) {
	for name, c := range map[string]struct{ value, want string }{
		"deep":      {strings.Repeat("[", 100) + strings.Repeat("]", 100), "nested deeper than 64"},
		"very deep": {strings.Repeat("[", 1<<20), "nested deeper than 64"},
		"long":      {`"` + strings.Repeat("x", 4<<20) + `"`, "has 4194306 bytes"},
		"many":      {"[" + strings.Repeat("1,", 300_000) + "1]", "more than 200000 parts"},
		"not UTF-8": {"\"\xff\"", "is not UTF-8"},
		"digits":    {strings.Repeat("1", 500), "a number of 500 digits"},
		"tiny":      {"1e-999999999", "out of range"},
		"empty":     {"", "ends too early"},
		"two":       {"1 2", "after top-level value"},
		"comma":     {"[1,]", "is not JSON"},
		"huge key":  {`{"a":{"a":1,"a":2}}`, "$.a.a: this key appears twice"},
		"surrogate": {`"\ud800"`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			_, violations, err := mustParse(t, `"Any"`).Check(json.RawMessage(c.value))
			if err != nil {
				t.Errorf("%s: %v", name, err)
				return
			}

			if got := joined(violations); c.want == "" && got != "" || !strings.Contains(got, c.want) {
				t.Errorf("%s: %q, want %q", name, got, c.want)
			}
		})
	}
}
