package prices_test

import (
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/internal/kind"
	"github.com/rlmhq/rlm/repl/llm/internal/prices"
)

func TestPricesAreLookedUpByPattern(t *testing.T) {
	// The values are the US dollars for a million input tokens, a quarter of them cached, and a
	// million output tokens.
	for name, want := range map[string]float64{
		"anthropic/claude-sonnet-4-5-20250929": 0.75*3 + 0.25*0.3 + 15,
		"anthropic/claude-opus-5-5":            0.75*4 + 0.25*0.2 + 20,
		"openai/gpt-4.1":                       0.75*2 + 0.25*0.5 + 8,
		"openai/gpt-6-sol":                     0.75*4 + 0.25*0.4 + 15, // the rate for long prompts
		"openai/gpt-4o-mini":                   0.75*0.15 + 0.25*0.075 + 0.6,
	} {
		t.Run(name, func(t *testing.T) {
			used := llm.Usage{InputTokens: 1e6, OutputTokens: 1e6, CachedTokens: 250_000}
			usd, known := prices.Default().Lookup(name).Cost(used)
			if !known || math.Abs(usd-want) > 1e-9 {
				t.Errorf("%s costs %v (known: %v), want %v", name, usd, known, want)
			}
		})
	}
}

func TestAnUnknownPriceIsNotZero(t *testing.T) {
	for _, name := range []string{
		"openai/gpt-9", "openai/gpt-5.9", "anthropic/claude-opus-5-9",
		"vllm/x", "openrouter/x/y", "",
	} {
		t.Run(name, func(t *testing.T) {
			facts := prices.Default().Lookup(name)
			if usd, known := facts.Cost(llm.Usage{InputTokens: 1}); known || facts.Price != nil {
				t.Errorf("%s costs %v", name, usd)
			}
		})
	}
}

func TestPartsOfTheInputArePricedApart(t *testing.T) {
	table, err := prices.Parse(strings.NewReader(`
version: 1
models:
  - {match: "a/*b*c", input: 10, output: 20, cached: 1, cache_write: 12}
  - {match: "a/plain", input: 10, output: 20}
  - {match: "a/*", window: 1000}
  - {match: "a/*b*c", window: 7, max_output: 5}
`))
	if err != nil {
		t.Fatal(err)
	}
	used := llm.Usage{InputTokens: 1e6, CachedTokens: 5e5, CacheWriteTokens: 25e4}
	if usd, _ := table.Lookup("a/xbyc").Cost(used); math.Abs(usd-(2.5+0.5+3)) > 1e-9 {
		t.Errorf("it costs %v", usd)
	}
	if usd, _ := table.Lookup("a/plain").Cost(used); math.Abs(usd-10) > 1e-9 {
		t.Errorf("it costs %v", usd)
	}
	if facts := table.Lookup("a/xbyc"); facts.Window != 1000 || facts.MaxOutput != 5 {
		t.Errorf("got %+v", facts)
	}
	if facts := table.Lookup("a/bd"); facts.Price != nil || facts.Window != 1000 {
		t.Errorf("got %+v", facts)
	}
}

func TestBadPriceTablesAreRefused(t *testing.T) {
	for name, text := range map[string]string{
		"empty": "", "no version": "models: []", "other version": "version: 2", "list": "[1]",
		"unknown field": "version: 1\nmodels: [{match: a, imput: 3, output: 1}]",
		"twice":         "version: 1\nversion: 1",
		"no match":      "version: 1\nmodels: [{input: 3, output: 1}]",
		"half":          "version: 1\nmodels: [{match: a, input: 3}]",
		"special only":  "version: 1\nmodels: [{match: a, cached: 3}]",
		"negative":      "version: 1\nmodels: [{match: a, input: -3, output: 1}]",
		"not a number":  "version: 1\nmodels: [{match: a, input: .nan, output: 1}]",
		"infinite":      "version: 1\nmodels: [{match: a, input: .inf, output: 1}]",
		"long, no from": "version: 1\n" +
			"models: [{match: a, input: 3, output: 1, long: {input: 1, output: 1}}]",
		"long, wrong": "version: 1\n" +
			"models: [{match: a, input: 3, output: 1, long: {above: 5, input: 1, output: -1}}]",
		"window":      "version: 1\nmodels: [{match: a, window: -1}]",
		"huge window": "version: 1\nmodels: [{match: a, window: 9223372036854775807}]",
		"too large":   "version: 1\n#" + strings.Repeat("x", 1<<20),
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := prices.Parse(strings.NewReader(text)); !errors.Is(err, kind.ErrBadFile) {
				t.Errorf("%s: got %v", name, err)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	f.Add("version: 1\n" +
		"models: [{match: '*a*', input: 1, output: 1, long: {above: 5, input: 1, output: 1}}]")
	f.Add("version: 1\nmodels:\n  - {match: openai/gpt-5, input: 1.25, cached: 0.1, " +
		"cache_write: 2, output: 10, window: 5, max_output: 6}")
	f.Add("a: &a [*a]")
	f.Fuzz(func(t *testing.T, text string) {
		table, err := prices.Parse(strings.NewReader(text))
		if err != nil {
			if !errors.Is(err, kind.ErrBadFile) {
				t.Errorf("got %v", err)
			}
			return
		}

		used := llm.Usage{InputTokens: 1e9, OutputTokens: 1e9}
		usd, known := table.Lookup("openai/gpt-5").Cost(used)
		if known && (usd < 0 || math.IsNaN(usd) || math.IsInf(usd, 0)) {
			t.Errorf("a call costs %v", usd)
		}
	})
}
