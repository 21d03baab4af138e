package wirevalue

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

func TestTagsAreChecked(t *testing.T) {
	for _, c := range []struct {
		value  string
		hasTag bool
		wrong  string // a part of the error
	}{
		{value: `{"a": [1, "x", null, true, -1.5]}`},
		{value: `9007199254740992`},
		{value: `9007199254740993`, wrong: "beyond 2^53"},
		{value: `-99999999999999999999`, wrong: "beyond 2^53"},
		{value: `1e400`},
		{value: `{"$int": "9007199254740993"}`, hasTag: true},
		{value: `{"$int": "0x10"}`, wrong: "$int"},
		{value: `{"$int": 5}`, wrong: "$int"},
		{value: `{"$int": "` + strings.Repeat("9", maxText+1) + `"}`, wrong: "$int"},
		{value: `{"$float": "nan"}`, hasTag: true},
		{value: `{"$float": "1.5"}`, wrong: "$float"},
		{value: `{"$bytes": "aGk="}`, hasTag: true},
		{value: `{"$bytes": "a"}`, wrong: "$bytes"},
		{value: `{"$bytes": 1}`, wrong: "$bytes"},
		{value: `[{"$tuple": [1, {"$set": []}]}]`, hasTag: true},
		{value: `{"$tuple": [1, {"$set": 3}]}`, wrong: "$set"},
		{value: `{"$dict": [[1, 2]]}`, hasTag: true},
		{value: `{"$dict": [[1]]}`, wrong: "pairs"},
		{value: `{"$timedelta": [1, 2, 3]}`, hasTag: true},
		{value: `{"$timedelta": [1, 2]}`, wrong: "$timedelta"},
		{value: `{"$timedelta": [1, 2, 0.5]}`, wrong: "$timedelta"},
		{value: `{"$date": "2026-01-31"}`, hasTag: true},
		{value: `{"$date": "os.system"}`, wrong: "$date"},
		{value: `{"$object": {"type": "A", "repr": ""}}`, wrong: "cannot be sent back"},
		{value: `{"$what": 1}`, wrong: "is not a tag"},
		{value: `{"$int": "1", "b": 2}`, wrong: "several names"},
		{value: `{"$$int": "1"}`, hasTag: true},
		{value: `{"a": 1, "a": 2}`, wrong: "not JSON"},
		{value: `[1] 2`, wrong: "not JSON"},
		{value: "\"\xff\"", wrong: "UTF-8"},
		{value: strings.Repeat("[", 501) + strings.Repeat("]", 501), wrong: "levels"},
		{value: ``, wrong: "not JSON"},
	} {
		t.Run(fmt.Sprintf("%.60s", c.value), func(t *testing.T) {
			hasTag, err := Find(Value(c.value))
			if err == nil && hasTag != c.hasTag || (err == nil) != (c.wrong == "") ||
				err != nil && !strings.Contains(err.Error(), c.wrong) {
				t.Errorf("%.60s: %v, %v; want %v, %q", c.value, hasTag, err, c.hasTag, c.wrong)
			}
		})
	}
}

func TestPlainIsTheJSONThatThereIs(t *testing.T) {
	got, err := Plain(Value(`{"$$a": [{"$int": "123456789012345678901"}, {"b": "<&>"}]}`))
	if want := `{"$a":[123456789012345678901,{"b":"<&>"}]}`; err != nil || string(got) != want {
		t.Errorf("%s, %v", got, err)
	}
	if got, err := Plain(Value(`{"$tuple": [1]}`)); err == nil {
		t.Errorf("a tuple became %s", got)
	}
}

// FuzzValue checks that the plain form of every value is JSON that decodes to the same value, and
// that Find accepts the output of Escape.
func FuzzValue(f *testing.F) {
	for _, seed := range []string{
		`{"$$a": [{"$int": "123456789012345678901"}]}`, `{"$tuple": [1]}`, `[1e9, -0, "\u0000"]`,
		`{"$dict": [[{"$frozenset": []}, {"$timedelta": [0, 0, 1]}]]}`, `{"$float": "-inf"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if _, err := Find(Value(data)); err != nil {
			return
		}
		plain, err := Plain(Value(data))
		if err != nil {
			return
		}
		if !json.Valid(plain) {
			t.Fatalf("%q is not JSON", plain)
		}
		escaped, err := Escape(plain)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Find(escaped); err != nil {
			t.Fatalf("%q: %v", escaped, err)
		}
		again, err := Plain(escaped)
		if err != nil || !bytes.Equal(again, plain) {
			t.Fatalf("%q became %q: %v", plain, again, err)
		}
	})
}
