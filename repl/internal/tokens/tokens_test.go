package tokens_test

import (
	"strings"
	"testing"

	"github.com/rlmhq/rlm/repl/internal/tokens"
)

func TestTokensAreEstimatedForEveryScript(t *testing.T) {
	for text, want := range map[string]int64{
		"": 0, "abcd": 1, "abcde": 2, "狐狸": 2, "ab狐": 2,
		"\xff\xff": 2,
	} {
		t.Run(text, func(t *testing.T) {
			if got := tokens.Estimate(text); got != want {
				t.Errorf("%q: %d tokens, want %d", text, got, want)
			}
		})
	}
}

func BenchmarkEstimate(b *testing.B) {
	text := strings.Repeat("The quick brown fox 狐狸. ", 4000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		tokens.Estimate(text)
	}
}
