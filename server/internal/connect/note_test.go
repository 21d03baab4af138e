package connect

import (
	"testing"

	"github.com/rlmhq/rlm/internal/snippet/jsonrpc"
)

func TestARequestNamesItsSession(t *testing.T) {
	for params, want := range map[string]string{
		`{"session":"7","source":"1"}`:          "7",
		`{"source":{"session":"8"},"name":"n"}`: "n",
		`{"session":7}`:                         "",
		`{}`:                                    "",
		`[]`:                                    "",
		``:                                      "",
	} {
		t.Run(params, func(t *testing.T) {
			if got := sessionIn(jsonrpc.Raw(params)); got != want {
				t.Errorf("%s names %q, want %q", params, got, want)
			}
		})
	}
}

// FuzzSessionIn searches arbitrary bytes, as parameters, for a session.
func FuzzSessionIn(f *testing.F) {
	f.Add([]byte(`{"a":[1,{"b":null}],"session":"7"}`))
	f.Add([]byte(`{"session"`))
	f.Fuzz(func(t *testing.T, params []byte) {
		if got := sessionIn(params); len(got) > 3*len(params) {
			t.Errorf("%q names %q", params, got)
		}
	})
}
