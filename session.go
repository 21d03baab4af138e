package rlm

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rlmhq/rlm/internal/plan/runner"
	"github.com/rlmhq/rlm/internal/snippet/session"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/repl/run"
	"github.com/rlmhq/rlm/router"
	"github.com/rlmhq/rlm/tiers"
)

// SessionConfig describes a session. The zero value is a session without contexts and
// functions, within the default limits.
type SessionConfig struct {
	// Contexts are the inputs of the snippets.
	Contexts []Context
	// Functions are host functions that snippets may call.
	Functions []Function
	// Limits bound each snippet; a zero field means the default.
	Limits tiers.Limits
	// Deterministic makes clocks and randomness the same in every run.
	Deterministic bool
	// Mounts are files and folders of the host that snippets can read. If Out is set, snippets have
	// the folder /out, whose files [Session.Files] copies to the host. Only tier docker supports
	// Mounts and Out.
	Mounts []tiers.Mount
	Out    bool
	// Policy determines which tiers may run the snippets. The zero value allows all but local.
	Policy Policy
	// Labels identify the caller of the session, such as a tenant and a request. They appear in
	// the engine's log and on the containers of tier docker. [tiers.Config] has the rules.
	Labels map[string]string
	// Ask configures the models and the bounds of [Session.Ask]. If it has models, snippets can
	// also call them with llm_query and similar functions. The session sets Question, Inputs, Open,
	// Limits and Deterministic.
	Ask run.Config
	// Keep makes the session a conversation. Ask then works in the session itself instead of
	// a copy, and its variables stay. Snippets find the messages of each question as
	// history_0, history_1 and so on; history is the first of them.
	Keep bool
	// Histories are the messages of earlier questions of a conversation that continues: the
	// Outcome.Messages of each question.
	Histories [][]llm.Message
}

// Policy determines which tiers may run snippets. The zero value allows all but local.
type Policy = router.Policy

// Result reports how a snippet ended and in which tier it ran.
type Result = router.Result

// Session is a persistent namespace. Each snippet runs in the cheapest tier that can run it. A
// session has one owner: a call during another one returns [ErrInUse].
type Session struct {
	engine *Engine
	cfg    SessionConfig

	mu      sync.Mutex // held by the running call
	closed  bool
	runner  *runner.Runner
	release func() // returns the session's memory
	inputs  []*opened
	host    *functionTable
	// models makes the functions that call models. All their calls share one budget.
	models modelTools
	// exchanges reports whether the functions for Set and Get are installed.
	exchanges bool

	// lost is the session's loss that no Result has reported yet.
	lost *tiers.Loss

	variables atomic.Pointer[[]tiers.Variable]
	histories [][]llm.Message // histories of Ask, if the session is a conversation
}

// Open starts a session. It opens no sandbox before the first snippet.
func (e *Engine) Open(ctx context.Context, cfg SessionConfig) (*Session, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if e.life.Err() != nil {
		return nil, fmt.Errorf("cannot open a session: %w", errEngineClosed)
	}
	in, err := openContexts(ctx, cfg.Contexts)
	if err != nil {
		return nil, err
	}
	cfg.Functions, cfg.Labels = slices.Clone(cfg.Functions), maps.Clone(cfg.Labels)

	s := &Session{engine: e, cfg: cfg, inputs: []*opened{in.share()}, host: &functionTable{}}
	if approve := cfg.Ask.Approve; approve != nil {
		s.host.approve = func(ctx context.Context, call tiers.Call) error {
			return approve(ctx, call, ledger.Spending{}) // snippets of a session have no budget
		}
	}
	if err := s.prepare(); err != nil {
		return nil, errors.Join(err, in.release())
	}
	if s.release, err = e.budget.admit(cfg.Limits); err != nil {
		return nil, errors.Join(err, in.release())
	}
	if err := e.adopt(s); err != nil {
		return nil, errors.Join(err, s.close())
	}
	return s, nil
}

// prepare fills the table of functions and makes the runner.
func (s *Session) prepare() error {
	var err error
	if s.host.own, err = addFunctions(s.cfg.Ask.Tools, s.cfg.Functions); err != nil {
		return err
	}
	if s.host.own, err = s.host.own.WithTables(s.engine.sql, s.allInputs()); err != nil {
		return err
	}
	if s.models, err = s.engine.modelTools(s.cfg); err != nil {
		return err
	}
	if s.host.models, err = s.models(s.allInputs(), s.host.own); err != nil {
		return err
	}

	s.histories = s.cfg.Histories
	functions := slices.Concat(s.host.list(), listHistories(s.histories))
	runner, err := s.engine.newRunner(s.cfg.Policy, tiers.Config{
		Host: hostOfCaller{}, Functions: functions, Inputs: s.inputs[0].list,
		Limits: s.cfg.Limits, Deterministic: s.cfg.Deterministic,
		Mounts: s.cfg.Mounts, Out: s.cfg.Out, Labels: s.cfg.Labels,
	})
	s.runner = runner
	return err
}

