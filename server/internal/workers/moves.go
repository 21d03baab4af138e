//go:build linux && (amd64 || arm64)

package workers

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/rlmhq/rlm/internal/snippet/session"
	"github.com/rlmhq/rlm/tiers"
)

// maxMoved is the maximum size of a state that moves to another tier, in bytes.
const maxMoved = 1 << 30

// Export returns the state of the whole namespace.
func (s *sandbox) Export(ctx context.Context) (tiers.State, error) {
	leave, err := s.enter()
	if err != nil {
		return tiers.State{}, err
	}
	defer leave()
	if err := s.revive(ctx); err != nil {
		return tiers.State{}, err
	}

	state, err := s.export(ctx, maxMoved)
	if s.lost != nil {
		state.Left = append(state.Left, session.LeftOf(s.lost))
	}
	return state, err
}

// Import loads a state into a sandbox that has not run a snippet yet.
func (s *sandbox) Import(ctx context.Context, state tiers.State) (tiers.Report, error) {
	leave, err := s.enter()
	if err != nil {
		return tiers.Report{}, err
	}
	defer leave()
	if err := s.revive(ctx); err != nil {
		return tiers.Report{}, err
	}

	report, err := s.importInto(ctx, s.worker, s.id, state, nil)
	if err != nil {
		return report, err
	}
	kept, err := keepState(state)
	if err != nil {
		return report, err
	}
	s.ordinal = state.Snippet
	s.keep(kept)
	return report, nil
}

// errMisfit means that a worker cannot use the pages of a session.
var errMisfit = errors.New("the pages of the session do not fit")

// importInto loads a state into a sandbox of a worker, with its pages if it has any.
func (s *sandbox) importInto(
	ctx context.Context, w *worker, id int64, state tiers.State, pages *os.File,
) (tiers.Report, error) {
	data, err := w.sendBytes(state.Data)
	if err != nil {
		return tiers.Report{}, err
	}
	p := stateParams{
		ofSession: ofSession{id}, Language: state.Language, Format: state.Format, From: state.From,
		Snippet: state.Snippet, Left: state.Left, Bytes: int64(len(state.Data)), Data: data,
	}
	if pages != nil {
		if p.Pages, err = w.send(pages); err != nil {
			return tiers.Report{}, err
		}
	}

	var r reportResult
	if err := w.call(ctx, methodImport, p, &r); err != nil {
		return tiers.Report{}, err
	}
	switch {
	case r.Moved < 0 || len(r.Left) > maxLost:
		return tiers.Report{}, errors.New("the report on the variables is not one")
	case pages != nil && !r.Exact:
		return tiers.Report{}, fmt.Errorf("%w: %.200s", errMisfit, r.Inexact)
	}
	return tiers.Report{Moved: r.Moved, Left: r.Left}, nil
}
