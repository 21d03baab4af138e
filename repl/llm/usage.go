package llm

import "unicode/utf8"

// Usage counts the tokens of one or more calls.
type Usage struct {
	// InputTokens are those of the prompt, OutputTokens those of the reply. The other
	// counts are parts of these two.
	InputTokens      int64 `json:"input_tokens" yaml:"input_tokens"`
	OutputTokens     int64 `json:"output_tokens" yaml:"output_tokens"`
	CachedTokens     int64 `json:"cached_tokens" yaml:"cached_tokens"`           // read from cache
	CacheWriteTokens int64 `json:"cache_write_tokens" yaml:"cache_write_tokens"` // written to cache
	ReasoningTokens  int64 `json:"reasoning_tokens" yaml:"reasoning_tokens"`     // not shown
	// Estimated is true if the server reported no plausible numbers and these were
	// derived from the texts.
	Estimated bool `json:"estimated,omitempty" yaml:"estimated"`
}

// maxTokens is more than any server handles in one call. A larger number is a mistake,
// or an attack on the ledger.
const maxTokens = 1 << 28

// IsPlausible reports whether one call can have used this. Some servers report nothing,
// negative numbers, or parts that are larger than the whole.
func (u Usage) IsPlausible() bool {
	for _, n := range []int64{
		u.InputTokens, u.OutputTokens, u.CachedTokens, u.CacheWriteTokens, u.ReasoningTokens,
	} {
		if n < 0 || n > maxTokens {
			return false
		}
	}

	return u.InputTokens > 0 &&
		u.CachedTokens+u.CacheWriteTokens <= u.InputTokens &&
		u.ReasoningTokens <= u.OutputTokens
}

// Or returns the usage if it is plausible, and otherwise an estimate for the request
// and the text of its reply.
func (u Usage) Or(r Request, text string) Usage {
	if u.IsPlausible() && (u.OutputTokens > 0 || text == "") {
		return u
	}
	return estimateUsage(r, text)
}

// estimateUsage estimates what a call used from its texts.
func estimateUsage(r Request, text string) Usage {
	return Usage{InputTokens: EstimateInput(r), OutputTokens: EstimateTokens(text), Estimated: true}
}

// messageTokens is what each message costs beside its text, for role and separators.
const messageTokens = 4

// EstimateInput estimates the tokens of a request's prompt.
func EstimateInput(r Request) int64 {
	tokens := EstimateTokens(string(r.Schema))
	for _, m := range r.Messages {
		tokens += messageTokens + EstimateTokens(m.Content)
	}
	return tokens
}

// EstimateTokens estimates the tokens of a text without the model's own tokenizer: one
// for four ASCII characters, one for any other character.
//
// English prose and code come out within a fifth of what common tokenizers count. Other
// scripts come out rather high, which is the safe side for a budget.
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
