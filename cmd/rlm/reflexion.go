package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rlmhq/rlm/cmd/rlm/internal/config"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/otel"
	"github.com/rlmhq/rlm/repl/reflexion"
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
	"model", "sub_model", "default_provider", "prices", "record", "replay", "request_timeout", "request_attempts", "allow_http", "max_reply",
	"max_calls", "max_tokens", "max_input_tokens", "max_output_tokens", "max_usd", "max_time", "calls_at_once", "retries", "trace", "otel",
)

func newReflexion(e *env) *cobra.Command {
	var f reflexionFlags
	cmd := &cobra.Command{
		Use:   "reflexion TASK",
		Short: "Have a model write an answer, and revise it until judges pass it",
		Long:  reflexionLong,
		Example: `  rlm reflexion "how do I set up database migrations?" --facts facts.json --evidence docs/ --evidence src/ --model openai/gpt-5
  rlm reflexion "write the post-mortem" --evidence notes.md --judges 3 --sub-model anthropic/claude-sonnet-4-5 --stream`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("give one task, in quotes, or - to read it from stdin")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), e, args[0]) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.facts, "facts", "", "a JSON `file` with what is known: facts, procedures, the conversation so far")
	flags.StringArrayVar(&f.evidence, "evidence", nil, "file or folder to search for evidence; may be repeated")
	flags.IntVar(&f.judges, "judges", reflexion.DefaultJudges, "independent critiques of each draft, asked for at the same time")
	flags.IntVar(&f.iterations, "max-iterations", reflexion.DefaultIterations, "drafts at most")
	flags.BoolVar(&f.json, "json", false, "print one JSON object: the draft, all iterations, how the run ended, what it used")
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
	cfg, err := f.config(e, task, models)
	if err == nil {
		err = ledger.CheckModels(ctx, cfg.Models, cfg.Model, cfg.JudgeModel)
	}
	if err != nil {
		return &exitError{exitUsage, err}
	}
	view := newView(e, f.quiet)
	defer view.close()
	var sent func()
	if cfg.Progress, sent, err = observe(ctx, e, otel.Reflexion, view.event); err != nil {
		return &exitError{exitUsage, err}
	}
	result, err := reflexion.Run(ctx, cfg)
	view.close()
	sent()
	return f.finish(e, &result, err)
}

// config is what the flags and the settings say of a run.
func (f *reflexionFlags) config(e *env, task string, models ledger.Models) (cfg reflexion.Config, err error) {
	if task == "-" {
		if task, err = readAll(e.stdin, maxQuestion, "the task"); err != nil {
			return cfg, err
		}
	}
	if task = strings.TrimSpace(task); task == "" {
		return cfg, errors.New("the task is empty")
	}
	run, err := runConfig(e, models)
	if err != nil {
		return cfg, err
	}
	run.ByDepth, run.Allowed = nil, nil // for loops with sub-loops
	if err := needModel(run); err != nil {
		return cfg, err
	}
	cfg = reflexion.Config{
		Task: task, Paths: f.evidence, Models: models, Model: run.Model, JudgeModel: run.SubModel, MaxReply: run.MaxReply,
		MaxIterations: f.iterations, Judges: f.judges, Retries: run.Retries, CallsAtOnce: run.CallsAtOnce, Budget: run.Budget,
		Trace: run.Trace, Stream: f.stream && !f.quiet,
	}
	if f.facts == "" {
		return cfg, nil
	}
	file, err := os.Open(f.facts)
	if err != nil {
		return cfg, fmt.Errorf("cannot read the facts: %w", err)
	}
	defer file.Close()
	if cfg.Memory, err = reflexion.ParseMemory(file); err != nil {
		return cfg, fmt.Errorf("--facts %s: %w", f.facts, err)
	}
	return cfg, nil
}

// finish prints what became of a run and returns its exit code.
func (f *reflexionFlags) finish(e *env, r *reflexion.Result, err error) error {
	if err != nil && r.Elapsed == 0 { // nothing was begun
		return &exitError{exitUsage, err}
	}
	e.recorded(r.Trace, f.quiet)
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
		return runFailure(err)
	}
	switch r.Status {
	case reflexion.StatusPassed:
		return nil
	case ledger.StatusPartial:
		return &exitError{exitPartial, errors.New(r.Reason)}
	case reflexion.StatusRejected, reflexion.StatusUnjudged:
		return &exitError{exitNoAnswer, errors.New(r.Reason)}
	default:
		return &exitError{exitBroken, errors.New(r.Reason)}
	}
}
