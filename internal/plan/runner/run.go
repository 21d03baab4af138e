package runner

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/rlmhq/rlm/internal/snippet/abilities"
	"github.com/rlmhq/rlm/internal/snippet/labels"
	snippets "github.com/rlmhq/rlm/internal/snippet/session"
	"github.com/rlmhq/rlm/router"
	"github.com/rlmhq/rlm/tiers"
)

// Run runs a snippet in the first tier of its plan that does not reject it. An empty language means
// Python; the runner sets Rejectable itself.
//
// An error wraps [ErrNoTier] if no tier may run the snippet; any other error is a
// [*tiers.BrokenError], whose effects include host calls made in tiers that had rejected the
// snippet. Even with an error, Result describes the progress: a move is made and reported even if
// the snippet then fails.
func (r *Runner) Run(ctx context.Context, job tiers.Job) (router.Result, error) {
	leave, err := r.enter()
	if err != nil {
		return router.Result{}, asBroken(routerName, tiers.EffectsNeverRan, err)
	}
	defer leave()
	ctx = labels.WithTenant(ctx, r.cfg.Config.Labels)
	job.Language = languageOf(job.Language)
	v, err := r.analyse(ctx, job.Language, job.Source)
	if err != nil {
		return router.Result{}, asBroken(routerName, tiers.EffectsNeverRan, err)
	}

	e := escalation{
		Runner: r, space: r.spaceOf(job.Language), verdict: v, job: job,
		replay: replay{host: r.host, log: r.cfg.Log, gate: r.gate},
	}
	for {
		again, err := e.tryFirst(ctx)
		if !again {
			return e.result, err
		}
	}
}

// escalation is one snippet on its way through the tiers.
type escalation struct {
	*Runner
	space   *space
	verdict router.Verdict
	job     tiers.Job
	replay  replay
	out     [2]*resumedWriter

	rejected []tiers.RejectedError // for the plan
	asked    []string              // the tiers among these that were asked to reject the snippet
	unasked  bool                  // no further tier is asked to reject the snippet
	standing router.Standing       // before the last attempt
	result   router.Result
}

// tryFirst tries the first tier of the plan, and reports whether to plan again.
func (e *escalation) tryFirst(ctx context.Context) (again bool, err error) {
	state := e.stateOf(e.job.Language)
	state.Rejected = e.rejected
	e.standing = state
	plan, err := e.planUsable(ctx, e.verdict, state, e.countNeeded)
	if err != nil {
		return false, e.asBroken(routerName, tiers.EffectsNeverRan, err)
	}

	e.result.Plan = &plan
	if len(plan.Chain) == 0 {
		return e.retryUnasked(&plan)
	}

	i, _ := e.findTier(plan.Chain[0].Tier)
	e.result.Tier = plan.Chain[0].Tier
	if err := e.settleIn(ctx, i, &plan); err != nil {
		return e.passOver(ctx, i, &plan, err)
	}

	ask := e.shouldAsk(&plan)
	err = e.runIn(ctx, ask)
	if rejected := asRejection(err); rejected != nil {
		e.noteRejection(i, ask, rejected)
		return true, nil
	}

	return false, err
}

// countNeeded returns the number of tiers of the chain that must be known to be usable: the first,
// and a second if the first may reject the snippet.
func (e *escalation) countNeeded(plan *router.Plan) int {
	if e.shouldAsk(plan) {
		return 2
	}
	return 1
}

// shouldAsk reports whether to ask the first tier to reject the snippet if the tier turns out to
// lack something.
func (e *escalation) shouldAsk(plan *router.Plan) bool { return plan.Rejectable && !e.unasked }

// settleIn makes a tier the home. If only speed is at stake, nothing may be left behind.
func (e *escalation) settleIn(ctx context.Context, i int, plan *router.Plan) error {
	couldStay := slices.ContainsFunc(plan.Chain, func(s router.Step) bool { return s.Home })
	move, err := e.enterTier(ctx, e.space, i, plan.ForSpeed && couldStay)
	e.result.Moved = joinMoves(e.result.Moved, move)
	return e.asBroken(e.candidates[i].Info.Name, tiers.EffectsNeverRan, err)
}

