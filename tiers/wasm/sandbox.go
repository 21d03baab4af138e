package wasm

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tetratelabs/wazero/sys"

	"github.com/rlmhq/rlm/internal/pykernel"
	"github.com/rlmhq/rlm/tiers"
)

// sandbox is one session's interpreter, and the state to put in its place when
// it is lost.
type sandbox struct {
	engine  *engine
	session *pykernel.Session
	in      *instance
	flags   int // for the next run
	closed  bool

	enforced []tiers.Enforcement

	saved    *checkpoint   // nil: the fresh sandbox
	savedAt  time.Time     // when saved was taken
	saveCost time.Duration // what taking it cost
}

var (
	_ tiers.Sandbox      = (*sandbox)(nil)
	_ tiers.Forker       = (*sandbox)(nil)
	_ tiers.Checkpointer = (*sandbox)(nil)
	_ tiers.Exporter     = (*sandbox)(nil)
)

func open(ctx context.Context, e *engine, cfg tiers.Config) (*sandbox, error) {
	session, err := pykernel.NewSession(ctx, cfg)
	if err != nil {
		return nil, err
	}
	s := &sandbox{engine: e, session: session, savedAt: time.Now(), saveCost: 500 * time.Microsecond}
	if err := s.renew(ctx); err != nil {
		return nil, err
	}
	s.enforced = enforced(session.Limits())
	return s, nil
}

// enforced says how each limit is kept.
func enforced(l tiers.Limits) []tiers.Enforcement {
	const clock = "the host's clock, read at each fuel slice of about a millisecond; KeyboardInterrupt, then kill"
	return []tiers.Enforcement{
		{Limit: tiers.LimitWall, Value: l.Wall.String(), Mechanism: clock},
		{Limit: tiers.LimitActive, Value: l.Active.String(), Mechanism: clock},
		{Limit: tiers.LimitMemory, Value: fmt.Sprintf("%d bytes", l.Memory), Mechanism: "the linear memory does not grow beyond it; MemoryError"},
		{Limit: tiers.LimitOutput, Value: fmt.Sprintf("%d bytes", l.Output), Mechanism: "the host counts and drops the rest"},
		{Limit: tiers.LimitHostCalls, Value: fmt.Sprint(l.HostCalls), Mechanism: "the host counts and refuses"},
		{Limit: tiers.LimitFuel, Value: fmt.Sprintf("%d loop headers", l.Fuel), Mechanism: "counted in the guest's machine code; KeyboardInterrupt, then kill"},
	}
}

// renew replaces the instance by one made from the last checkpoint.
func (s *sandbox) renew(ctx context.Context) error {
	if s.in != nil {
		s.in.close()
		s.in = nil
	}
	in, err := s.engine.instantiate(ctx, s.session, s.saved)
	if err != nil {
		return err
	}
	s.in, s.flags = in, pykernel.FlagReseed
	if s.saved == nil && s.session.Configured() {
		s.flags |= pykernel.FlagConfigure
	}
	return nil
}

// Run runs a snippet. See tiers.Sandbox.
func (s *sandbox) Run(ctx context.Context, job tiers.Job) (tiers.Result, error) {
	if s.closed {
		return tiers.Result{}, s.broken(tiers.EffectsNeverRan, nil, errClosed)
	}
	if job.Language != "" && job.Language != tiers.Python {
		return tiers.Result{}, &tiers.RejectedError{
			Tier: Name, Missing: string(job.Language), Effects: tiers.EffectsNeverRan,
			Reason: fmt.Sprintf("it runs Python only, not %s", job.Language),
		}
	}
	if err := ctx.Err(); err != nil {
		return tiers.Result{}, s.broken(tiers.EffectsNeverRan, nil, err)
	}
	if s.in == nil { // an earlier restore failed
		if err := s.renew(ctx); err != nil {
			return tiers.Result{}, s.broken(tiers.EffectsNeverRan, nil, err)
		}
	}
	if job.Rejectable && s.session.Snippet() > 0 {
		s.save()
	}
	s.saveIfCheap()
	if err := s.session.Begin(ctx, job); err != nil {
		return tiers.Result{}, s.broken(tiers.EffectsNeverRan, nil, err)
	}
	s.in.watch.peak, s.in.watch.refused = uint64(s.in.module.Memory().Size()), false
	code, err := s.in.run(ctx, job.Source, s.flags|s.session.Snippet()<<pykernel.OrdinalShift)
	return s.ended(ctx, job, code, err)
}

