//go:build linux && (amd64 || arm64)

package workers

import (
	"context"
	"errors"
	"time"

	"github.com/rlmhq/rlm/internal/snippet/hostcall"
	"github.com/rlmhq/rlm/internal/snippet/session"
	"github.com/rlmhq/rlm/internal/snippet/slots"
	"github.com/rlmhq/rlm/tiers"
)

// Run runs a snippet. See [tiers.Sandbox].
func (s *sandbox) Run(ctx context.Context, job tiers.Job) (tiers.Result, error) {
	leave, err := s.enter()
	if err != nil {
		return tiers.Result{}, s.broken(tiers.EffectsNeverRan, nil, err)
	}
	defer leave()
	if err := ctx.Err(); err != nil {
		return tiers.Result{}, s.broken(tiers.EffectsNeverRan, nil, err)
	}

	if err := session.TapeOf(ctx).Enter(s.name(), true); err != nil {
		return tiers.Result{}, err
	}

	if err := s.checkInputs(); err != nil {
		return tiers.Result{}, s.broken(tiers.EffectsNeverRan, nil, err)
	}
	if err := s.revive(ctx); err != nil {
		return tiers.Result{}, s.broken(tiers.EffectsNeverRan, nil, err)
	}
	growth := s.growth()
	if err := s.pool.lend(ctx, s, growth); err != nil {
		return tiers.Result{}, s.broken(tiers.EffectsNeverRan, nil, err)
	}
	lost := s.takeLost()

	slot, err := slots.Wait(ctx)
	if err != nil {
		s.pool.relend(s.tenant, -growth)
		return tiers.Result{}, s.broken(tiers.EffectsNeverRan, lost, err)
	}
	before := s.held
	s.isSaved.Store(false)
	result, err := s.runIn(ctx, s.begin(ctx, slot, growth, job))
	s.pool.giveBack(s.tenant, growth, 2*(s.held-before)) // including the next checkpoint
	if s.isUnsaved() && s.ordinal == s.covered+1 {
		s.uncovered = time.Now()
	}
	result.Usage.Queued = slot.Waited()
	result.Lost = session.JoinLosses(lost, result.Lost)
	return result, s.passOn(err, lost)
}

// errStuck is the error of a snippet that could not be ended in time.
var errStuck = errors.New("the snippet could not be stopped")

// begin prepares a snippet to run in the worker, with memory that was lent to it.
func (s *sandbox) begin(ctx context.Context, slot *slots.Slot, growth int64, job tiers.Job) *running {
	r := &running{
		begun: time.Now(), worker: s.worker, id: s.id, box: s, snippet: s.ordinal + 1, job: job, slot: slot,
		growth: growth, gate: hostcall.New(s.limits), parts: partsFor(s.limits), computes: make(chan struct{}, 1),
	}
	r.ctx, r.stop = context.WithCancel(ctx)
	r.asked, r.giveUp = context.WithCancelCause(context.WithoutCancel(ctx))
	r.clock = startClock(s.limits.Wall+s.pool.options.Grace, func() {
		s.pool.condemn(r.worker)
		r.giveUp(errStuck)
	})

	r.worker.setRunning(r.id, r)
	r.calls.Go(r.share)
	return r
}

// runIn runs a snippet in the worker.
func (s *sandbox) runIn(ctx context.Context, r *running) (tiers.Result, error) {
	w, job := r.worker, r.job
	tape := session.TapeOf(ctx)
	isTaped, content := tape.Order()
	told := make(chan struct{})
	forgetStop := context.AfterFunc(ctx, func() { r.stopSnippet(); close(told) })

	p := runParams{
		ofSession: ofSession{r.id}, Language: job.Language, Source: []byte(job.Source), Rejectable: job.Rejectable,
		Seed: job.Seed, Began: job.Began,
		Stream: job.Stdout != nil || job.Stderr != nil, Taped: isTaped, Tape: content,
	}
	var answer result
	err := w.call(r.asked, methodRun, p, &answer)
	if !forgetStop() {
		<-told // otherwise a late message could stop the next snippet
	}
	beside := w.countRunning() - 1
	r.finish()

	switch {
	case errors.Is(err, errGone):
		s.ordinal++
		return s.explainEnd(ctx, w, beside, time.Since(r.begun))
	case errors.Is(err, errStuck):
		s.ordinal++
		return s.explainStuck(ctx, w, time.Since(r.begun))
	case err != nil:
		return tiers.Result{}, s.explainError(ctx, err)
	}
	s.ordinal++
	ended, err := answer.decode(r.parts, s.limits)
	if err == nil {
		err = tape.Adopt(answer.Tape)
	}
	if err != nil {
		w.end(CauseProtocol, "it broke the protocol: "+err.Error())
		<-w.gone
		return s.explainEnd(ctx, w, 0, 0)
	}
	return s.take(ended, r)
}

