package rlm

import (
	"context"

	"github.com/rlmhq/rlm/tiers"
)

// Detect returns the language of a snippet: Python, unless the snippet is invalid Python and valid
// Go, and contains syntax that only Go has.
func (e *Engine) Detect(ctx context.Context, source string) tiers.Language {
	v, err := e.analyser.Analyse(ctx, source)
	if err != nil || v.Invalid == nil {
		return tiers.Python
	}

	v, err = e.analysers[tiers.Go].Analyse(ctx, source)
	if err == nil && v.Needs != nil && v.Needs.Telling {
		return tiers.Go
	}
	return tiers.Python
}
