package interp

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/rlmhq/rlm/internal/gohost"
	"github.com/rlmhq/rlm/tiers"
	"github.com/rlmhq/rlm/tiers/interp/internal/wire"
)

// sandbox is one session: its worker, and how to make another one like it.
type sandbox struct {
	pool     *pool
	host     *gohost.Session
	setup    wire.Setup
	enforced []tiers.Enforcement

	worker  *worker // nil after a restore that failed
	snippet int     // ordinal of the snippet that runs or ran last
	history []past
	closed  bool
}

// past is a snippet whose effects are in the namespace.
type past struct {
	ordinal int
	run     wire.Run
	journal []gohost.Answered
	verdict string
	printed [sha256.Size]byte
	impure  string
	took    time.Duration
}

var (
	_ tiers.Sandbox  = (*sandbox)(nil)
	_ tiers.Exporter = (*sandbox)(nil)
)

// renew gives the sandbox a fresh worker.
func (s *sandbox) renew(ctx context.Context) error {
	if s.worker != nil {
		s.worker.destroy()
		s.worker = nil
	}
	w, err := s.pool.take(ctx, s.host.Config.Limits.Memory)
	if err != nil {
		return err
	}
	body, err := json.Marshal(s.setup)
	if err == nil {
		err = w.send(wire.KindSetup, body)
	}
	if err != nil {
		w.destroy()
		return fmt.Errorf("cannot set up a worker: %w", err)
	}
	s.worker = w
	return nil
}

// Run runs a snippet. See tiers.Sandbox.
func (s *sandbox) Run(ctx context.Context, job tiers.Job) (tiers.Result, error) {
	if job.Language == "" {
		job.Language = tiers.Python
	}
	switch {
	case s.closed:
		return tiers.Result{}, broken(tiers.EffectsNeverRan, nil, errClosed)
	case job.Language != tiers.Python && job.Language != tiers.Go:
		return tiers.Result{}, reject(string(job.Language), "it runs Go and Python only, not %s", job.Language)
	case job.Language == tiers.Go && s.host.Config.Deterministic:
		return tiers.Result{}, reject("determinism", "its Go is not deterministic")
	case ctx.Err() != nil:
		return tiers.Result{}, broken(tiers.EffectsNeverRan, nil, ctx.Err())
	}
	if s.worker == nil {
		if err := s.renew(ctx); err != nil {
			return tiers.Result{}, broken(tiers.EffectsNeverRan, nil, err)
		}
	}
	if err := s.host.Changed(); err != nil {
		return tiers.Result{}, broken(tiers.EffectsNeverRan, nil, err)
	}
	s.snippet++
	run := wire.Run{Language: string(job.Language), Source: job.Source}
	t := s.turn()
	t.out.Sinks = [2]io.Writer{job.Stdout, job.Stderr}
	return s.ended(ctx, job, t, s.play(ctx, t, run, nil))
}

func (s *sandbox) turn() *turn {
	t := &turn{worker: s.worker, limits: s.host.Config.Limits}
	t.out.Limit = t.limits.Output
	return t
}

func broken(effects tiers.Effects, lost *tiers.Loss, err error) error {
	return &tiers.BrokenError{Tier: Name, Effects: effects, Lost: lost, Err: err}
}

// ended makes the result of a turn, and brings the namespace back if the turn
// cost the worker its life.
func (s *sandbox) ended(ctx context.Context, job tiers.Job, t *turn, e ending) (tiers.Result, error) {
	if e.end == nil {
		return s.stopped(ctx, t, e)
	}
	switch e.end.Verdict {
	case wire.Rejected:
		return s.refused(ctx, e.end)
	case wire.Invalid:
		if job.Rejectable {
			return s.refused(ctx, e.end)
		}
	case wire.OK, wire.Raised:
		s.history = append(s.history, t.past(s.snippet, wire.Run{Language: string(job.Language), Source: job.Source}, e.end))
	default:
		e.end, e.err = nil, gohost.ErrProtocol
		return s.stopped(ctx, t, e)
	}
	r := t.result(e)
	r.Enforced = s.enforced
	if !e.end.Dirty {
		return r, nil
	}
	if lost := s.restore(ctx); lost != nil {
		r.Lost = lost
	}
	return r, nil
}

// refused ends a snippet that never ran.
func (s *sandbox) refused(ctx context.Context, end *wire.End) (tiers.Result, error) {
	s.snippet--
	err := reject(end.Missing, "%s", end.Reason)
	if end.Dirty {
		if lost := s.restore(ctx); lost != nil {
			return tiers.Result{}, broken(tiers.EffectsNeverRan, lost, err)
		}
	}
	return tiers.Result{}, err
}

// stopped makes the result of a turn that a limit, a death or the caller ended.
func (s *sandbox) stopped(ctx context.Context, t *turn, e ending) (tiers.Result, error) {
	r := t.result(e)
	r.Enforced = s.enforced
	r.Lost = s.restore(ctx)
	if r.Lost == nil {
		r.Lost = &tiers.Loss{
			Snippets: []int{s.snippet},
			Reason:   "The interpreter had to be stopped; the session was restored to the state before this snippet.",
		}
	}
	switch {
	case s.worker == nil:
		return r, broken(tiers.EffectsRan, r.Lost, errors.New("cannot restore the sandbox"))
	case ctx.Err() != nil && errors.Is(e.err, context.Cause(ctx)):
		return r, broken(tiers.EffectsRan, r.Lost, e.err)
	}
	return r, nil
}

// restore makes the namespace anew by running the session's snippets again, with
// the answers that they got before. It returns what could not be had again, nil
// if nothing was lost.
func (s *sandbox) restore(ctx context.Context) *tiers.Loss {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), replayTime(s.history))
	defer cancel()
	err := s.renew(ctx)
	if err == nil {
		err = s.replay(ctx, s.history)
	}
	if err == nil {
		return nil
	}
	loss := &tiers.Loss{Reason: "The interpreter had to be stopped and the session begins anew, because " + err.Error() + "."}
	for n := 1; n <= s.snippet; n++ {
		loss.Snippets = append(loss.Snippets, n)
	}
	s.history = nil
	if s.renew(context.WithoutCancel(ctx)) != nil {
		s.worker = nil // the next Run tries again
	}
	return loss
}

// replayTime is how long snippets may take when they run again.
func replayTime(history []past) time.Duration {
	most := readyIn
	for _, p := range history {
		most += 3 * p.took
	}
	return most
}

// replay runs snippets again and makes sure that they do what they did.
func (s *sandbox) replay(ctx context.Context, history []past) error {
	for _, p := range history {
		if p.impure != "" {
			return fmt.Errorf("snippet %d cannot be run again: %s", p.ordinal, p.impure)
		}
	}
	for _, p := range history {
		journal := p.journal
		if journal == nil {
			journal = []gohost.Answered{}
		}
		t := s.turn()
		e := s.play(ctx, t, p.run, journal)
		if e.end == nil || e.end.Verdict != p.verdict || t.calls.Strayed() || t.printed() != p.printed {
			return fmt.Errorf("snippet %d did something else when it was run again", p.ordinal)
		}
	}
	return nil
}

// Close ends the sandbox.
func (s *sandbox) Close() error {
	if s.worker != nil {
		s.worker.destroy()
		s.worker = nil
	}
	s.closed = true
	return nil
}
