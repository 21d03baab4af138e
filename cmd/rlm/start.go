package main

import (
	"context"
	"crypto/rand"
	"io"
	"slices"
	"sync"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/repl/ledger"
)

// started is what a command opens to run a loop. Close it after use.
type started struct {
	view      *view
	engine    *rlm.Engine
	tools     *tools             // nil for a loop without --tool
	progress  func(ledger.Event) // feeds the view and the spans, nil without a loop
	sendSpans func()
	closers   []io.Closer
}

// start opens what a loop needs. A loop whose snippets run in no tier leaves the tiers unprepared.
func (e *env) start(ctx context.Context, loop string, isQuiet, runsSnippets bool) (*started, error) {
	s := newStarted(e, isQuiet)
	if err := s.observe(ctx, e, loop, ""); err != nil {
		return nil, s.abandon(err)
	}
	if err := s.openEngine(ctx, e, runsSnippets); err != nil {
		return nil, s.abandon(err)
	}
	return s, nil
}

// start opens what the run of a task needs, and completes the task with it: models, progress
// and tools.
func (f *runFlags) start(ctx context.Context, e *env, task *rlm.AnswerTask) (*started, error) {
	s := newStarted(e, f.quiet || f.estimate)
	if err := f.open(ctx, e, task, s); err != nil {
		return nil, s.abandon(err)
	}
	return s, nil
}

func (f *runFlags) open(ctx context.Context, e *env, task *rlm.AnswerTask, s *started) error {
	if !f.modelIsOptional || e.hasModel() {
		if err := f.openModels(e, task, s); err != nil {
			return Usage(err)
		}
		if !f.estimate {
			if err := s.observe(ctx, e, "run", f.conversation()); err != nil {
				return err
			}
			task.Config.Progress = s.progress
		}
	}

	if err := f.files.makeOutFolder(); err != nil {
		return Usage(err)
	}
	if err := s.openEngine(ctx, e, true); err != nil {
		return err
	}
	tools, err := f.tools.open(ctx, e, s.view.note)
	if err != nil {
		return err
	}
	s.tools, s.closers = tools, append(s.closers, tools)
	return tools.addTo(task)
}

// conversation returns a name for the conversation of the run's questions, for observers.
func (f *runFlags) conversation() string {
	if f.session == "" && f.talks {
		return "chat-" + rand.Text()
	}
	return f.session
}

// openKnowledge loads the graphs of the settings for a loop without tools of the user.
func (s *started) openKnowledge(ctx context.Context, e *env) (*knowledge, error) {
	known, err := e.openKnowledge(ctx, s.view.note)
	if err == nil {
		s.closers = append(s.closers, known)
	}
	return known, err
}

// openModels gives a task its models and the settings.
func (f *runFlags) openModels(e *env, task *rlm.AnswerTask, s *started) error {
	models, err := registry(e, f.estimate)
	if err != nil {
		return err
	}
	s.closers = append(s.closers, models)
	if err := f.complete(e, task, models); err != nil {
		return err
	}
	if f.modelIsOptional {
		return nil
	}
	return requireModel(task)
}

func newStarted(e *env, isQuiet bool) *started {
	v := newView(e, isQuiet)
	e.pause = v.pause
	return &started{view: v, sendSpans: func() {}}
}

// observe lets the view and the spans see the events of a loop.
func (s *started) observe(ctx context.Context, e *env, loop, conversation string) error {
	progress, send, err := observe(ctx, e, loop, conversation, s.view.event)
	if err != nil {
		return Usage(err)
	}
	s.progress, s.sendSpans = progress, sync.OnceFunc(send)
	return nil
}

func (s *started) openEngine(ctx context.Context, e *env, runsSnippets bool) (err error) {
	if s.engine, err = e.newEngine(ctx, s.view.note); err != nil {
		return err
	}
	s.closers = append(s.closers, s.engine)
	if runsSnippets {
		return e.prepare(ctx, s.engine)
	}
	return nil
}

// finish ends the view and sends the spans, so that the command can print the outcome.
func (s *started) finish() {
	s.view.close()
	s.sendSpans()
}

// close closes everything, in the reverse order of opening. Nothing that a command has printed
// depends on an error here.
func (s *started) close() {
	for _, c := range slices.Backward(s.closers) {
		_ = c.Close()
	}
	s.finish()
}

// abandon closes what is open after an error, and returns the error.
func (s *started) abandon(err error) error {
	s.close()
	return err
}

// openTalk opens the session of a task, whose questions continue each other.
func (f *runFlags) openTalk(
	ctx context.Context, e *env, engine *rlm.Engine, task *rlm.AnswerTask, note func(string, ...any),
) (_ *talk, err error) {
	cfg := rlm.SessionConfig{
		Policy: task.Policy, Limits: task.Config.Limits, Deterministic: task.Config.Deterministic,
		Ask: task.Config, Keep: true, Out: task.Config.Out != "",
	}
	cfg.Ask.Out = "" // the caller collects the session's files
	return e.openKept(ctx, engine, f.session, &f.contexts, cfg, note)
}