// passOver handles a tier that could not accept the namespace. A broken tier ends the snippet,
// unless it was chosen only for speed; then the next tier can run the snippet just as well.
func (e *escalation) passOver(
	ctx context.Context, i int, plan *router.Plan, err error,
) (again bool, _ error) {
	rejected := asRejection(err)
	switch {
	case plan.ForSpeed && ctx.Err() == nil:
		e.space.settled = true
		e.passOverFaster(i, err, rejected)
		return true, nil
	case rejected != nil:
		e.noteRejection(i, false, rejected)
		return true, nil
	}
	return false, err
}

// passOverFaster refuses a tier that was chosen for speed. This is not reported as an attempt,
// because another tier runs the snippet just as well.
func (e *escalation) passOverFaster(i int, err error, rejected *tiers.RejectedError) {
	name, reason := e.candidates[i].Info.Name, err.Error()
	if rejected != nil {
		reason = rejected.Reason
	}
	e.rejected = append(e.rejected, tiers.RejectedError{
		Tier: name, Reason: reason, Effects: tiers.EffectsNeverRan,
	})
	e.cfg.Log.Info("the snippet does not run in the faster tier", "tier", name, "reason", reason)
}

// noteRejection records a rejection.
func (e *escalation) noteRejection(i int, asked bool, r *tiers.RejectedError) {
	info := &e.candidates[i].Info
	noted := *r
	noted.Tier = info.Name // so that the plan tries no tier twice

	if asked && abilities.RunsWholeLanguage(info) {
		e.asked = append(e.asked, info.Name)
	} else {
		// A tier's gaps in the language, or in its imports, reveal nothing about other tiers.
		noted.Missing = ""
	}

	e.rejected = append(e.rejected, noted)
	e.result.Attempts = append(e.result.Attempts, router.Refusal{
		Tier: info.Name, Reason: r.Reason, Effects: r.Effects,
	})
	e.cfg.Log.Info(
		"the tier rejected the snippet", "tier", info.Name, "missing", r.Missing, "reason",
		r.Reason,
	)
}

// retryUnasked handles a snippet that no tier accepts. A tier that rejected it only because it was
// asked to now runs it after all, without being asked: if no other tier has the missing module or
// feature, the snippet itself must receive the exception.
func (e *escalation) retryUnasked(plan *router.Plan) (again bool, err error) {
	if plan.Exception != nil {
		e.result.Tier = ""
		e.result.Result = tiers.Result{Status: tiers.StatusRaised, Exception: plan.Exception}
		return false, nil
	}

	if len(e.asked) > 0 && !e.unasked {
		e.unasked = true
		e.rejected = slices.DeleteFunc(e.rejected, func(r tiers.RejectedError) bool {
			return slices.Contains(e.asked, r.Tier)
		})
		return true, nil
	}

	e.result.Tier = ""
	return false, &router.NoTierError{
		Refusals: plan.Refusals, Effects: e.addEffects(tiers.EffectsNeverRan),
		Advice: e.adviseOnFiles(plan),
	}
}

// runIn runs the snippet in the sandbox that holds the namespace.
func (e *escalation) runIn(ctx context.Context, ask bool) error {
	job := e.job
	job.Rejectable = ask
	if ask || len(e.rejected) > 0 {
		job.Stdout, job.Stderr = e.resumeOutput(0, job.Stdout), e.resumeOutput(1, job.Stderr)
	}
	if e.host == nil {
		result, err := e.space.sandbox.Run(ctx, job)
		return e.takeResult(ctx, result, err)
	}

	runCtx, a := e.replay.beginAttempt(ctx, ask)
	result, err := e.space.sandbox.Run(runCtx, job)
	return e.takeResult(ctx, result, e.checkCalls(ctx, a, err))
}

