package pykernel

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rlmhq/rlm/internal/egress"
	"github.com/rlmhq/rlm/tiers"
)

// Process is a CPython with the runtime loaded, and the wall around it, as a tier
// starts it.
type Process interface {
	// Remote is the runtime in it.
	Remote() *Remote
	// OutOfMemory reports whether the kernel has ended something in it for its
	// memory since the last time; bad says that the last run has ended badly.
	OutOfMemory(bad bool) bool
	// Peak is the most memory that it has had, in bytes; own is the guest's own word,
	// 0 after a bad end.
	Peak(own int64) int64
	// Fault is why the process ended, if that was no doing of the snippet's; nil
	// otherwise.
	Fault() error
	// Close ends it and waits.
	Close() error
}

// Home is the Python half of a sandbox whose sessions live in processes: it runs
// snippets, restores the session from the kept copy or in a new process, and
// says what was lost. It has one owner.
type Home struct {
	// Tier is the tier's name, Lacks what it says to snippets in a language that it
	// does not run.
	Tier, Lacks string
	// Session answers the guest's requests.
	Session *Session
	// Start starts a process for the session.
	Start func(ctx context.Context) (Process, error)
	// Enforced says how limits are kept.
	Enforced []tiers.Enforcement
	// Proxy is the session's way out, nil for none; it ends with the session.
	Proxy *egress.Proxy
	// Lasting leaves a keeper behind before the first snippet, too: the process has
	// files that must outlive a snippet which has to be killed.
	Lasting bool

	process Process
	flags   int // for the next run
	closed  bool
	fresh   bool      // nothing has run in the process: another is as good
	keptAt  time.Time // when the keeper was left behind
}

var errClosed = errors.New("the sandbox is closed")

// Process is the process of the session, nil if there is none.
func (h *Home) Process() Process { return h.process }

// Renew starts a process in place of one that is gone.
func (h *Home) Renew(ctx context.Context) error {
	if h.process != nil {
		err := h.process.Close()
		h.process = nil
		if err != nil {
			return err
		}
	}
	p, err := h.Start(ctx)
	if err != nil {
		return err
	}
	h.process, h.keptAt, h.fresh = p, time.Time{}, true
	h.flags = FlagReseed
	if h.Session.Configured() {
		h.flags |= FlagConfigure
	}
	return nil
}

// Run runs a snippet. See tiers.Sandbox.
func (h *Home) Run(ctx context.Context, job tiers.Job) (tiers.Result, error) {
	if h.closed {
		return tiers.Result{}, h.Broken(tiers.EffectsNeverRan, nil, errClosed)
	}
	if job.Language != "" && job.Language != tiers.Python {
		return tiers.Result{}, &tiers.RejectedError{
			Tier: h.Tier, Missing: string(job.Language), Effects: tiers.EffectsNeverRan,
			Reason: fmt.Sprintf("%s, not %s", h.Lacks, job.Language),
		}
	}
	if err := ctx.Err(); err != nil {
		return tiers.Result{}, h.Broken(tiers.EffectsNeverRan, nil, err)
	}
	if h.process == nil { // an earlier restore failed
		if err := h.Renew(ctx); err != nil {
			return tiers.Result{}, h.Broken(tiers.EffectsNeverRan, nil, err)
		}
	}
	if err := h.Session.Begin(ctx, job); err != nil {
		return tiers.Result{}, h.Broken(tiers.EffectsNeverRan, nil, err)
	}
	fresh := h.fresh
	code, err := h.execute(job)
	if fresh && errors.Is(err, ErrGone) && !h.remote().Begun() && ctx.Err() == nil && h.Session.Over() == "" {
		// It died while it waited for its session, and nothing has run: any other does.
		if err := h.Renew(ctx); err != nil {
			return tiers.Result{}, h.Broken(tiers.EffectsNeverRan, nil, err)
		}
		code, err = h.execute(job)
	}
	return h.ended(ctx, job, code, err)
}