// take processes the result of a snippet.
func (s *sandbox) take(ended tiers.Result, r *running) (tiers.Result, error) {
	s.checkpointed, s.held = s.held, ended.Usage.PeakMemory
	if before := s.memory.Swap(s.held); before <= largeMemory && s.held > largeMemory {
		s.pool.separate(r.worker)
	}
	if len(ended.Enforced) > 0 {
		s.enforced = ended.Enforced
	}
	ended.Enforced = s.enforced
	s.renumber(ended.Lost)
	if r.failed != nil {
		return ended, s.broken(tiers.EffectsRan, ended.Lost, r.failed)
	}
	return ended, nil
}

// renumber converts the snippet numbers of an interpreter's loss to the session's numbers. They
// differ if the interpreter was replaced, since the session has counted earlier snippets.
func (s *sandbox) renumber(lost *tiers.Loss) {
	if lost == nil {
		return
	}
	for i := range lost.Snippets {
		lost.Snippets[i] += s.before
	}
}

// explainError returns the error of a snippet without a result.
func (s *sandbox) explainError(ctx context.Context, err error) error {
	var rejected *tiers.RejectedError
	if errors.As(err, &rejected) {
		return err
	}
	var broken *tiers.BrokenError
	if !errors.As(err, &broken) {
		broken = &tiers.BrokenError{Tier: s.name(), Effects: tiers.EffectsUnknown, Err: err}
	}
	s.renumber(broken.Lost)

	if broken.Effects != tiers.EffectsNeverRan {
		s.ordinal++
	}
	if ctx.Err() != nil {
		broken.Err = ctx.Err()
	}
	return broken
}

// explainEnd returns the result of a snippet whose worker ended when the snippet had run for took,
// next to the given number of other snippets. The next use of the session restores it.
func (s *sandbox) explainEnd(
	ctx context.Context, w *worker, beside int, took time.Duration,
) (tiers.Result, error) {
	cause, why := w.why()
	s.noteEnd(endOfProcess(why))
	hung := (cause == CauseSilent || cause == CauseStuck) && took > s.pool.options.Grace
	if hung || cause == CauseMemory {
		s.isSuspect.Store(true)
	}
	r := tiers.Result{Status: tiers.StatusCrashed, Lost: s.takeLost(), Enforced: s.enforced}
	if ctx.Err() != nil {
		return tiers.Result{}, s.broken(tiers.EffectsRan, r.Lost, ctx.Err())
	}

	if cause == CauseMemory && beside <= 0 {
		r.Status, r.Limit = tiers.StatusLimit, tiers.LimitMemory
		return r, nil
	}
	r.Exception = &tiers.Exception{
		Type: "WorkerCrash", Message: why,
		Traceback: "the process in which the snippet ran has ended: " + why + "\n",
	}
	return r, nil
}

// explainStuck returns the result of a snippet that could not be ended in time. The snippet
// continues in its worker, which the session leaves.
func (s *sandbox) explainStuck(ctx context.Context, w *worker, took time.Duration) (tiers.Result, error) {
	s.noteEnd("Nothing could end the snippet in its time")
	s.isSuspect.Store(true)
	s.pool.leave(w, s.id)
	lost := s.takeLost()
	if ctx.Err() != nil {
		return tiers.Result{}, s.broken(tiers.EffectsRan, lost, ctx.Err())
	}
	return tiers.Result{
		Status: tiers.StatusLimit, Limit: tiers.LimitWall, Lost: lost, Enforced: s.enforced,
		Usage: tiers.Usage{Wall: took, Active: took},
	}, nil
}

func (s *sandbox) name() string { return s.pool.inner.Info().Name }

func (s *sandbox) broken(effects tiers.Effects, lost *tiers.Loss, err error) error {
	return &tiers.BrokenError{Tier: s.name(), Effects: effects, Lost: lost, Err: err}
}

// passOn adds a loss to an error if it can report losses. Otherwise, the next answer reports the
// loss.
func (s *sandbox) passOn(err error, lost *tiers.Loss) error {
	var broken *tiers.BrokenError
	switch {
	case lost == nil || err == nil:
	case errors.As(err, &broken):
		broken.Lost = session.JoinLosses(lost, broken.Lost)
	default:
		s.lost = session.JoinLosses(lost, s.lost)
	}
	return err
}
