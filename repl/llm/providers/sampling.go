package providers

import (
	"cmp"
	"context"
	"fmt"

	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/llm/internal/chat"
	"github.com/rlmhq/rlm/repl/llm/internal/kind"
)

// checkSampling returns an error of the kind "bad configuration" if no server could accept the
// sampling at some depth.
func checkSampling(byDepth []llm.Sampling) error {
	for depth, s := range byDepth {
		err := findMistake(s)
		if err != nil {
			return &llm.Error{
				Kind: kind.ErrMisconfigured, Provider: "sampling",
				Err: fmt.Errorf("depth %d: %w", depth, err),
			}
		}
	}
	return nil
}

// findMistake returns the first mistake in a sampling.
func findMistake(s llm.Sampling) error {
	if t := s.Temperature; t != nil && !(*t >= 0 && *t <= 2) {
		return fmt.Errorf("cannot use temperature %g: give a number from 0 to 2", *t)
	}
	if p := s.TopP; p != nil && !(*p > 0 && *p <= 1) {
		return fmt.Errorf("cannot use top_p %g: give a number above 0 and at most 1", *p)
	}
	if s.ExtraBody != nil {
		return chat.CheckExtra(s.ExtraBody)
	}
	return nil
}

// sampled is a provider whose requests use the sampling of their depth.
type sampled struct {
	llm.Provider
	byDepth []llm.Sampling
}

// Complete implements [llm.Provider].
func (s sampled) Complete(
	ctx context.Context, r llm.Request, stream func(string),
) (llm.Response, error) {
	own, general := r.Sampling, s.at(r.Metadata)
	r.Sampling = llm.Sampling{
		Temperature:     cmp.Or(own.Temperature, general.Temperature),
		TopP:            cmp.Or(own.TopP, general.TopP),
		Seed:            cmp.Or(own.Seed, general.Seed),
		ReasoningEffort: cmp.Or(own.ReasoningEffort, general.ReasoningEffort),
		ExtraBody:       own.ExtraBody,
	}
	if own.ExtraBody == nil {
		r.ExtraBody = general.ExtraBody
	}
	return s.Provider.Complete(ctx, r, stream)
}

// at returns the sampling for a part of a run. The calls of a loop's snippets, its leaves, are
// one level deeper than the loop.
func (s sampled) at(m llm.Metadata) llm.Sampling {
	depth := m.Depth
	if m.Purpose == "leaf" {
		depth++
	}
	return s.byDepth[max(0, min(depth, len(s.byDepth)-1))]
}

// Check asks the provider: see [llm.Check].
func (s sampled) Check(ctx context.Context, model string) error {
	return llm.Check(ctx, s.Provider, model)
}