// healthy runs a check-up after a snippet that may have harmed its interpreter.
func (s *sandbox) healthy(ctx context.Context, source string, code int) bool {
	if code >= 0 && !pykernel.Reaching(source) {
		return true
	}
	if code < 0 {
		// The runtime was interrupted at its own work and may have half a line
		// left to write; the first check-up takes it.
		s.checkup(ctx)
	}
	return s.checkup(ctx)
}

func (s *sandbox) checkup(ctx context.Context) bool {
	defer func() { s.in.session = s.session }()
	return pykernel.Checkup(context.WithoutCancel(ctx), func(own *pykernel.Session, source string) (int, error) {
		s.in.session = own
		return s.in.run(ctx, source, 0)
	})
}

var errClosed = errors.New("the sandbox is closed")

func (s *sandbox) broken(effects tiers.Effects, lost *tiers.Loss, err error) error {
	return &tiers.BrokenError{Tier: Name, Effects: effects, Lost: lost, Err: err}
}

// ended makes the result of a run, and a new instance if the run cost the old
// one its life.
func (s *sandbox) ended(ctx context.Context, job tiers.Job, code int, err error) (tiers.Result, error) {
	fuel, watch := s.in.fuelUsed(), *s.in.watch
	if watch.refused {
		s.session.Refuse(tiers.LimitMemory)
	}
	r := s.session.End(code)
	r.Usage.Fuel, r.Usage.PeakMemory, r.Enforced = fuel, int64(watch.peak), s.enforced
	s.flags = 0
	if changed := s.session.Changed(); changed != nil && err == nil {
		return r, s.broken(tiers.EffectsRan, nil, changed)
	}
	interrupted := s.session.Interrupted()
	if err == nil && (code >= 0 || r.Status == tiers.StatusLimit || interrupted) && s.healthy(ctx, job.Source, code) {
		if interrupted {
			return r, s.broken(tiers.EffectsRan, nil, context.Cause(ctx))
		}
		return r, nil
	}
	cause := death(err)
	if r.Status == tiers.StatusCrashed && watch.refused {
		r.Status, r.Limit = tiers.StatusLimit, tiers.LimitMemory
	}
	if r.Status == tiers.StatusCrashed {
		r.Exception = &tiers.Exception{Type: "InterpreterCrash", Message: cause, Traceback: "the snippet broke its interpreter: " + cause + "\n"}
	}
	r.Lost = s.lost()
	if err := s.renew(context.WithoutCancel(ctx)); err != nil {
		return r, s.broken(tiers.EffectsRan, r.Lost, fmt.Errorf("cannot restore the sandbox: %w", err))
	}
	if broke := s.session.Broken(); broke != nil {
		return r, s.broken(tiers.EffectsRan, r.Lost, broke)
	}
	if what := s.session.Missing(); what != "" && errors.Is(err, errRejected) {
		s.session.Forget()
		return r, &tiers.RejectedError{
			Tier: Name, Missing: what, Effects: tiers.EffectsRan,
			Reason: fmt.Sprintf("it lacks the module %s, which the snippet imported at run time", what),
		}
	}
	if errors.Is(err, errCanceled) || interrupted {
		return r, s.broken(tiers.EffectsRan, r.Lost, context.Cause(ctx))
	}
	return r, nil
}

// death says in a few words why the guest ended.
func death(err error) string {
	var exit exitError
	var wasmExit *sys.ExitError
	switch {
	case err == nil:
		return "its runtime was damaged"
	case errors.As(err, &exit):
		return fmt.Sprintf("it ended the process with exit code %d", exit.code)
	case errors.As(err, &wasmExit):
		return fmt.Sprintf("it ended the process with exit code %d", wasmExit.ExitCode())
	}
	text := err.Error()
	for i, c := range text {
		if c == '\n' || c == '(' && i > 0 {
			return text[:i]
		}
	}
	return text
}

