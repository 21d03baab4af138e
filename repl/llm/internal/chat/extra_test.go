package chat

import (
	"encoding/json"
	"testing"
)

func FuzzAddExtra(f *testing.F) {
	f.Add(`{"a": {"b": 1}}`)
	f.Add(` {} `)
	f.Add(`{"model": "x"}`)
	f.Add(`null`)
	f.Fuzz(func(t *testing.T, extra string) {
		body, err := AddExtra(json.RawMessage(`{"model":"m"}`), json.RawMessage(extra))
		if err != nil {
			return
		}
		var got, members map[string]json.RawMessage
		if json.Unmarshal(body, &got) != nil || json.Unmarshal([]byte(extra), &members) != nil ||
			string(got["model"]) != `"m"` || len(got) != len(members)+1 {
			t.Errorf("%q became %s", extra, body)
		}
	})
}
