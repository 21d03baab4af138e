package local

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rlmhq/rlm/internal/jail"
	"github.com/rlmhq/rlm/internal/pykernel"
	"github.com/rlmhq/rlm/tiers"
)

// sandbox is one session's process.
type sandbox struct {
	tier    *Tier
	session *pykernel.Session
	process *process
	flags   int // for the next run
	closed  bool
	golang  *goSession

	enforced []tiers.Enforcement
	binds    []jail.Bind // of the files of inputs

	fresh  bool      // nothing has run in the process: another is as good
	keptAt time.Time // when the keeper was left behind
}

var (
	_ tiers.Sandbox  = (*sandbox)(nil)
	_ tiers.Exporter = (*sandbox)(nil)
)

func open(ctx context.Context, t *Tier, cfg tiers.Config) (*sandbox, error) {
	session, err := pykernel.NewSession(ctx, cfg)
	if err != nil {
		return nil, err
	}
	s := &sandbox{tier: t, session: session, golang: newGoSession(t, cfg)}
	var paths []string
	s.binds, paths = t.show(cfg.Inputs)
	session.Show(paths)
	if err := s.renew(ctx); err != nil {
		return nil, err
	}
	s.enforced = s.enforcement(session.Limits())
	return s, nil
}

// enforcement says how each limit is kept.
func (s *sandbox) enforcement(l tiers.Limits) []tiers.Enforcement {
	const clock = "the host's clock, read every two milliseconds; KeyboardInterrupt, then SIGKILL"
	memory := "RLIMIT_DATA for each process, MemoryError"
	for _, layer := range s.process.jail.Attestation().Layers {
		if layer.Name == "cgroup" && layer.On {
			memory += fmt.Sprintf("; cgroup %s, %d bytes for the whole tree", layer.Mechanism, treeMemory(l.Memory))
		}
	}
	return []tiers.Enforcement{
		{Limit: tiers.LimitWall, Value: l.Wall.String(), Mechanism: clock},
		{Limit: tiers.LimitActive, Value: l.Active.String(), Mechanism: clock},
		{Limit: tiers.LimitMemory, Value: fmt.Sprintf("%d bytes", l.Memory), Mechanism: memory},
		{Limit: tiers.LimitOutput, Value: fmt.Sprintf("%d bytes", l.Output), Mechanism: "the host counts and drops the rest"},
		{Limit: tiers.LimitHostCalls, Value: fmt.Sprint(l.HostCalls), Mechanism: "the host counts and refuses"},
	}
}

// renew starts a process in place of one that is gone.
func (s *sandbox) renew(ctx context.Context) error {
	if s.process != nil {
		err := s.process.close()
		s.process = nil
		if err != nil {
			return err
		}
	}
	p, err := s.tier.claim(ctx, s.session.Limits(), s.binds)
	if err != nil {
		return err
	}
	s.process, s.keptAt, s.fresh = p, time.Time{}, true
	s.flags = pykernel.FlagReseed
	if s.session.Configured() {
		s.flags |= pykernel.FlagConfigure
	}
	return nil
}

// Run runs a snippet. See tiers.Sandbox.
func (s *sandbox) Run(ctx context.Context, job tiers.Job) (tiers.Result, error) {
	if s.closed {
		return tiers.Result{}, s.broken(tiers.EffectsNeverRan, nil, errClosed)
	}
	if job.Language == tiers.Go {
		return s.runGo(ctx, job)
	}
	if job.Language != "" && job.Language != tiers.Python {
		return tiers.Result{}, &tiers.RejectedError{
			Tier: Name, Missing: string(job.Language), Effects: tiers.EffectsNeverRan,
			Reason: fmt.Sprintf("it runs Python and Go only, not %s", job.Language),
		}
	}
	if err := ctx.Err(); err != nil {
		return tiers.Result{}, s.broken(tiers.EffectsNeverRan, nil, err)
	}
	if s.process == nil { // an earlier restore failed
		if err := s.renew(ctx); err != nil {
			return tiers.Result{}, s.broken(tiers.EffectsNeverRan, nil, err)
		}
	}
	if err := s.session.Begin(ctx, job); err != nil {
		return tiers.Result{}, s.broken(tiers.EffectsNeverRan, nil, err)
	}
	safe := !s.fresh && (job.Rejectable || time.Since(s.keptAt) >= keepShare*keepCost)
	s.fresh = false
	if safe {
		s.keptAt = time.Now()
	}
	code, err := s.process.remote.Run(s.session, job.Source, s.flags|s.session.Snippet()<<pykernel.OrdinalShift, safe, s.session.Snippet()-1)
	return s.ended(ctx, job, code, err)
}

