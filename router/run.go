package router

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/rlmhq/rlm/tiers"
)

// Result is what became of a snippet, and where.
type Result struct {
	tiers.Result
	// Tier is where the snippet ran, empty if no tier was troubled.
	Tier string
	// Plan is the decision that was followed, with the rejections on the way.
	Plan *Plan
	// Moved says that the namespace moved for the snippet, nil if it stayed.
	Moved *Move
	// Attempts are the tiers that rejected the snippet before, in order.
	Attempts []Attempt
}

// Attempt is a tier that rejected a snippet, or could not take the namespace.
type Attempt struct {
	Tier string `json:"tier"`
	// Reason is one sentence for people.
	Reason string `json:"reason"`
	// Effects says whether the snippet had begun there.
	Effects tiers.Effects `json:"effects"`
}

// Run runs a snippet in the first tier of its plan that does not reject it. An
// empty language is Python; Rejectable is the runner's to set.
//
// An error wraps [ErrNoTier] if no tier may run the snippet; any other is a
// [*tiers.BrokenError], whose effects count host calls made in tiers that
// rejected the snippet before. Result says with an error, too, how far it came:
// a move is made and reported even if the snippet then fails.
func (r *Runner) Run(ctx context.Context, job tiers.Job) (Result, error) {
	if r.closed {
		return Result{}, &tiers.BrokenError{Tier: routerName, Effects: tiers.EffectsNeverRan, Err: errClosed}
	}
	job.Language = languageOf(job.Language)
	v, err := r.analyse(ctx, job.Language, job.Source)
	if err != nil {
		return Result{}, brokenBy(routerName, tiers.EffectsNeverRan, err)
	}
	e := escalation{Runner: r, space: r.space(job.Language), verdict: v, job: job, journal: journal{host: r.host, gate: r.gate}}
	for {
		again, err := e.step(ctx)
		if !again {
			return e.result, err
		}
	}
}

// routerName stands for a tier in errors that come from none.
const routerName = "router"

// escalation is one snippet on its way through the tiers.
type escalation struct {
	*Runner
	space   *space
	verdict Verdict
	job     tiers.Job
	journal journal
	out     [2]*resumed

	rejected []tiers.RejectedError // for the plan
	asked    []string              // of these, who would have gone on, had we not asked
	last     bool                  // nobody is asked any more
	result   Result
}

// step tries the first tier of the plan, and reports whether to plan again.
func (e *escalation) step(ctx context.Context) (again bool, err error) {
	state := e.state(e.job.Language)
	state.Rejected = e.rejected
	plan, err := e.plan(ctx, e.verdict, state, e.depth)
	if err != nil {
		return false, e.broken(routerName, tiers.EffectsNeverRan, err)
	}
	e.result.Plan = &plan
	if len(plan.Chain) == 0 {
		return e.nowhere(&plan)
	}
	i, _ := e.find(plan.Chain[0].Tier)
	e.result.Tier = plan.Chain[0].Tier
	asked := false
	if err = e.settleIn(ctx, i); err == nil {
		asked = e.asks(&plan)
		err = e.try(ctx, asked)
	}
	if rejected := rejection(err); rejected != nil {
		e.note(i, asked, rejected)
		return true, nil
	}
	return false, err
}

// depth is how many tiers of the chain must be known to be usable: the first,
// and if it may reject the snippet a second.
func (e *escalation) depth(plan *Plan) int {
	if e.asks(plan) {
		return 2
	}
	return 1
}

// asks reports whether the first tier is asked to reject the snippet if it turns
// out to lack something. It has its price, a checkpoint, so it must be possible
// both that this happens and that another tier does better.
func (e *escalation) asks(plan *Plan) bool {
	if e.last || len(plan.Chain) < 2 {
		return false
	}
	i, _ := e.find(plan.Chain[0].Tier)
	return uncertain(&e.candidates[i].Info, e.job.Language, &e.verdict)
}

// note writes down a rejection.
func (e *escalation) note(i int, asked bool, r *tiers.RejectedError) {
	info := &e.candidates[i].Info
	noted := *r
	noted.Tier = info.Name // the plan relies on it, so that no tier is tried for ever
	if asked && wholeLanguage(info) {
		e.asked = append(e.asked, info.Name)
	} else {
		// What a tier lacks of the language itself, or what it cannot import, says
		// nothing about the others.
		noted.Missing = ""
	}
	e.rejected = append(e.rejected, noted)
	e.result.Attempts = append(e.result.Attempts, Attempt{info.Name, r.Reason, r.Effects})
	e.cfg.Log.Info().Str("tier", info.Name).Str("missing", r.Missing).Str("reason", r.Reason).Msg("the tier rejected the snippet")
}

