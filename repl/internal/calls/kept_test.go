package calls

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
)

func TestAnEndingOfARunLogIsChecked(t *testing.T) {
	whole := ending{
		Room: room{Tokens: 10, IsShort: true}, Used: ledger.Spending{Calls: 1, InputTokens: 5, USD: 0.25},
		Response: llm.Response{Text: "yes", Model: "m", Finish: llm.FinishLength, Usage: llm.Usage{InputTokens: 5}},
		Failed:   &failure{Kind: "rate limited", Status: 429}, Error: "e",
	}
	data, err := json.Marshal(whole)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := decodeEnding(data); err != nil || !reflect.DeepEqual(got, whole) {
		t.Errorf("%+v, %v, want %+v", got, err, whole)
	}
	for _, bad := range []string{
		``, `{} {}`, `{"other":1}`, `{"used":{"calls":-1}}`, `{"used":{"usd":-0.1}}`, `{"used":{"input_tokens":9e12}}`,
		`{"room":{"tokens":-1}}`, `{"used":{"tool_calls":9223372036854775807}}`,
	} {
		if e, err := decodeEnding([]byte(bad)); err == nil {
			t.Errorf("%s is taken for %+v", bad, e)
		}
	}
}

// FuzzEnding checks that the contents of a run log are either refused or an ending that a budget
// can book.
func FuzzEnding(f *testing.F) {
	f.Add([]byte(`{"room":{"tokens":1},"used":{"calls":1,"usd":0.1},"response":{"Text":"x"},"failed":{"kind":"k"}}`))
	f.Add([]byte(`{"used":{"calls":-1}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := decodeEnding(data)
		if err == nil && !IsPlausible(e.Used) {
			t.Errorf("%+v", e)
		}
		_ = e.err()
	})
}
