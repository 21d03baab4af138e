package schema

import (
	"encoding/json"
	"os"
	"strings"
	"testing"
)

// TestKeywords runs a table of the keywords of 2020-12 and draft-07. It validates values without
// coercion.
func TestKeywords(t *testing.T) {
	text, err := os.ReadFile("testdata/keywords.txt")
	if err != nil {
		t.Fatal(err)
	}
	var c *Contract
	var schema string
	cases := 0
	for i, line := range strings.Split(string(text), "\n") {
		sign, value, _ := strings.Cut(line, " ")
		switch {
		case line == "" || line[0] == '#' || line[0] == '=':
		case sign != "+" && sign != "-":
			schema = line
			if c, err = Compile(json.RawMessage(schema)); err != nil {
				t.Fatalf("line %d: %v", i+1, err)
			}

		default:
			cases++
			n, err := decode([]byte(value), valueBounds)
			if err != nil {
				t.Fatalf("line %d: %v", i+1, err)
			}
			left := maxWork
			found, err := validate(c.root, n, &left)
			if err != nil {
				t.Fatalf("line %d: %v", i+1, err)
			}
			if valid := found == nil; valid != (sign == "+") {
				t.Errorf("line %d: %s of %s is valid: %v", i+1, value, schema, valid)
			}
			if found != nil && len(listViolations(found)) == 0 {
				t.Errorf("line %d: %s of %s is invalid without a violation", i+1, value, schema)
			}
		}
	}

	if cases < 150 {
		t.Errorf("%d cases, want at least 150", cases)
	}
	t.Logf("%d cases", cases)
}
