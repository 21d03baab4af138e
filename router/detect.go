package router

import (
	"context"
	"maps"
	"slices"

	"github.com/rlmhq/rlm/tiers"
)

// Detect returns the language of a snippet. It is Python, unless the snippet is invalid
// Python, valid in another language, and has what only that language has.
func Detect(
	ctx context.Context, analysers map[tiers.Language]Analyser, source string,
) tiers.Language {
	if python := analysers[tiers.Python]; python != nil {
		v, err := python.Analyse(ctx, source)
		if err != nil || v.Invalid == nil {
			return tiers.Python
		}
	}

	for _, language := range slices.Sorted(maps.Keys(analysers)) {
		if language == tiers.Python {
			continue
		}
		v, err := analysers[language].Analyse(ctx, source)
		if err == nil && v.Needs != nil && v.Needs.Telling {
			return language
		}
	}
	return tiers.Python
}
