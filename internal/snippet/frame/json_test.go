package frame

import "testing"

func TestDecodeJSONIsStrict(t *testing.T) {
	type message struct {
		Name string `json:"name"`
	}
	var got message
	for _, body := range []string{`{"name":"a"}`, " {\"name\": \"a\"}\n"} {
		if err := DecodeJSON([]byte(body), &got); err != nil || got.Name != "a" {
			t.Errorf("%s: %+v, %v", body, got, err)
		}
	}
	for _, body := range []string{
		"", "{", `{"other":1}`, `{"name":1}`, `{"name":"a"}{}`, `{"name":"a"} x`, `[]`,
	} {
		if err := DecodeJSON([]byte(body), new(message)); err == nil {
			t.Errorf("%s is decoded", body)
		}
	}
}