// hostOfCaller forwards a host call to the host in the call's context. A fork shares the runner's
// host with its original, so only a call's context can identify the session.
type hostOfCaller struct{}

type hostKey struct{}

// Call answers a host call.
func (hostOfCaller) Call(ctx context.Context, call tiers.Call) (tiers.Value, error) {
	host, ok := ctx.Value(hostKey{}).(tiers.Host)
	if !ok {
		return nil, fmt.Errorf("this session has no function %q", call.Function)
	}
	return host.Call(ctx, call)
}

// enter begins a call by the session's owner, which lasts until leave is called. The returned
// context also ends when the engine closes; after an error, enter returns the caller's context.
func (s *Session) enter(ctx context.Context) (_ context.Context, leave func(), err error) {
	if !s.mu.TryLock() {
		return ctx, nil, ErrInUse
	}
	if s.closed {
		s.mu.Unlock()
		return ctx, nil, fmt.Errorf("the session is %w", ErrClosed)
	}
	if s.engine.life.Err() != nil {
		s.mu.Unlock()
		return ctx, nil, fmt.Errorf("cannot use the session: %w", errEngineClosed)
	}

	ctx, release := s.engine.endWithEngine(ctx)
	ctx = s.engine.slots.With(ctx)
	ctx = context.WithValue(ctx, hostKey{}, tiers.Host(s.host))
	return ctx, func() { release(); s.mu.Unlock() }, nil
}

// Run runs a Python snippet in the session's namespace.
func (s *Session) Run(ctx context.Context, source string) (Result, error) {
	return s.RunJob(ctx, tiers.Job{Source: source})
}

// RunJob is like Run, but accepts a snippet in any language and can pass on its output while it
// runs.
//
// If the context ends, the snippet is interrupted, and the session keeps the variables that the
// snippet set. If the snippet could only be killed, the error is a [*tiers.BrokenError] that lists
// the loss. The next result lists this loss as well, together with any loss between the two
// snippets.
func (s *Session) RunJob(ctx context.Context, job tiers.Job) (Result, error) {
	ctx, leave, err := s.enter(ctx)
	if err != nil {
		return Result{}, err
	}
	defer leave()
	if session.TapeOf(ctx).MovesVariable() { // the snippet is repeated
		if err := s.offerExchange(ctx); err != nil {
			return Result{}, err
		}
	}
	return s.runNoted(ctx, job, session.Change{})
}

// runNoted is like run, and records the snippet in the context's change log.
func (s *Session) runNoted(ctx context.Context, job tiers.Job, e session.Change) (Result, error) {
	changes := session.ChangeLogOf(ctx)
	result, err := s.run(changes.Begin(ctx), job)
	changes.End(e, &job, &result.Result, err)
	return result, err
}

// run runs a snippet. The caller has called enter.
func (s *Session) run(ctx context.Context, job tiers.Job) (Result, error) {
	result, err := s.runner.Run(ctx, job)
	if result.Variables != nil {
		s.variables.Store(&result.Variables)
	}
	s.carryLoss(&result, err)
	if err != nil && s.engine.life.Err() != nil {
		err = fmt.Errorf("the engine was %w while the snippet ran: %w", ErrClosed, err)
	}
	return result, err
}

// carryLoss adds the losses of earlier errors to a result. If there is an error, it keeps the
// error's loss for the next result.
func (s *Session) carryLoss(result *Result, err error) {
	if err == nil {
		result.Lost, s.lost = session.JoinLosses(s.lost, result.Lost), nil
		return
	}
	if broken := (*tiers.BrokenError)(nil); errors.As(err, &broken) {
		s.lost = session.JoinLosses(s.lost, broken.Lost)
	}
}

// Explain returns the plan for a snippet: the tiers that may run it, in order, and why. It runs
// nothing. The plan's Invalid describes a syntax error of the snippet; Home is the tier that holds
// the variables.
func (s *Session) Explain(ctx context.Context, job tiers.Job) (router.Plan, error) {
	ctx, leave, err := s.enter(ctx)
	if err != nil {
		return router.Plan{}, err
	}
	defer leave()
	return s.runner.Explain(ctx, job)
}

