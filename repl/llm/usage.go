package llm

import (
	"math"
	"unicode/utf8"
)

// Usage is what calls used, in tokens.
type Usage struct {
	InputTokens      int64 `json:"input_tokens" yaml:"input_tokens"`             // the prompt, cached parts included
	OutputTokens     int64 `json:"output_tokens" yaml:"output_tokens"`           // the reply, reasoning included
	CachedTokens     int64 `json:"cached_tokens" yaml:"cached_tokens"`           // of the input, read from a cache
	CacheWriteTokens int64 `json:"cache_write_tokens" yaml:"cache_write_tokens"` // of the input, written to a cache
	ReasoningTokens  int64 `json:"reasoning_tokens" yaml:"reasoning_tokens"`     // of the output, not shown
	// Estimated is set if the server gave no numbers that can be true, and
	// these were guessed from the texts.
	Estimated bool `json:"estimated,omitempty" yaml:"estimated"`
}

// Add returns the sum of two usages, which is estimated if one of them is. A
// sum beyond the range of int64 stays at its end.
func (u Usage) Add(o Usage) Usage {
	return Usage{
		InputTokens:      addTokens(u.InputTokens, o.InputTokens),
		OutputTokens:     addTokens(u.OutputTokens, o.OutputTokens),
		CachedTokens:     addTokens(u.CachedTokens, o.CachedTokens),
		CacheWriteTokens: addTokens(u.CacheWriteTokens, o.CacheWriteTokens),
		ReasoningTokens:  addTokens(u.ReasoningTokens, o.ReasoningTokens),
		Estimated:        u.Estimated || o.Estimated,
	}
}

// addTokens adds without overflow.
func addTokens(a, b int64) int64 {
	if a > 0 && b > math.MaxInt64-a {
		return math.MaxInt64
	}
	return a + b
}

// maxTokens is more than any server handles in one call. A number above it is
// a mistake or an attack on the ledger.
const maxTokens = 1 << 28

// Plausible reports whether one call can have used this. Servers have been seen
// to report nothing, negative numbers, and parts larger than the whole.
func (u Usage) Plausible() bool {
	for _, n := range []int64{u.InputTokens, u.OutputTokens, u.CachedTokens, u.CacheWriteTokens, u.ReasoningTokens} {
		if n < 0 || n > maxTokens {
			return false
		}
	}
	return u.InputTokens > 0 && u.CachedTokens+u.CacheWriteTokens <= u.InputTokens && u.ReasoningTokens <= u.OutputTokens
}

// Or returns the usage if it is plausible, else the estimate for the request
// and the reply's text.
func (u Usage) Or(r Request, text string) Usage {
	if u.Plausible() && (u.OutputTokens > 0 || text == "") {
		return u
	}
	return EstimateUsage(r, text)
}

// messageTokens is what a message costs beside its text, for role and borders.
const messageTokens = 4

// EstimateUsage guesses what a call used from its texts.
func EstimateUsage(r Request, text string) Usage {
	return Usage{InputTokens: EstimateInput(r), OutputTokens: EstimateTokens(text), Estimated: true}
}

// EstimateInput guesses how many tokens a request's prompt has.
func EstimateInput(r Request) int64 {
	tokens := EstimateTokens(string(r.Schema))
	for _, m := range r.Messages {
		tokens += messageTokens + EstimateTokens(m.Content)
	}
	return tokens
}

// EstimateTokens guesses how many tokens a text has without the model's own
// tokenizer: four ASCII characters are a token, any other character is one.
// For English prose and code that is within a fifth of what the common
// tokenizers give; for other scripts it is rather too much than too little,
// which is the safe side for a budget.
func EstimateTokens(text string) int64 {
	ascii := 0
	for i := range len(text) {
		if text[i] < utf8.RuneSelf {
			ascii++
		}
	}
	other := 0
	if ascii < len(text) {
		other = utf8.RuneCountInString(text) - ascii
	}
	return int64((ascii+3)/4 + other)
}
