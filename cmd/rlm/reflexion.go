package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/cmd/rlm/internal/config"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/otel"
)

// The defaults of flags, which are those of the loop.
const (
	defaultJudges   = 1
	defaultDrafts   = 3
	defaultClusters = 20
)

// reflexionFlags are the flags of `rlm reflexion` that are no settings.
type reflexionFlags struct {
	facts      string
	evidence   []string
	judges     int
	iterations int
	json       bool
	stream     bool
	quiet      bool
}

const reflexionLong = `Have a model write an answer, have judges hold it against evidence, and have it
revised until no judge finds more than minor issues.

Evidence is what --facts says, and passages of the files and folders that
--evidence names, searched anew for each draft. --model writes; --sub-model judges
(default: the same). Whether a draft passes is decided from the severities of the
issues, not by a model. docs/reflexion.md has the whole of it.

The last draft alone goes to stdout, also if it did not pass; what happens goes
to stderr, with --stream the drafts as they are written, too.

Exit codes: 0 the draft passed, 2 usage, no key, unknown model or server away,
5 something broke, 6 the budget was used up, 7 the draft did not pass,
130 interrupted.`

// reflexionSettings are the settings that a run without snippets has.
var reflexionSettings = config.Named(
	"model", "sub_model", "default_provider", "prices", "record", "replay", "request_timeout",
	"request_attempts", "allow_http", "max_reply", "max_calls", "max_tokens", "max_input_tokens",
	"max_output_tokens", "max_usd", "max_time", "calls_at_once", "retries", "trace", "otel",
)

func newReflexion(e *env) *cobra.Command {
	var f reflexionFlags
	cmd := &cobra.Command{
		Use:   "reflexion TASK",
		Short: "Have a model write an answer, and revise it until judges pass it",
		Long:  reflexionLong,
		Example: `  rlm reflexion "how do I set up database migrations?" \
    --facts facts.json --evidence docs/ --evidence src/ --model openai/gpt-5
  rlm reflexion "write the post-mortem" --evidence notes.md --judges 3 \
    --sub-model anthropic/claude-sonnet-4-5 --stream`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("give one task, in quotes, or - to read it from stdin")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), e, args[0]) },
	}

	flags := cmd.Flags()
	flags.StringVar(&f.facts, "facts", "",
		"a JSON `file` with what is known: facts, procedures, the conversation so far")

	flags.StringArrayVar(&f.evidence, "evidence", nil,
		"file or folder to search for evidence; may be repeated")

	flags.IntVar(&f.judges, "judges", defaultJudges,
		"independent critiques of each draft, asked for at the same time")

	flags.IntVar(&f.iterations, "max-iterations", defaultDrafts, "drafts at most")
	flags.BoolVar(&f.json, "json", false,
		"print one JSON object: the draft, all iterations, how the run ended, what it used")

	flags.BoolVar(&f.stream, "stream", false, "show drafts on stderr as they are written")
	flags.BoolVar(&f.quiet, "quiet", false, "nothing on stderr but errors")
	config.AddFlags(flags, reflexionSettings)
	return cmd
}

// run writes the answer.
func (f *reflexionFlags) run(ctx context.Context, e *env, task string) error {
	models, err := registry(e, false)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	defer models.Close()
	whole, err := f.task(e, task, models)
	if err != nil {
		return &exitError{exitUsage, err}
	}

	view := newView(e, f.quiet)
	defer view.close()
	engine, err := e.newEngine(view.note)
	if err != nil {
		return err
	}
	defer engine.Close()
	progress, sent, err := observe(ctx, e, otel.Reflexion, view.event)
	if err != nil {
		return &exitError{exitUsage, err}
	}

	whole.Config.Progress = progress
	outcome, err := engine.Reflexion(ctx, whole)
	view.close()
	sent()
	return f.finish(e, &outcome, err)
}

// task returns what the flags and the settings say of a run.
func (f *reflexionFlags) task(
	e *env, text string, models ledger.Models,
) (task rlm.ReflexionTask, err error) {
	if text == "-" {
		if text, err = readAll(e.stdin, maxQuestion, "the task"); err != nil {
			return task, err
		}
	}
	if text = strings.TrimSpace(text); text == "" {
		return task, errors.New("the task is empty")
	}

	var run rlm.AnswerTask
	if err := configure(e, &run, models); err != nil {
		return task, err
	}
	run.Config.ByDepth, run.Config.Allowed = nil, nil // for loops with sub-loops
	if err := requireModel(&run); err != nil {
		return task, err
	}

	cfg := &task.Config
	cfg.Task, cfg.Paths = text, f.evidence
	cfg.Models, cfg.Model, cfg.JudgeModel = models, run.Config.Model, run.Config.SubModel
	cfg.MaxReply, cfg.Retries, cfg.CallsAtOnce = run.Config.MaxReply, run.Config.Retries, run.Config.CallsAtOnce
	cfg.MaxIterations, cfg.Judges, cfg.Budget = f.iterations, f.judges, run.Config.Budget
	cfg.Trace, cfg.Stream = run.Config.Trace, f.stream && !f.quiet

	err = f.readFacts(&task)
	return task, err
}

// readFacts reads what is known before the first draft.
func (f *reflexionFlags) readFacts(task *rlm.ReflexionTask) error {
	if f.facts == "" {
		return nil
	}
	file, err := os.Open(f.facts)
	if err != nil {
		return fmt.Errorf("cannot read the facts: %w", err)
	}
	defer file.Close()
	if task.Config.Memory, err = rlm.ParseMemory(file); err != nil {
		return fmt.Errorf("--facts %s: %w", f.facts, err)
	}

	return nil
}

// finish prints what became of a run and returns its exit code.
func (f *reflexionFlags) finish(e *env, r *rlm.ReflexionOutcome, err error) error {
	var setup *rlm.SetupError
	if errors.As(err, &setup) {
		return &exitError{exitUsage, err}
	}
	e.noteRecord(r.Trace, f.quiet)
	if f.json {
		if err := printLine(e.stdout, r); err != nil {
			return &exitError{exitBroken, err}
		}
	} else if r.FinalDraft != "" {
		if err := e.answer(r.FinalDraft); err != nil {
			return &exitError{exitBroken, fmt.Errorf("cannot write the draft: %w", err)}
		}
	}

	if err != nil {
		return addExitCode(err)
	}
	switch r.Status {
	case "passed":
		return nil
	case ledger.StatusPartial:
		return &exitError{exitPartial, errors.New(r.Reason)}
	case "rejected", "unjudged":
		return &exitError{exitNoAnswer, errors.New(r.Reason)}
	default:
		return &exitError{exitBroken, errors.New(r.Reason)}
	}
}
