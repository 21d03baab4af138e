// Package usage checks the token counts that servers report, and estimates missing counts.
package usage

import (
	"github.com/rlmhq/rlm/repl/internal/tokens"
	"github.com/rlmhq/rlm/repl/llm"
)

// mostTokens is more than any server handles in one call. A larger number is a mistake or an attack
// on the ledger.
const mostTokens = 1 << 28

// IsPlausible reports whether a single call can have used this much. Some servers report nothing,
// negative numbers, or parts that exceed the total.
func IsPlausible(u llm.Usage) bool {
	for _, n := range []int64{
		u.InputTokens, u.OutputTokens, u.CachedTokens, u.CacheWriteTokens, u.ReasoningTokens,
	} {
		if n < 0 || n > mostTokens {
			return false
		}
	}

	return u.InputTokens > 0 &&
		isPlausibleUSD(u.USD) &&
		u.CachedTokens+u.CacheWriteTokens <= u.InputTokens &&
		u.ReasoningTokens <= u.OutputTokens
}

// mostUSD is more than any call costs.
const mostUSD = 10_000

// isPlausibleUSD reports whether a single call can have cost this much.
func isPlausibleUSD(usd float64) bool { return usd >= 0 && usd <= mostUSD }

// Or returns the usage if it is plausible, or else an estimate from the request and its reply.
func Or(u llm.Usage, r llm.Request, text string) llm.Usage {
	if r.Embed {
		text = "" // vectors have no tokens
	}
	if IsPlausible(u) && (u.OutputTokens > 0 || text == "") {
		return u
	}
	return llm.Usage{
		InputTokens: EstimateInput(r), OutputTokens: tokens.Estimate(text), Estimated: true,
	}
}

// EstimateInput estimates the tokens of a request's prompt.
func EstimateInput(r llm.Request) int64 {
	images, messages := 0, make([]string, len(r.Messages))
	for i, m := range r.Messages {
		messages[i] = m.Content
		images += len(m.Images)
	}
	return tokens.EstimatePrompt(string(r.Schema), images, messages...)
}