// nowhere ends a snippet for which the chain is empty. A tier that rejected it
// because it was asked to is tried once more: if no other has what the snippet
// lacks, the snippet itself must be told, by an exception.
func (e *escalation) nowhere(plan *Plan) (again bool, err error) {
	if x := e.verdict.Invalid; x != nil {
		e.result.Tier = ""
		e.result.Result = tiers.Result{Status: tiers.StatusRaised, Exception: x}
		return false, nil
	}
	if len(e.asked) > 0 && !e.last {
		e.last = true
		e.rejected = slices.DeleteFunc(e.rejected, func(r tiers.RejectedError) bool { return slices.Contains(e.asked, r.Tier) })
		return true, nil
	}
	e.result.Tier = ""
	return false, &NoTierError{Refusals: plan.Refusals, Effects: e.effects(tiers.EffectsNeverRan)}
}

// settleIn makes a tier the home.
func (e *escalation) settleIn(ctx context.Context, i int) error {
	move, err := e.enter(ctx, e.space, i)
	e.result.Moved = e.result.Moved.then(move)
	return e.broken(e.candidates[i].Info.Name, tiers.EffectsNeverRan, err)
}

// try runs the snippet in the sandbox that holds the namespace.
func (e *escalation) try(ctx context.Context, asked bool) error {
	job := e.job
	job.Rejectable = asked
	if asked || len(e.rejected) > 0 {
		job.Stdout, job.Stderr = e.sink(0, job.Stdout), e.sink(1, job.Stderr)
	}
	if e.host == nil {
		result, err := e.space.sandbox.Run(ctx, job)
		return e.ended(result, err)
	}
	runCtx, a := e.journal.begin(ctx, asked)
	result, err := e.space.sandbox.Run(runCtx, job)
	return e.answered(ctx, a, result, err)
}

// answered ends an attempt at the journal, and then the run.
func (e *escalation) answered(ctx context.Context, a *attempt, result tiers.Result, err error) error {
	rejected := rejection(err)
	if rejected == nil {
		a.end()
	} else if settled := a.settle(ctx); settled != nil {
		return e.broken(e.result.Tier, tiers.EffectsRan, settled)
	}
	unnoted, wrong := a.verdict()
	switch {
	case wrong != nil:
		err = mismatch(e.result.Tier, wrong, err)
	case rejected != nil && unnoted > 0:
		// To start again would make them twice.
		err = &tiers.BrokenError{
			Tier: e.result.Tier, Effects: tiers.EffectsRan,
			Err: fmt.Errorf("it rejected the snippet unasked, after %d host calls: %s", unnoted, rejected.Reason),
		}
	}
	return e.ended(result, err)
}

// mismatch is the error of an attempt that the journal stopped, with what the
// tier says of the loss.
func mismatch(name string, wrong, err error) error {
	broken := &tiers.BrokenError{Tier: name, Effects: tiers.EffectsRan, Err: wrong}
	var stopped *tiers.BrokenError
	if errors.As(err, &stopped) {
		broken.Lost = stopped.Lost
	}
	return broken
}

// ended takes the result of a snippet that was not rejected.
func (e *escalation) ended(result tiers.Result, err error) error {
	if rejection(err) != nil {
		return err
	}
	e.result.Result = result
	err = e.broken(e.result.Tier, tiers.EffectsUnknown, err)
	var broken *tiers.BrokenError
	if !errors.As(err, &broken) || broken.Effects != tiers.EffectsNeverRan {
		e.space.used = true
		e.space.bytes = result.Usage.PeakMemory
	}
	return err
}

// broken types an error of a tier and counts the host calls of earlier attempts
// among its effects. Nil and rejections pass.
func (e *escalation) broken(tier string, effects tiers.Effects, err error) error {
	if err == nil || rejection(err) != nil {
		return err
	}
	var broken *tiers.BrokenError
	if !errors.As(brokenBy(tier, effects, err), &broken) {
		return err
	}
	typed := *broken
	typed.Effects = e.effects(typed.Effects)
	return &typed
}

// effects are those of the last attempt, or of the calls made in any.
func (e *escalation) effects(of tiers.Effects) tiers.Effects {
	if e.journal.calls() > 0 {
		return tiers.EffectsRan
	}
	return of
}

// sink returns what passes output on to the caller, nil if nobody listens. It
// begins anew with each attempt.
func (e *escalation) sink(stream int, w io.Writer) io.Writer {
	if w == nil {
		return nil
	}
	if e.out[stream] == nil {
		e.out[stream] = &resumed{w: w}
	}
	e.out[stream].at = 0
	return e.out[stream]
}

// resumed passes a stream on that begins again with each attempt: what an
// earlier one wrote is not written twice.
type resumed struct {
	w          io.Writer
	at, passed int64
}

// Write writes what of p is new.
func (r *resumed) Write(p []byte) (int, error) {
	skip := min(max(r.passed-r.at, 0), int64(len(p)))
	r.at += int64(len(p))
	if skip == int64(len(p)) {
		return len(p), nil
	}
	r.passed = r.at
	n, err := r.w.Write(p[skip:])
	return int(skip) + n, err
}
