//go:build linux && (amd64 || arm64)

package workers

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rlmhq/rlm/internal/hostcall"
	"github.com/rlmhq/rlm/internal/session"
	"github.com/rlmhq/rlm/internal/turns"
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

	if err := s.checkInputs(); err != nil {
		return tiers.Result{}, s.broken(tiers.EffectsNeverRan, nil, err)
	}
	if err := s.revive(ctx); err != nil {
		return tiers.Result{}, s.broken(tiers.EffectsNeverRan, nil, err)
	}
	lost := s.lost
	s.lost = nil

	turn, err := turns.Wait(ctx)
	if err != nil {
		return tiers.Result{}, s.broken(tiers.EffectsNeverRan, lost, err)
	}
	result, err := s.runIn(ctx, turn, job)
	result.Usage.Queued = turn.Waited()
	result.Lost = session.JoinLosses(lost, result.Lost)
	return result, addLoss(err, lost)
}

// runIn runs a snippet in the worker.
func (s *sandbox) runIn(ctx context.Context, turn *turns.Turn, job tiers.Job) (tiers.Result, error) {
	w, id := s.worker, s.id
	runCtx, stop := context.WithCancel(ctx)
	r := &running{
		ctx: runCtx, stop: stop, box: s, snippet: s.ordinal + 1, job: job, turn: turn,
		gate: hostcall.New(s.limits), parts: partsFor(s.limits),
	}
	r.clock = startClock(s.limits.Wall, func() { w.end("a snippet did not end in its time") })
	w.setRunning(id, r)
	defer context.AfterFunc(ctx, func() {
		_ = w.conn.Notify(methodStop, ofSession{id}) // a worker that is gone has stopped
	})()
	defer r.release()()

	p := runParams{
		ofSession: ofSession{id}, Language: job.Language, Source: []byte(job.Source), Rejectable: job.Rejectable,
		Seed: job.Seed, Began: job.Began,
		Stream: job.Stdout != nil || job.Stderr != nil,
	}
	var answer result
	err := w.call(context.WithoutCancel(ctx), methodRun, p, &answer)
	beside := w.countRunning() - 1
	r.finish()
	w.setRunning(id, nil)
	turn.End()

	switch {
	case errors.Is(err, errGone):
		s.ordinal++
		return s.explainEnd(ctx, w, beside)
	case err != nil:
		return tiers.Result{}, s.explainError(ctx, err)
	}
	s.ordinal++
	ended, err := answer.decode(r.parts, s.limits)
	if err != nil {
		w.end("it broke the protocol: " + err.Error())
		<-w.gone
		return s.explainEnd(ctx, w, 0)
	}

	if len(ended.Enforced) > 0 {
		s.enforced = ended.Enforced
	}
	ended.Enforced = s.enforced
	if r.failed != nil {
		return ended, s.broken(tiers.EffectsRan, nil, r.failed)
	}
	return ended, nil
}

// releaseEvery is how often a running snippet looks whether others wait.
const releaseEvery = 50 * time.Millisecond

// release lets others compute when the snippet has computed for long. It returns the function
// that ends that.
func (r *running) release() func() {
	if r.turn == nil {
		return func() {}
	}
	ticker := time.NewTicker(releaseEvery)
	done := make(chan struct{})
	go func() {
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
			}
			r.turning.Lock()
			if r.pending == 0 {
				r.turn.Release()
			}
			r.turning.Unlock()
		}
	}()
	return func() { ticker.Stop(); close(done) }
}

// explainError is the error of a snippet that has no result.
func (s *sandbox) explainError(ctx context.Context, err error) error {
	var rejected *tiers.RejectedError
	if errors.As(err, &rejected) {
		return err
	}
	var broken *tiers.BrokenError
	if !errors.As(err, &broken) {
		broken = &tiers.BrokenError{Tier: s.name(), Effects: tiers.EffectsUnknown, Err: err}
	}

	if broken.Effects != tiers.EffectsNeverRan {
		s.ordinal++
	}
	if ctx.Err() != nil {
		broken.Err = ctx.Err()
	}
	return broken
}

// explainEnd is the result of a snippet whose worker has ended. Beside it ran so many others.
func (s *sandbox) explainEnd(ctx context.Context, w *worker, beside int) (tiers.Result, error) {
	why, isMemory := w.why()
	s.worker = nil
	saved := s.saved
	revived := context.WithoutCancel(ctx)
	if err := s.open(revived, saved); err != nil {
		return tiers.Result{}, s.broken(tiers.EffectsRan, nil, fmt.Errorf("the worker has ended (%s): %w", why, err))
	}
	lost := s.lossSince(saved, why)
	if ctx.Err() != nil {
		return tiers.Result{}, s.broken(tiers.EffectsRan, lost, ctx.Err())
	}

	r := tiers.Result{Status: tiers.StatusCrashed, Lost: lost, Enforced: s.enforced}
	r.Exception = &tiers.Exception{
		Type: "WorkerCrash", Message: why,
		Traceback: "the process in which the snippet ran has ended: " + why + "\n",
	}
	if isMemory && beside <= 0 {
		r.Status, r.Limit, r.Exception = tiers.StatusLimit, tiers.LimitMemory, nil
	}

	return r, nil
}

func (s *sandbox) name() string { return s.pool.inner.Info().Name }

func (s *sandbox) broken(effects tiers.Effects, lost *tiers.Loss, err error) error {
	return &tiers.BrokenError{Tier: s.name(), Effects: effects, Lost: lost, Err: err}
}

// addLoss adds a loss to an error.
func addLoss(err error, lost *tiers.Loss) error {
	var broken *tiers.BrokenError
	if lost != nil && errors.As(err, &broken) {
		broken.Lost = session.JoinLosses(lost, broken.Lost)
	}
	return err
}
