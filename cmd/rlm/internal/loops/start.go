package loops

import (
	"context"
	"crypto/rand"
	"io"
	"slices"
	"sync"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
	"github.com/rlmhq/rlm/cmd/rlm/internal/live"
	"github.com/rlmhq/rlm/cmd/rlm/internal/wiring"
	"github.com/rlmhq/rlm/repl/ledger"
)

// Started holds what a command opens to run a loop. Close it after use.
type Started struct {
	View      *live.View
	Engine    *rlm.Engine
	Tools     *wiring.Tools      // nil for a loop without --tool
	progress  func(ledger.Event) // feeds the view and the spans; nil without a loop
	sendSpans func()
	closers   []io.Closer
}

// start opens what a loop needs. It does not prepare the tiers for a loop that runs no snippets.
func start(ctx context.Context, e *cli.Env, loop string, isQuiet, runsSnippets bool) (*Started, error) {
	s := newStarted(e, isQuiet)
	if err := s.observe(ctx, e, loop, ""); err != nil {
		return nil, s.abandon(err)
	}
	if err := s.openEngine(ctx, e, runsSnippets); err != nil {
		return nil, s.abandon(err)
	}
	return s, nil
}

// Start opens the models, progress and tools that a task needs, and adds them to the task.
func (f *RunFlags) Start(ctx context.Context, e *cli.Env, task *rlm.Task) (*Started, error) {
	s := newStarted(e, f.Quiet || f.estimate)
	if err := f.open(ctx, e, task, s); err != nil {
		return nil, s.abandon(err)
	}
	return s, nil
}

func (f *RunFlags) open(ctx context.Context, e *cli.Env, task *rlm.Task, s *Started) error {
	if !f.ModelIsOptional || wiring.HasModel(e) {
		if err := f.openModels(e, task, s); err != nil {
			return cli.Usage(err)
		}
		if !f.estimate {
			if err := s.observe(ctx, e, "run", f.conversation()); err != nil {
				return err
			}
			task.Config.Progress = s.progress
		}
	}

	if err := f.Files.MakeOutFolder(); err != nil {
		return cli.Usage(err)
	}
	if err := s.openEngine(ctx, e, true); err != nil {
		return err
	}
	tools, err := f.Tools.Open(ctx, e, s.View.Note)
	if err != nil {
		return err
	}
	s.Tools, s.closers = tools, append(s.closers, tools)
	return tools.AddTo(task)
}

// conversation returns the name, for observers, of the conversation that the run's question belongs
// to.
func (f *RunFlags) conversation() string {
	if f.Session == "" && f.Talks {
		return "chat-" + rand.Text()
	}
	return f.Session
}

// openKnowledge loads the configured graphs for a loop without user tools.
func (s *Started) openKnowledge(ctx context.Context, e *cli.Env) (*wiring.Knowledge, error) {
	known, err := wiring.OpenKnowledge(ctx, e, s.View.Note)
	if err == nil {
		s.closers = append(s.closers, known)
	}
	return known, err
}

// openModels gives a task its models and the settings.
func (f *RunFlags) openModels(e *cli.Env, task *rlm.Task, s *Started) error {
	models, err := wiring.OpenModels(e, f.estimate)
	if err != nil {
		return err
	}
	s.closers = append(s.closers, models)
	if err := f.complete(e, task, models); err != nil {
		return err
	}
	if f.ModelIsOptional {
		return nil
	}
	return wiring.RequireModel(task)
}

func newStarted(e *cli.Env, isQuiet bool) *Started {
	v := live.New(e, isQuiet)
	e.Pause = v.Pause
	return &Started{View: v, sendSpans: func() {}}
}

// observe passes the events of a loop to the view and the spans.
func (s *Started) observe(ctx context.Context, e *cli.Env, loop, conversation string) error {
	progress, send, err := wiring.Observe(ctx, e, loop, conversation, s.View.Event)
	if err != nil {
		return cli.Usage(err)
	}
	s.progress, s.sendSpans = progress, sync.OnceFunc(send)
	return nil
}

func (s *Started) openEngine(ctx context.Context, e *cli.Env, runsSnippets bool) (err error) {
	if s.Engine, err = wiring.NewEngine(ctx, e, s.View.Note); err != nil {
		return err
	}
	s.closers = append(s.closers, s.Engine)
	if runsSnippets {
		return wiring.Prepare(ctx, e, s.Engine)
	}
	return nil
}

// finish ends the view and sends the spans, so that the command can print the outcome.
func (s *Started) finish() {
	s.View.Close()
	s.sendSpans()
}

// Close closes everything, in the reverse order of opening. It ignores errors, because nothing that
// a command has printed depends on them.
func (s *Started) Close() {
	for _, c := range slices.Backward(s.closers) {
		_ = c.Close()
	}
	s.finish()
}

// abandon closes everything after an error, and returns the error.
func (s *Started) abandon(err error) error {
	s.Close()
	return err
}

// OpenTalk opens the session of a task, in which each question continues the previous one.
func (f *RunFlags) OpenTalk(
	ctx context.Context, e *cli.Env, engine *rlm.Engine, task *rlm.Task, note func(string, ...any),
) (_ *wiring.Talk, err error) {
	cfg := rlm.SessionConfig{
		Policy: task.Policy, Limits: task.Config.Limits, Deterministic: task.Config.Deterministic,
		Ask: task.Config, Keep: true, Out: task.Config.Out != "",
	}
	cfg.Ask.Out = "" // the caller collects the session's files
	return wiring.OpenTalk(ctx, e, engine, f.Session, &f.Contexts, cfg, note)
}