// lost says what a return to the last checkpoint takes from the session.
func (s *sandbox) lost() *tiers.Loss {
	first := 1
	if s.saved != nil {
		first = s.saved.snippet + 1
	}
	loss := &tiers.Loss{}
	for n := first; n <= s.session.Snippet(); n++ {
		loss.Snippets = append(loss.Snippets, n)
	}
	state := "the state before this snippet"
	switch {
	case s.saved == nil:
		state = "a fresh sandbox"
	case len(loss.Snippets) > 1:
		state = fmt.Sprintf("the state after snippet %d", s.saved.snippet)
	}
	loss.Reason = "The interpreter had to be stopped; the session was restored to " + state + "."
	if n := len(loss.Snippets); n > 1 {
		loss.Reason += fmt.Sprintf(" What snippets %d to %d did to the variables is gone.", first, first+n-1)
	}
	return loss
}

// saveIfCheap takes a checkpoint when that costs at most a twentieth of the time
// since the last one: always, in a session that waits for a model; rarely, in one
// that runs snippets in a tight loop.
func (s *sandbox) saveIfCheap() {
	if s.session.Snippet() == 0 || s.saved != nil && s.saved.snippet == s.session.Snippet() {
		return
	}
	if time.Since(s.savedAt) >= 20*s.saveCost {
		s.save()
	}
}

func (s *sandbox) save() {
	begun := time.Now()
	s.saved = take(s.in)
	s.savedAt = time.Now()
	s.saveCost = s.savedAt.Sub(begun)
}

// Checkpoint marks the current state as the one to return to.
func (s *sandbox) Checkpoint() error {
	if s.closed || s.in == nil {
		return errClosed
	}
	s.save()
	return nil
}

// Restore returns to the last checkpoint, or to the fresh sandbox.
func (s *sandbox) Restore(ctx context.Context) error {
	if s.closed {
		return errClosed
	}
	return s.renew(ctx)
}

// Export returns the namespace for another tier.
func (s *sandbox) Export(ctx context.Context) (tiers.State, error) {
	if s.closed || s.in == nil {
		return tiers.State{}, errClosed
	}
	s.save() // a variable that cannot be stopped must not take the others along
	state, err := s.session.Export(ctx, Name, s.runner(ctx))
	if err != nil {
		err = errors.Join(err, s.renew(context.WithoutCancel(ctx)))
	}
	return state, err
}

// Import brings a namespace from another tier into a fresh sandbox.
func (s *sandbox) Import(ctx context.Context, state tiers.State) (tiers.Report, error) {
	if s.closed || s.in == nil {
		return tiers.Report{}, errClosed
	}
	report, err := s.session.Import(ctx, Name, state, s.runner(ctx))
	if err == nil {
		s.save()
	}
	return report, err
}

// runner runs the guest outside of a snippet.
func (s *sandbox) runner(ctx context.Context) pykernel.Runner {
	return func(source string, flags int) (int, error) {
		flags |= s.flags
		s.flags = 0
		return s.in.run(ctx, source, flags)
	}
}

// Fork returns a copy of the sandbox in its current state.
func (s *sandbox) Fork(ctx context.Context) (tiers.Sandbox, error) {
	if s.closed || s.in == nil {
		return nil, errClosed
	}
	session, err := pykernel.NewSession(ctx, s.session.Config())
	if err != nil {
		return nil, err
	}
	session.Continue(s.session)
	forked := &sandbox{engine: s.engine, session: session, enforced: s.enforced, savedAt: time.Now(), saveCost: s.saveCost}
	if s.session.Snippet() > 0 {
		forked.saved = take(s.in)
	}
	if err := forked.renew(ctx); err != nil {
		return nil, err
	}
	return forked, nil
}

// Close frees the sandbox.
func (s *sandbox) Close() error {
	if s.in != nil {
		s.in.retire()
		s.in = nil
	}
	s.closed = true
	return nil
}
