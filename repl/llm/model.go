package llm

// Model is a resolved name: the provider to call, its name for the model, and the known facts about
// the model.
type Model struct {
	Name     string // the full name: "openai/gpt-5"
	ID       string // the provider's name for the model: "gpt-5"; the value for Request.Model
	Provider Provider
	Facts    Facts
}

// Facts are properties of a model, from the settings, the server or the price table. An unknown
// price is nil, which does not mean free; other unknown facts are 0.
type Facts struct {
	Price     *Price `json:"price,omitempty"`
	Window    int64  `json:"window,omitempty"`     // tokens of prompt and reply together
	MaxOutput int64  `json:"max_output,omitempty"` // tokens of a reply
	// Unlisted reports that the model is missing from the server's list of models. It may
	// nevertheless be usable.
	Unlisted bool `json:"unlisted,omitempty"`
	// Local reports that the model runs on a machine of the user. If no source has a price, the
	// registry then assumes a price of 0.
	Local bool `json:"local,omitempty"`
}

// Price is the price of tokens, in US dollars per million.
type Price struct {
	Input      float64
	Output     float64
	Cached     *float64 // input read from a cache; Input if nil
	CacheWrite *float64 // input written to a cache; Input if nil
	// Long is the price of a whole call with more than Above input tokens, or nil.
	Above int64
	Long  *Price
}

// Cost returns the cost of a usage in US dollars, or false if it is unknown. A cost that the
// server reports takes precedence over the price.
func (f Facts) Cost(u Usage) (usd float64, known bool) {
	switch {
	case u.USD > 0:
		return u.USD, true
	case f.Price == nil:
		return 0, false
	}

	if f.Price.Long != nil && u.InputTokens > f.Price.Above {
		return f.Price.Long.apply(u), true
	}
	return f.Price.apply(u), true
}

// apply returns the cost of a usage. Each part of the input has its own price.
func (p Price) apply(u Usage) float64 {
	plain := max(0, u.InputTokens-u.CachedTokens-u.CacheWriteTokens)
	return (float64(plain)*p.Input +
		float64(u.CachedTokens)*valueOr(p.Cached, p.Input) +
		float64(u.CacheWriteTokens)*valueOr(p.CacheWrite, p.Input) +
		float64(u.OutputTokens)*p.Output) / 1e6
}

// valueOr returns the number, or the fallback if it is nil.
func valueOr(number *float64, fallback float64) float64 {
	if number == nil {
		return fallback
	}
	return *number
}