// checkCalls ends an attempt in the replay and returns the error of the run: the tier's own error,
// or one that reports why host calls forbid another attempt.
func (e *escalation) checkCalls(ctx context.Context, a *attempt, err error) error {
	rejected := asRejection(err)
	if rejected == nil {
		a.cancelCalls()
	} else if settled := a.awaitCalls(ctx); settled != nil {
		return &tiers.BrokenError{Tier: e.result.Tier, Effects: tiers.EffectsRan, Err: settled}
	}

	unnoted, wrong := a.verdict()
	switch {
	case wrong != nil:
		return mismatchError(e.result.Tier, wrong, err)
	case rejected != nil && unnoted > 0:
		// A restart would make the calls twice.
		return &tiers.BrokenError{
			Tier: e.result.Tier, Effects: tiers.EffectsRan,
			Err: fmt.Errorf("the tier rejected the snippet after %d host calls, "+
				"although the attempt was not rejectable: %s", unnoted, rejected.Reason),
		}
	}

	return err
}

// mismatchError returns the error of an attempt that the replay stopped, with the loss that the
// tier reported.
func mismatchError(name string, wrong, err error) error {
	broken := &tiers.BrokenError{Tier: name, Effects: tiers.EffectsRan, Err: wrong}
	var stopped *tiers.BrokenError
	if errors.As(err, &stopped) {
		broken.Lost = stopped.Lost
	}
	return broken
}

// takeResult records the result of a snippet that was not rejected.
func (e *escalation) takeResult(ctx context.Context, result tiers.Result, err error) error {
	if asRejection(err) != nil {
		return err
	}
	e.result.Result = result
	err = e.asBroken(e.result.Tier, tiers.EffectsUnknown, err)

	var broken *tiers.BrokenError
	if !errors.As(err, &broken) || broken.Effects != tiers.EffectsNeverRan {
		e.space.used, e.space.ran = true, e.space.ran+1
		e.space.note(e.verdict.Needs)
		e.space.bytes = result.Usage.PeakMemory
	}
	e.explainMissing(ctx)
	e.explainFile()
	return err
}

// asBroken converts an error of a tier and adds the host calls of earlier attempts to its effects.
// Nil and rejections are returned unchanged.
func (e *escalation) asBroken(tier string, effects tiers.Effects, err error) error {
	if err == nil || asRejection(err) != nil {
		return err
	}
	var broken *tiers.BrokenError
	if !errors.As(asBroken(tier, effects, err), &broken) {
		return err
	}

	typed := *broken
	typed.Effects = e.addEffects(typed.Effects)
	return &typed
}

// addEffects adds the host calls of all attempts to the effects of the last attempt.
func (e *escalation) addEffects(last tiers.Effects) tiers.Effects {
	if e.replay.countCalls() > 0 {
		return tiers.EffectsRan
	}
	return last
}

// resumeOutput returns a writer that passes the output of the next attempt on to the caller's
// writer w, without the part that earlier attempts wrote; it returns nil if w is nil.
func (e *escalation) resumeOutput(stream int, w io.Writer) io.Writer {
	if w == nil {
		return nil
	}
	if e.out[stream] == nil {
		e.out[stream] = &resumedWriter{w: w}
	}
	e.out[stream].at = 0
	return e.out[stream]
}

// resumedWriter passes on a stream that starts again with each attempt. It does not repeat the
// output of an earlier attempt.
type resumedWriter struct {
	w          io.Writer
	at, passed int64
}

// Write writes the part of p that is new.
func (r *resumedWriter) Write(p []byte) (int, error) {
	skip := min(max(r.passed-r.at, 0), int64(len(p)))
	r.at += int64(len(p))
	if skip == int64(len(p)) {
		return len(p), nil
	}
	r.passed = r.at
	n, err := r.w.Write(p[skip:])
	return int(skip) + n, err
}

// WriteEcho implements tiers.EchoWriter. Only a snippet that ended has an echo, so no attempt
// repeats a part of it.
func (r *resumedWriter) WriteEcho(text []byte) {
	n := int64(len(text))
	if r.at += n; r.at > r.passed {
		r.passed = r.at
		snippets.WriteEcho(r.w, text)
	}
}