// Variables returns the variables after the last snippet that ended normally. It may be called at
// any time.
func (s *Session) Variables() []tiers.Variable {
	known := s.variables.Load()
	if known == nil {
		return nil
	}
	return slices.Clone(*known)
}

// AddContext appends contexts for later snippets. It adds all of them or none.
func (s *Session) AddContext(ctx context.Context, contexts ...Context) error {
	in, err := openContexts(ctx, contexts) // before enter, because reading a stream may take long
	if err != nil {
		return err
	}
	ctx, leave, err := s.enter(ctx)
	if err != nil {
		return errors.Join(err, in.close())
	}
	defer leave()

	more := s.host.clone() // its functions have the new contexts
	more.own, err = more.own.WithTables(s.engine.sql, slices.Concat(s.allInputs(), in.list))
	if err != nil {
		return errors.Join(err, in.close())
	}
	isKnown := func(f tiers.Function) bool { return s.host.has(f.Name) }
	added := slices.DeleteFunc(more.list(), isKnown) // the function sql, if this is the first table
	if err := s.runner.Extend(ctx, in.list, added); err != nil {
		return errors.Join(err, in.close())
	}
	s.inputs = append(s.inputs, in.share())

	if more.models, err = s.models(s.allInputs(), more.own); err != nil {
		return err
	}
	s.host = more
	session.ChangeLogOf(ctx).Break("contexts were added")
	return nil
}

// AddFunctions adds host functions for later snippets. It adds all of them or none.
func (s *Session) AddFunctions(ctx context.Context, functions ...Function) error {
	ctx, leave, err := s.enter(ctx)
	if err != nil {
		return err
	}
	defer leave()

	more := s.host.clone()
	if more.own, err = addFunctions(more.own, functions); err != nil {
		return err
	}
	for _, v := range s.Variables() {
		isTaken := func(f Function) bool { return f.tool.Name == v.Name }
		if slices.ContainsFunc(functions, isTaken) {
			return fmt.Errorf("the session has a variable %s: give the function another name", v.Name)
		}
	}
	if more.models, err = s.models(s.allInputs(), more.own); err != nil {
		return err
	}
	added := more.own.Functions()
	if err := s.runner.Extend(ctx, nil, added[len(added)-len(functions):]); err != nil {
		return err
	}
	s.host = more
	s.cfg.Functions = slices.Concat(s.cfg.Functions, functions)
	session.ChangeLogOf(ctx).Break("functions were added")
	return nil
}

// Files copies the files below /out into a folder of the host, which must be empty. It copies only
// regular files, and reports all others. The session must have been opened with Out.
func (s *Session) Files(ctx context.Context, dir string) (tiers.Collected, error) {
	ctx, leave, err := s.enter(ctx)
	if err != nil {
		return tiers.Collected{}, err
	}
	defer leave()
	return s.runner.Collect(ctx, dir)
}

// Fork returns an independent session with a copy of the namespace, and with the same
// contexts and functions.
func (s *Session) Fork(ctx context.Context) (*Session, error) {
	ctx, leave, err := s.enter(ctx)
	if err != nil {
		return nil, err
	}
	defer leave()

	release, err := s.engine.budget.admit(s.cfg.Limits)
	if err != nil {
		return nil, err
	}
	runner, err := s.runner.Fork(ctx)
	if err != nil {
		release()
		return nil, err
	}
	fork := &Session{
		engine: s.engine, cfg: s.cfg, runner: runner, release: release, host: s.host.clone(),
		models: s.models, exchanges: s.exchanges, lost: s.lost, histories: slices.Clone(s.histories),
	}
	for _, in := range s.inputs {
		fork.inputs = append(fork.inputs, in.share())
	}
	fork.variables.Store(s.variables.Load())

	if err := s.engine.adopt(fork); err != nil {
		return nil, errors.Join(err, fork.close())
	}
	return fork, nil
}

// Close ends the session. It is idempotent.
func (s *Session) Close() error {
	if !s.mu.TryLock() {
		return ErrInUse
	}
	defer s.mu.Unlock()
	return s.close()
}

// closeWithEngine waits for the running call and closes the session.
func (s *Session) closeWithEngine() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.close()
}

func (s *Session) close() error {
	if s.closed {
		return nil
	}
	s.closed = true
	s.engine.release(s)

	errs := []error{s.runner.Close()}
	s.release()
	for _, in := range s.inputs {
		errs = append(errs, in.release())
	}
	return errors.Join(errs...)
}

// allInputs returns the session's inputs, ordered by name.
func (s *Session) allInputs() []tiers.Input {
	var all []tiers.Input
	for _, in := range s.inputs {
		all = append(all, in.list...)
	}
	return all
}
