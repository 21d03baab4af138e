package rlm

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/rlmhq/rlm/internal/keep/snapshot"
	"github.com/rlmhq/rlm/internal/snippet/session"
	"github.com/rlmhq/rlm/tiers"
)

// Snapshot writes the session's variables, and Python's files below /out, for [Session.Restore] in
// another session of this or a later process. It omits contexts and functions, so open the other
// session with the same ones. A placeholder replaces each value that cannot be written, and raises
// an explanatory exception when a snippet uses it. In tier wasm, the snapshot also contains the
// memory of the interpreter, with every value.
func (s *Session) Snapshot(ctx context.Context, w io.Writer) error {
	header, data, err := s.export(ctx)
	if err != nil {
		return err
	}

	// The session is free again, so a slow writer does not block it.
	if err := snapshot.Write(w, header, data); err != nil {
		return fmt.Errorf("cannot write the snapshot: %w", err)
	}
	return nil
}

// export returns the header of a snapshot and the data of each namespace.
func (s *Session) export(ctx context.Context) (*snapshot.Header, []snapshot.Data, error) {
	ctx, leave, err := s.enter(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer leave()

	header := &snapshot.Header{
		Contexts:   describeContexts(s.allInputs()),
		Namespaces: []snapshot.Namespace{},
	}
	var data []snapshot.Data
	for _, language := range snapshot.Languages {
		if s.runner.Home(language) == "" {
			continue
		}
		state, err := s.runner.ExportExact(ctx, language)
		if err != nil {
			return nil, nil, fmt.Errorf("cannot take a snapshot: %w", err)
		}
		header.Namespaces = append(header.Namespaces, snapshot.Namespace{
			Language: language, Format: state.Format, From: state.From, Snippet: state.Snippet,
			Left: state.Left,
		})
		data = append(data, snapshot.Data{Portable: state.Data, Exact: state.Exact})
	}
	if n := len(header.Namespaces); n > 0 && s.lost != nil {
		last := &header.Namespaces[n-1]
		last.Left = append(last.Left, session.LeftOf(s.lost))
	}
	return header, data, nil
}

// Restore loads the variables of a snapshot into a session that has not run a snippet yet. The
// Report lists the values that could not be restored. It is empty if tier wasm could restore the
// memory of the interpreter, which requires the same version of this program, and a session with
// the same contexts, functions and memory limit. A snapshot that is damaged, of another version, or
// of a session with other contexts causes an error, and leaves the session unchanged.
//
// A snapshot may be from an untrusted source, because it can do only what the session's snippets
// can do.
func (s *Session) Restore(ctx context.Context, r io.Reader) (tiers.Report, error) {
	// Reading may take long, so other calls may use the session meanwhile.
	_, leave, err := s.enter(ctx)
	if err != nil {
		return tiers.Report{}, err
	}
	leave()
	header, data, err := snapshot.Read(readerUntil{ctx, r})
	if err != nil {
		return tiers.Report{}, fmt.Errorf("cannot restore the snapshot: %w", err)
	}

	ctx, leave, err = s.enter(ctx)
	if err != nil {
		return tiers.Report{}, err
	}
	defer leave()

	for _, language := range snapshot.Languages {
		if s.runner.Home(language) != "" {
			return tiers.Report{}, errors.New("cannot restore into a session that has run a " +
				"snippet: open another one")
		}
	}
	if err := checkContexts(header, describeContexts(s.allInputs())); err != nil {
		return tiers.Report{}, fmt.Errorf("cannot restore the snapshot: %w", err)
	}

	states := make([]tiers.State, len(header.Namespaces))
	for i, n := range header.Namespaces {
		states[i] = tiers.State{
			Language: n.Language, Format: n.Format, From: n.From, Snippet: n.Snippet,
			Left: n.Left, Data: data[i].Portable, Exact: data[i].Exact,
		}
	}
	report, err := s.runner.Import(ctx, states...)
	if err != nil {
		return tiers.Report{}, fmt.Errorf("cannot restore the snapshot: %w", err)
	}
	return report, nil
}

func describeContexts(inputs []tiers.Input) []snapshot.Context {
	all := make([]snapshot.Context, 0, len(inputs))
	for _, in := range inputs {
		switch {
		case in.Text != nil:
			all = append(all, snapshot.Context{Kind: "text", Bytes: in.Text.Size()})
		case in.Dir != nil:
			all = append(all, snapshot.Context{Kind: "dir", Bytes: int64(len(in.Dir.Names()))})
		default:
			all = append(all, snapshot.Context{Kind: "value", Bytes: int64(len(in.Value))})
		}
	}
	return all
}

// checkContexts compares the contexts of a snapshot with those of a session.
func checkContexts(h *snapshot.Header, have []snapshot.Context) error {
	if len(h.Contexts) != len(have) {
		return fmt.Errorf("it was taken with %d contexts, but the session has %d",
			len(h.Contexts), len(have))
	}
	for i, want := range h.Contexts {
		if want != have[i] {
			return fmt.Errorf("context_%d was a %s of size %d, but the session has a %s of size %d",
				i, want.Kind, want.Bytes, have[i].Kind, have[i].Bytes)
		}
	}
	return nil
}

// readerUntil reads until its context ends.
type readerUntil struct {
	ctx context.Context //nolint:containedctx // the context of one call
	r   io.Reader
}

// Read implements io.Reader.
func (r readerUntil) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.r.Read(p)
}
