// Package snippets runs the snippets that clients of a server send.
package snippets

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/internal/plan/results"
	"github.com/rlmhq/rlm/internal/snippet/wirevalue"
	"github.com/rlmhq/rlm/tiers"
)

// MaxInline is the maximum size of a file whose content is part of an answer, in bytes.
const MaxInline = 8 << 20

// Reasons why a snippet did not begin.
var (
	ErrLanguage  = errors.New("unknown language: give python, go or none")
	ErrVariables = errors.New("cannot set the variables")
)

// Snippet is a snippet sent by a client.
type Snippet struct {
	Source string
	// Language is the language of the source. If it is empty, the engine detects it.
	Language tiers.Language
	// Variables are set before the snippet runs. Their values have the format of package wirevalue.
	Variables map[string]jsontext.Value
	// Stdout and Stderr, if set, receive the output as it is written.
	Stdout, Stderr io.Writer
}

// Run runs the snippet in a session, and describes how it ended, with its artefacts.
func (s *Snippet) Run(ctx context.Context, engine *rlm.Engine, session *rlm.Session) (*results.Result, error) {
	language := s.Language
	switch language {
	case "":
		language = engine.Detect(ctx, s.Source)
	case tiers.Python, tiers.Go:
	default:
		return nil, fmt.Errorf("%.40q: %w", language, ErrLanguage)
	}

	for _, name := range slices.Sorted(maps.Keys(s.Variables)) {
		if err := session.Set(ctx, name, wirevalue.Value(s.Variables[name])); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrVariables, err)
		}
	}

	job := tiers.Job{Language: language, Source: s.Source, Stdout: s.Stdout, Stderr: s.Stderr}
	ran, err := session.RunJob(ctx, job)
	if err != nil {
		return nil, err
	}
	result := results.Describe(ran)
	for _, one := range ran.Artefacts {
		result.Files = append(result.Files, results.DescribeFile(one.Name, one.Type, one.Data, MaxInline))
	}
	return result, nil
}
