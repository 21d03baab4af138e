package gosession

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/rlmhq/rlm/internal/gobuild"
	"github.com/rlmhq/rlm/internal/gohost"
	"github.com/rlmhq/rlm/tiers"
)

// Export returns the session's snippets. One that has given something else when it
// ran again will do so in the other tier, too.
func (s *Session) Export(python int) (tiers.State, error) {
	state := tiers.State{Language: tiers.Go, Format: tiers.FormatReplay, From: s.options.Tier, Snippet: s.snippet}
	if python > 0 {
		state.Left = append(state.Left, tiers.Left{Name: "*", Type: string(tiers.Python), Reason: "the session's Python variables are of another language"})
	}
	snippets := []gohost.Snippet{}
	for _, p := range s.history {
		snippets = append(snippets, gohost.Snippet{Source: p.Source, Calls: p.journal})
		if p.changed {
			state.Left = append(state.Left, tiers.Left{
				Name: fmt.Sprintf("snippet %d", p.ordinal), Type: string(tiers.Go), Reason: "it gave something else when it ran again",
			})
		}
	}
	var err error
	state.Data, err = json.Marshal(snippets)
	return state, err
}

// Importable reports whether a state is a Go session's.
func Importable(state tiers.State) bool {
	return state.Format == tiers.FormatReplay && state.Language == tiers.Go
}

// Import goes on with a Go session of another tier, in a sandbox that has run
// nothing yet.
func (s *Session) Import(ctx context.Context, state tiers.State, python int) (tiers.Report, error) {
	if python > 0 || s.runs > 0 {
		return tiers.Report{}, fmt.Errorf("cannot import a state after %d snippets", python+s.runs)
	}
	report, err := s.load(ctx, state)
	if err == nil {
		s.runs = max(1, state.Snippet)
	}
	return report, err
}

// load runs the snippets of a state, with the answers that they got.
func (s *Session) load(ctx context.Context, state tiers.State) (tiers.Report, error) {
	snippets, err := gohost.DecodeState(state.Data)
	if err != nil {
		return tiers.Report{}, s.rejects(state, "the state cannot be read: "+err.Error())
	}
	if err := s.prepare(ctx); err != nil {
		return tiers.Report{}, err
	}
	if len(snippets) == 0 {
		return tiers.Report{Left: state.Left}, nil
	}
	var sources []string
	for _, snippet := range snippets {
		sources = append(sources, snippet.Source)
	}
	program, refs, err := s.build(ctx, sources...)
	var failure *gobuild.CompileError
	if errors.As(err, &failure) {
		return tiers.Report{}, s.rejects(state, "its snippets do not compile here: "+failure.Message)
	}
	if err != nil {
		return tiers.Report{}, s.broken(tiers.EffectsNeverRan, nil, err)
	}
	defer program.Close()
	for i, snippet := range snippets {
		s.history = append(s.history, past{
			Snippet: gobuild.Snippet{Source: snippet.Source, Refs: refs[i]}, ordinal: i + 1,
			journal: append([]gohost.Answered{}, snippet.Calls...), took: s.host.Config.Limits.Wall,
		})
	}
	lost, err := s.replay(ctx, program)
	if err != nil || lost != nil {
		s.history = nil
		if ctx.Err() != nil {
			return tiers.Report{}, s.broken(tiers.EffectsNeverRan, nil, context.Cause(ctx))
		}
		return tiers.Report{}, s.rejects(state, "its snippets do something else here")
	}
	s.snippet = state.Snippet
	return tiers.Report{Moved: len(snippets), Left: state.Left}, nil
}

func (s *Session) rejects(state tiers.State, why string) error {
	return &tiers.RejectedError{
		Tier: s.options.Tier, Missing: "state " + state.Format, Effects: tiers.EffectsNeverRan,
		Reason: fmt.Sprintf("it cannot go on with a session of tier %s: %s", state.From, why),
	}
}