func (h *Home) execute(job tiers.Job) (int, error) {
	safe := (!h.fresh || h.Lasting) && (job.Rejectable || time.Since(h.keptAt) >= keepShare*keepCost)
	h.fresh = false
	if safe {
		h.keptAt = time.Now()
	}
	return h.remote().Run(h.Session, job.Source, h.flags|h.Session.Snippet()<<OrdinalShift, safe, h.Session.Snippet()-1)
}

// To leave a keeper behind takes keepCost. One is left if that is at most one part
// in keepShare of the time since the last: a session that waits for a model
// always has one.
const (
	keepCost  = 4 * time.Millisecond
	keepShare = 20
)

func (h *Home) remote() *Remote { return h.process.Remote() }

// Broken is the error of a tier that failed at its own work.
func (h *Home) Broken(effects tiers.Effects, lost *tiers.Loss, err error) error {
	return &tiers.BrokenError{Tier: h.Tier, Effects: effects, Lost: lost, Err: err}
}

// ended makes the result of a run, and a new process if the run cost the old one
// its life.
func (h *Home) ended(ctx context.Context, job tiers.Job, code int, err error) (tiers.Result, error) {
	oom := h.process.OutOfMemory(err != nil || code < 0)
	if oom {
		h.Session.Refuse(tiers.LimitMemory)
	}
	r := h.Session.End(code)
	if h.Proxy != nil {
		r.Denied = h.Proxy.Denials()
	}
	own := int64(0)
	if err == nil {
		own = h.remote().Peak()
	}
	r.Usage.PeakMemory, r.Enforced = h.process.Peak(own), h.Enforced
	if r.Status == tiers.StatusRaised && outOfMemory(r.Exception) {
		r.Status, r.Limit = tiers.StatusLimit, tiers.LimitMemory
	}
	if err == nil {
		h.flags = 0
	}
	interrupted := h.Session.Interrupted()
	inOrder := code >= 0 && r.Status != tiers.StatusCrashed || r.Status == tiers.StatusLimit || code < 0 && interrupted
	if err == nil && inOrder && h.healthy(ctx, job.Source) {
		if interrupted {
			return r, h.Broken(tiers.EffectsRan, nil, context.Cause(ctx))
		}
		return r, nil
	}
	if r.Status == tiers.StatusCrashed && oom {
		r.Status, r.Limit = tiers.StatusLimit, tiers.LimitMemory
	}
	if r.Status == tiers.StatusCrashed {
		const cause = "its process ended"
		r.Exception = &tiers.Exception{Type: "InterpreterCrash", Message: cause, Traceback: "the snippet broke its interpreter: " + cause + "\n"}
	}
	if err == nil {
		err = h.remote().Discard()
	}
	err = h.restore(ctx, &r, err)
	return r, err
}

// restore brings the session back after a bad end and says what ended it, if that
// was not the snippet alone.
func (h *Home) restore(ctx context.Context, r *tiers.Result, err error) error {
	r.Lost = h.lost(err)
	fault := h.process.Fault()
	if errors.Is(err, ErrGone) {
		if err := h.Renew(context.WithoutCancel(ctx)); err != nil {
			return h.Broken(tiers.EffectsRan, r.Lost, errors.Join(fmt.Errorf("cannot restore the sandbox: %w", err), fault))
		}
	} else {
		h.flags = FlagReseed
		if h.remote().Kept() == 0 && h.Session.Configured() {
			h.flags |= FlagConfigure
		}
	}
	if what := h.Session.Missing(); what != "" {
		h.Session.Forget()
		return &tiers.RejectedError{
			Tier: h.Tier, Missing: what, Effects: tiers.EffectsRan,
			Reason: fmt.Sprintf("it lacks the module %s, which the snippet imported at run time", what),
		}
	}
	if broke := h.Session.Broken(); broke != nil {
		return h.Broken(tiers.EffectsRan, r.Lost, broke)
	}
	if ctx.Err() != nil {
		return h.Broken(tiers.EffectsRan, r.Lost, context.Cause(ctx))
	}
	if fault != nil {
		return h.Broken(tiers.EffectsRan, r.Lost, fault)
	}
	return nil
}

