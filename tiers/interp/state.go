package interp

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/rlmhq/rlm/internal/gohost"
	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/interp/internal/wire"
)

// Export returns the session's snippets of the language that it used last. What
// read a clock or random numbers is in Left: it gives something else when it is
// run again.
func (s *sandbox) Export(context.Context) (tiers.State, error) {
	if s.closed {
		return tiers.State{}, errClosed
	}
	state := tiers.State{Language: tiers.Python, Format: tiers.FormatReplay, From: Name, Snippet: s.snippet}
	if n := len(s.history); n > 0 {
		state.Language = tiers.Language(s.history[n-1].run.Language)
	}
	snippets := []gohost.Snippet{}
	for _, p := range s.history {
		switch {
		case p.run.Language != string(state.Language):
			state.Left = append(state.Left, tiers.Left{
				Name: fmt.Sprintf("snippet %d", p.ordinal), Type: p.run.Language, Reason: "it is of another language",
			})
			continue
		case p.impure != "":
			state.Left = append(state.Left, tiers.Left{
				Name: fmt.Sprintf("snippet %d", p.ordinal), Type: p.run.Language,
				Reason: "it ran again and may have given something else: " + p.impure,
			})
		}
		snippets = append(snippets, gohost.Snippet{Source: p.run.Source, Calls: p.journal})
	}
	var err error
	state.Data, err = json.Marshal(snippets)
	return state, err
}

// Import runs the snippets of a state of this format.
func (s *sandbox) Import(ctx context.Context, state tiers.State) (tiers.Report, error) {
	switch {
	case s.closed:
		return tiers.Report{}, errClosed
	case s.snippet > 0 || len(s.history) > 0:
		return tiers.Report{}, fmt.Errorf("cannot import a state after %d snippets", s.snippet)
	case state.Format != tiers.FormatReplay || state.From != Name ||
		state.Language != tiers.Python && state.Language != tiers.Go:
		return tiers.Report{}, reject("state "+state.Format, "it cannot read a state of format %q from %q", state.Format, state.From)
	}
	snippets, err := gohost.DecodeState(state.Data)
	if err != nil {
		return tiers.Report{}, reject("state "+state.Format, "the state cannot be read: %v", err)
	}
	for i, snippet := range snippets {
		t := s.turn()
		run := wire.Run{Language: string(state.Language), Source: snippet.Source}
		e := s.play(ctx, t, run, append([]gohost.Answered{}, snippet.Calls...))
		if e.end == nil || e.end.Verdict != wire.OK && e.end.Verdict != wire.Raised || t.calls.Strayed() {
			s.history = nil
			if err := s.renew(context.WithoutCancel(ctx)); err != nil {
				return tiers.Report{}, broken(tiers.EffectsUnknown, nil, err)
			}
			return tiers.Report{}, reject("state "+state.Format, "snippet %d of %d of the state does not run here", i+1, len(snippets))
		}
		s.history = append(s.history, t.past(i+1, run, e.end))
	}
	s.snippet = state.Snippet
	return tiers.Report{Moved: len(snippets), Left: state.Left}, nil
}
