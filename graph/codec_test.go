package graph

import (
	"encoding/json"
	"reflect"
	"testing"
)

// FuzzAnswers decodes bytes of a hostile engine. The decoder must not panic or exceed the cost
// limit.
func FuzzAnswers(f *testing.F) {
	var e encoder
	e.texts([]string{"a"})
	e.data = append(e.data, 1)
	e.value(map[string]any{"x": []any{1, 2.5, nil, true, "text"}}, 0)
	e.data = append(e.data, 0)
	f.Add(e.data)
	f.Add(append([]byte("s"), e.data...))
	f.Add([]byte("a\x01"))
	f.Add([]byte("g\x01\x02ab"))
	f.Fuzz(func(t *testing.T, answer []byte) {
		config := Config{MaxBytes: 1 << 16}.withDefaults()
		if rows, err := decodeRows(answer, config); err == nil && len(rows.Rows)*valueCost > config.MaxBytes {
			t.Errorf("%d rows", len(rows.Rows))
		}
		_, _ = decodeAnswer(answer, config)
	})
}

// FuzzParameters encodes values and decodes them again.
func FuzzParameters(f *testing.F) {
	f.Add(`{"a": [1.5, null, true, "x", {"b": []}]}`)
	f.Fuzz(func(t *testing.T, text string) {
		var params map[string]any
		if json.Unmarshal([]byte(text), &params) != nil || params == nil {
			t.Skip("it is no object in JSON")
		}
		var e encoder
		if e.value(params, 0); e.err != nil {
			return
		}
		d := &decoder{data: e.data, left: 1 << 30}
		if got := d.value(0); d.err != nil || !reflect.DeepEqual(got, any(params)) {
			t.Errorf("%v became %v (%v)", params, got, d.err)
		}
	})
}
