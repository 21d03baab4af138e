package gate

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"testing"
)

// weigh returns a scale's result for JSON that arrives in parts of the given size.
func weigh(text string, size int) int64 {
	var s scale
	for len(text) > 0 {
		n := min(size, len(text))
		s.add([]byte(text[:n]))
		text = text[n:]
	}
	return s.weight
}

func TestTextsWeighNothingBesideTheirBytes(t *testing.T) {
	for text, want := range map[string]int64{
		`"[,{\"[,{"`:                        0,
		`"\\",0`:                            valueCost,
		`"\\\",0"`:                          0,
		`[1,2]`:                             2*valueCost + listCost,
		`{"a,[":"b\\",0}`:                   2*valueCost + listCost,
		`"` + strings.Repeat(`\`, 7) + `",`: 0, // the text continues
		`"` + strings.Repeat(`\`, 8) + `",`: valueCost,
	} {
		t.Run(fmt.Sprintf("%.60s", text), func(t *testing.T) {
			for size := 1; size <= len(text); size++ {
				if got := weigh(text, size); got != want {
					t.Errorf("%s in parts of %d bytes weighs %d, not %d", text, size, got, want)
				}
			}
		})
	}
}

// message is as large as the structs of OpenAI's wire.
type message struct {
	A, B, C, D, E, F, G, H string
	I                      *message
	J                      []message
}

// TestTheWeightCoversWhatADecoderTakes checks, for lists that are decoded as values and as structs,
// that the weight is at least the memory of the decoded list.
func TestTheWeightCoversWhatADecoderTakes(t *testing.T) {
	const n = 20_000
	for _, element := range []string{
		`0`, `""`, `[]`, `[0]`, `{}`, `{"":0}`, `{"A":"a"}`, `{"a":{"":0}}`, `{"J":[{}]}`, `{"I":{"I":{}}}`,
	} {
		t.Run(element, func(t *testing.T) {
			text := "[" + strings.Repeat(element+",", n) + element + "]"
			var values any
			var structs []message
			for _, into := range []any{&values, &structs} {
				var before, after runtime.MemStats
				runtime.GC()
				runtime.ReadMemStats(&before)
				err := json.Unmarshal([]byte(text), into)
				runtime.GC()
				runtime.ReadMemStats(&after)
				taken := int64(after.HeapAlloc) - int64(before.HeapAlloc)
				if weight := weigh(text, 4096) + int64(len(text)); err == nil && weight < taken {
					t.Errorf("%s as %T: weighs %d, takes %d", element, into, weight/n, taken/n)
				}
				runtime.KeepAlive(into)
			}
		})
	}
}

// FuzzScale checks that the size of the parts does not change the weight, and compares the number
// of values with a decoder's.
func FuzzScale(f *testing.F) {
	f.Add(`{"a":[1,"x,\"[",{}],"b":[[],[]]}`, 1)
	f.Add(`"\\\\\\"`, 2)
	f.Add(`[[[["`, 3)
	f.Fuzz(func(t *testing.T, text string, size int) {
		if size < 1 {
			size = 1
		}
		whole := weigh(text, len(text)+1)
		if got := weigh(text, size); got != whole {
			t.Errorf("%q weighs %d, and %d in parts of %d bytes", text, whole, got, size)
		}

		var v any
		if json.Unmarshal([]byte(text), &v) == nil && whole < valueCost*(count(v)-1) {
			t.Errorf("%q weighs %d, and has %d values", text, whole, count(v))
		}
	})
}

// count returns the number of values in a decoded value. A repeated name counts once.
func count(v any) (n int64) {
	n = 1
	switch v := v.(type) {
	case []any:
		for _, element := range v {
			n += count(element)
		}
	case map[string]any:
		for _, element := range v {
			n += count(element)
		}
	}
	return n
}

func BenchmarkScale(b *testing.B) {
	data := []byte("[" + strings.Repeat(`"a word, or two",[1,2],`, 1<<16) + "0]")
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		var s scale
		s.add(data)
	}
}
