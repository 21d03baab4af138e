package hostcall

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"
)

// countDecoded counts the values of decoded JSON down to a depth.
func countDecoded(v any, depth int) int {
	n := 1
	if depth == 0 {
		return n
	}
	switch v := v.(type) {
	case []any:
		for _, element := range v {
			n += countDecoded(element, depth-1)
		}
	case map[string]any:
		for _, element := range v {
			n += countDecoded(element, depth-1)
		}
	}
	return n
}

func TestValuesAreCountedDownToADepth(t *testing.T) {
	for text, want := range map[string][3]int{
		`1`:                        {1, 1, 1},
		`"[,\"{,"`:                 {1, 1, 1},
		`"\\",[`:                   {2, 3, 3},
		`[1,2,3]`:                  {1, 4, 4},
		`[[],[],[]]`:               {1, 4, 7},
		`{"a,":{"b":[1,2]},"c":0}`: {1, 3, 4},
	} {
		t.Run(text, func(t *testing.T) {
			for depth, n := range want {
				if got := CountValues([]byte(text), depth); got < n || got > n+3 {
					t.Errorf("%s to depth %d: %d, want about %d", text, depth, got, n)
				}
			}
		})
	}
}

// FuzzCountValues compares the count with the decoder's result.
func FuzzCountValues(f *testing.F) {
	f.Add(`{"a":[1,"x,\"[",{}],"b":[[],[]]}`, 2)
	f.Add(strings.Repeat(`[`, 50)+strings.Repeat(`]`, 50), 3)
	f.Add(`"\\\\\\"`, 1)
	f.Fuzz(func(t *testing.T, text string, depth int) {
		n := CountValues([]byte(text), depth)
		if weight := Weigh([]byte(text)); weight < len(text) || weight > (len(text)+1)*(valueCost+objectCost+2) {
			t.Errorf("%q weighs %d", text, weight)
		}

		var v any
		if depth < 0 || depth > 1000 || json.Unmarshal([]byte(text), &v) != nil {
			return
		}
		if made := countDecoded(v, depth); n < made {
			t.Errorf("%q to depth %d: counted %d, decoded %d", text, depth, n, made)
		}
	})
}

// TestTheWeightCoversWhatADecoderTakes checks, for lists of different elements, that the weight is
// at least the memory of the decoded list.
func TestTheWeightCoversWhatADecoderTakes(t *testing.T) {
	const n = 50_000
	for _, element := range []string{
		`0`, `""`, `[]`, `[0]`, `{}`, `{"":0}`, `{"a":{"":0}}`,
		`{"a":1,"b":2,"c":3,"d":4,"e":5,"f":6,"g":7,"h":8,"i":9}`,
	} {
		t.Run(element, func(t *testing.T) {
			text := []byte("[" + strings.Repeat(element+",", n) + element + "]")
			var before, after runtime.MemStats
			var decoded any
			runtime.GC()
			runtime.ReadMemStats(&before)
			if err := json.Unmarshal(text, &decoded); err != nil {
				t.Fatal(err)
			}
			runtime.GC()
			runtime.ReadMemStats(&after)

			taken := int(after.HeapAlloc) - int(before.HeapAlloc)
			if weight := Weigh(text); weight < taken {
				t.Errorf("%s: weighs %d, takes %d", element, weight/n, taken/n)
			}
			runtime.KeepAlive(decoded)
		})
	}
}

func BenchmarkWeigh(b *testing.B) {
	data := []byte("[" + strings.Repeat(`"a word, or two",[1,2],`, 1<<16) + "0]")
	b.SetBytes(int64(len(data)))
	for b.Loop() {
		Weigh(data)
	}
}
