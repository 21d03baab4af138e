package calls

import (
	"fmt"
	"testing"
)

func TestTheWindowIsReadFromTheWordsOfServers(t *testing.T) {
	for words, want := range map[string]int64{
		"This model's maximum context length is 4097 tokens. However, you requested 4120 tokens": 4097,
		"This endpoint's maximum context length is 16384 tokens. However, you requested 94307":   16384,
		"This model's maximum context length is 131,072 tokens.":                                 131072,
		"The decoder prompt (length 9000) is longer than the maximum model length of 8192.":      8192,
		"You passed 8193 input tokens and requested 512 output tokens. However, the model's context " +
			"length is only 8192 tokens, resulting in a maximum input length of 7680 tokens.": 8192,
		"request (9031 tokens) exceeds the available context size (2048 tokens), try increasing it":          2048,
		"prompt is too long: 215000 tokens > 200000 maximum":                                                 200000,
		"input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease max_tokens":   200000,
		"The input token count (2000000) exceeds the maximum number of tokens allowed (1048576).":            1048576,
		"the model is loaded with context length of only 4096 tokens, which is not enough":                   4096,
		"the input length exceeds the context length":                                                        0,
		"Your input exceeds the context window of this model. Please adjust your input and try again. 2 > 1": 0,
		"context length is 7 tokens": 0, "context length is 99999999999999999999": 0, "": 0,
	} {
		t.Run(fmt.Sprintf("%.60s", words), func(t *testing.T) {
			if got := readWindow(words); got != want {
				t.Errorf("%s: got %d, want %d", words, got, want)
			}
		})
	}
}

func FuzzReadWindow(f *testing.F) {
	f.Add("This model's maximum context length is 4,097 tokens.")
	f.Add("> 200000")
	f.Fuzz(func(t *testing.T, words string) {
		if n := readWindow(words); n != 0 && n < leastWindow {
			t.Errorf("%q: got %d", words, n)
		}
	})
}