// outOfMemory tells an exception of the interpreter's, or of NumPy's, from one
// that the snippet made itself: that one usually says something.
func outOfMemory(e *tiers.Exception) bool {
	if e == nil {
		return false
	}
	return e.Type == "MemoryError" && e.Message == "" || strings.HasSuffix(e.Type, "._ArrayMemoryError")
}

// healthy runs a check-up after a snippet that may have harmed its interpreter.
func (h *Home) healthy(ctx context.Context, source string) bool {
	if !Reaching(source) {
		return true
	}
	return Checkup(context.WithoutCancel(ctx), func(own *Session, source string) (int, error) {
		return h.remote().Run(own, source, 0, false, 0)
	})
}

// lost says what a return to the kept state takes from the session.
func (h *Home) lost(err error) *tiers.Loss {
	first, state := 1, "a fresh sandbox"
	if kept := h.remote().Kept(); errors.Is(err, ErrRestored) && kept > 0 {
		first, state = kept+1, "the state before this snippet"
		if first < h.Session.Snippet() {
			state = fmt.Sprintf("the state after snippet %d", kept)
		}
	}
	loss := &tiers.Loss{Reason: "The interpreter had to be stopped; the session was restored to " + state + "."}
	for n := first; n <= h.Session.Snippet(); n++ {
		loss.Snippets = append(loss.Snippets, n)
	}
	return loss
}

// Export returns the namespace for another tier.
func (h *Home) Export(ctx context.Context) (tiers.State, error) {
	if h.closed || h.process == nil {
		return tiers.State{}, errClosed
	}
	return h.Session.Export(ctx, h.Tier, h.run(true))
}

// Import brings a namespace from another tier into a fresh sandbox.
func (h *Home) Import(ctx context.Context, state tiers.State) (tiers.Report, error) {
	if h.closed || h.process == nil {
		return tiers.Report{}, errClosed
	}
	return h.Session.Import(ctx, h.Tier, state, h.run(false))
}

// run returns what runs the guest outside of a snippet. Safe leaves a keeper behind: a
// variable that cannot be stopped must not take the others along.
func (h *Home) run(safe bool) Runner {
	return func(source string, flags int) (int, error) {
		flags |= h.flags
		h.flags, h.fresh = 0, false
		code, err := h.remote().Run(h.Session, source, flags, safe, h.Session.Snippet())
		if errors.Is(err, ErrRestored) {
			h.flags = FlagReseed
		}
		return code, err
	}
}

// Aside runs source in the guest apart from the session's accounts, as a snippet of
// no session. What ends badly costs the session its process, as a snippet's.
func (h *Home) Aside(ctx context.Context, limits tiers.Limits, source string) (tiers.Result, error) {
	if h.closed || h.process == nil {
		return tiers.Result{}, errClosed
	}
	own, err := NewSession(ctx, tiers.Config{Limits: limits})
	if err == nil {
		err = own.Begin(ctx, tiers.Job{})
	}
	if err != nil {
		return tiers.Result{}, err
	}
	flags := h.flags &^ FlagConfigure // own has nothing to tell
	h.flags &= FlagConfigure
	h.fresh = false
	code, err := h.remote().Run(own, source, flags, false, 0)
	r := own.End(code)
	if err != nil {
		err = h.restore(ctx, &r, err)
	}
	return r, err
}

// Closed reports whether Close has been called.
func (h *Home) Closed() bool { return h.closed }

// Close ends the session's process. It is idempotent.
func (h *Home) Close() error {
	h.closed = true
	var errs []error
	if h.process != nil {
		errs = append(errs, h.process.Close())
		h.process = nil
	}
	if h.Proxy != nil {
		errs = append(errs, h.Proxy.Close())
	}
	return errors.Join(errs...)
}
