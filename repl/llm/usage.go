package llm

import "github.com/rlmhq/rlm/repl/internal/tokens"

// Usage counts the tokens of one or more calls.
type Usage struct {
	// InputTokens counts the tokens of the prompt, OutputTokens those of the reply. The other
	// counts are parts of these two.
	InputTokens      int64 `json:"input_tokens" yaml:"input_tokens"`
	OutputTokens     int64 `json:"output_tokens" yaml:"output_tokens"`
	CachedTokens     int64 `json:"cached_tokens" yaml:"cached_tokens"`           // read from cache
	CacheWriteTokens int64 `json:"cache_write_tokens" yaml:"cache_write_tokens"` // written to cache
	ReasoningTokens  int64 `json:"reasoning_tokens" yaml:"reasoning_tokens"`     // not in the text
	// USD is the cost of the call that the server reported, in US dollars; 0 if it reported
	// none.
	USD float64 `json:"usd,omitempty" yaml:"usd"`
	// Estimated is true if the server reported no plausible numbers, so that these numbers were
	// derived from the messages and the reply.
	Estimated bool `json:"estimated,omitempty" yaml:"estimated"`
}

// estimateUsage estimates the usage of a call from its messages and its reply.
func estimateUsage(r Request, text string) Usage {
	images, messages := 0, make([]string, len(r.Messages))
	for i, m := range r.Messages {
		messages[i] = m.Content
		images += len(m.Images)
	}

	if r.Embed {
		text = "" // vectors have no tokens
	}
	return Usage{
		InputTokens:  tokens.EstimatePrompt(string(r.Schema), images, messages...),
		OutputTokens: tokens.Estimate(text),
		Estimated:    true,
	}
}
