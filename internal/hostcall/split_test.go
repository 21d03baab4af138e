package hostcall

import (
	"bytes"
	"encoding/json"
	"testing"
)

// FuzzSplit compares with the decoder.
func FuzzSplit(f *testing.F) {
	f.Add(` [1, "a,\\\"[", {"b": [1, 2]} , [] ]`)
	f.Add(`{"a,": {"b":[1,2]}, "c\"" : 0 , "": "}"}`)
	f.Add(`[]`)
	f.Add(`{ }`)
	f.Fuzz(func(t *testing.T, text string) {
		if !json.Valid([]byte(text)) {
			return
		}

		var list []json.RawMessage
		want := json.Unmarshal([]byte(text), &list) == nil && list != nil
		elements, isArray := Elements([]byte(text))
		if isArray != want || len(elements) != len(list) {
			t.Fatalf("%q: %q, %t", text, elements, isArray)
		}
		for i := range list {
			if !bytes.Equal(elements[i], list[i]) {
				t.Errorf("%q: %q, want %q", text, elements[i], list[i])
			}
		}

		var members map[string]json.RawMessage
		want = json.Unmarshal([]byte(text), &members) == nil && members != nil
		found := map[string]json.RawMessage{}
		isObject := Members([]byte(text), func(name, value []byte) {
			var key string
			if err := json.Unmarshal(name, &key); err != nil {
				t.Fatal(err)
			}
			found[key] = value
		})
		if isObject != want || len(found) != len(members) {
			t.Fatalf("%q: %q, %t", text, found, isObject)
		}
		for key, value := range members {
			if !bytes.Equal(found[key], value) {
				t.Errorf("%q: %q, want %q", text, found[key], value)
			}
		}
	})
}