// To leave a keeper behind takes keepCost. One is left if that is at most one part
// in keepShare of the time since the last: a session that waits for a model
// always has one.
const (
	keepCost  = 4 * time.Millisecond
	keepShare = 20
)

var errClosed = errors.New("the sandbox is closed")

func (s *sandbox) broken(effects tiers.Effects, lost *tiers.Loss, err error) error {
	return &tiers.BrokenError{Tier: Name, Effects: effects, Lost: lost, Err: err}
}

// ended makes the result of a run, and a new process if the run cost the old one
// its life.
func (s *sandbox) ended(ctx context.Context, job tiers.Job, code int, err error) (tiers.Result, error) {
	oom := s.process.outOfMemory()
	if oom {
		s.session.Refuse(tiers.LimitMemory)
	}
	r := s.session.End(code)
	r.Usage.PeakMemory, r.Enforced = s.process.peak(err), s.enforced
	if r.Status == tiers.StatusRaised && outOfMemory(r.Exception) {
		r.Status, r.Limit = tiers.StatusLimit, tiers.LimitMemory
	}
	if err == nil {
		s.flags = 0
	}
	if err == nil && (code >= 0 && r.Status != tiers.StatusCrashed || r.Status == tiers.StatusLimit) && s.healthy(ctx, job.Source) {
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
		err = s.process.remote.Discard()
	}
	r.Lost = s.lost(err)
	if errors.Is(err, pykernel.ErrGone) {
		if err := s.renew(context.WithoutCancel(ctx)); err != nil {
			return r, s.broken(tiers.EffectsRan, r.Lost, fmt.Errorf("cannot restore the sandbox: %w", err))
		}
	} else {
		s.flags = pykernel.FlagReseed
		if s.process.remote.Kept() == 0 && s.session.Configured() {
			s.flags |= pykernel.FlagConfigure
		}
	}
	if what := s.session.Missing(); what != "" {
		s.session.Forget()
		return r, &tiers.RejectedError{
			Tier: Name, Missing: what, Effects: tiers.EffectsRan,
			Reason: fmt.Sprintf("it lacks the module %s, which the snippet imported at run time", what),
		}
	}
	if broke := s.session.Broken(); broke != nil {
		return r, s.broken(tiers.EffectsRan, r.Lost, broke)
	}
	if ctx.Err() != nil {
		return r, s.broken(tiers.EffectsRan, r.Lost, context.Cause(ctx))
	}
	return r, nil
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
func (s *sandbox) healthy(ctx context.Context, source string) bool {
	if !pykernel.Reaching(source) {
		return true
	}
	return pykernel.Checkup(context.WithoutCancel(ctx), func(own *pykernel.Session, source string) (int, error) {
		return s.process.remote.Run(own, source, 0, false, 0)
	})
}

// lost says what a return to the kept state takes from the session.
func (s *sandbox) lost(err error) *tiers.Loss {
	first, state := 1, "a fresh sandbox"
	if kept := s.process.remote.Kept(); errors.Is(err, pykernel.ErrRestored) && kept > 0 {
		first, state = kept+1, "the state before this snippet"
		if first < s.session.Snippet() {
			state = fmt.Sprintf("the state after snippet %d", kept)
		}
	}
	loss := &tiers.Loss{Reason: "The interpreter had to be stopped; the session was restored to " + state + "."}
	for n := first; n <= s.session.Snippet(); n++ {
		loss.Snippets = append(loss.Snippets, n)
	}
	return loss
}

// Export returns the namespace for another tier.
func (s *sandbox) Export(ctx context.Context) (tiers.State, error) {
	if !s.closed && s.wasGo() {
		return s.exportGo()
	}
	if s.closed || s.process == nil {
		return tiers.State{}, errClosed
	}
	return s.session.Export(ctx, Name, s.run)
}

// Import brings a namespace from another tier into a fresh sandbox.
func (s *sandbox) Import(ctx context.Context, state tiers.State) (tiers.Report, error) {
	if !s.closed && importable(state) {
		return s.importGo(ctx, state)
	}
	if s.closed || s.process == nil {
		return tiers.Report{}, errClosed
	}
	return s.session.Import(ctx, Name, state, s.run)
}

// run runs the guest outside of a snippet.
func (s *sandbox) run(source string, flags int) (int, error) {
	flags |= s.flags
	s.flags, s.fresh = 0, false
	return s.process.remote.Run(s.session, source, flags, false, 0)
}

// Close ends the sandbox.
func (s *sandbox) Close() error {
	s.closed = true
	err := s.golang.close()
	if s.process == nil {
		return err
	}
	p := s.process
	s.process = nil
	return errors.Join(err, p.close())
}
