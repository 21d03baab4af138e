package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/dustin/go-humanize/english"
	"github.com/spf13/cobra"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/cmd/rlm/internal/config"
	"github.com/rlmhq/rlm/repl/distill"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/otel"
	loop "github.com/rlmhq/rlm/repl/run"
)

// distillFlags are the flags of `rlm distill` that are no settings.
type distillFlags struct {
	clusters int
	noEdits  bool
	json     bool
	quiet    bool
}

const distillLong = `Make few findings of many traces of failed runs: clusters of failures with a
common cause, and edits that would mend them, the most promising first.

The file has one JSON object a line, - for stdin. More failures than
trace_threshold go to a run, as of rlm run, whose snippets read all of them;
fewer are clustered by their words, without a model. Edits are proposed if there
is a model. docs/distill.md says what a failure is.

Exit codes: 0 done, 2 usage, a file that cannot be read, no key, unknown model or
server away, 3 no tier may run snippets, 5 something broke, 6 the budget was used
up (what there was is printed), 130 interrupted.`

func newDistill(e *env) *cobra.Command {
	var f distillFlags
	cmd := &cobra.Command{
		Use:   "distill TRACES.jsonl",
		Short: "Cluster traces of failed runs, and propose edits that would mend them",
		Long:  distillLong,
		Example: `  rlm distill traces.jsonl
  rlm distill traces.jsonl --model openai/gpt-5 --sub-model openai/gpt-5-mini --max-usd 5 --json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("give one file of traces, or - for stdin")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), e, args[0]) },
	}
	flags := cmd.Flags()
	flags.IntVar(&f.clusters, "clusters", distill.DefaultClusters, "clusters at most")
	flags.BoolVar(&f.noEdits, "no-edits", false, "propose no edits")
	flags.BoolVar(&f.json, "json", false, "print one JSON object")
	flags.BoolVar(&f.quiet, "quiet", false, "nothing on stderr but errors")
	config.AddFlags(flags, config.In(config.Routing, config.Limits, config.Models, config.Run, config.Triggers))
	return cmd
}

// run distils a file.
func (f *distillFlags) run(ctx context.Context, e *env, name string) (err error) {
	corpus, err := readCorpus(e, name)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	models, err := registry(e, false)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	defer models.Close()
	run, err := runConfig(e, models)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	run.Triggers = triggers(e.settings)
	if run.Model == "" && e.settings.From("sub_model").Kind == config.FromFlag {
		return &exitError{exitUsage, errors.New("--sub-model has no use without --model: runs ask both, and words are clustered without any")}
	}
	view := newView(e, f.quiet)
	defer view.close()
	if run.Model != "" {
		if err := ledger.CheckModels(ctx, models, append([]string{run.Model, run.SubModel}, append(run.ByDepth, run.Allowed...)...)...); err != nil {
			return &exitError{exitUsage, err}
		}
		engine, err := f.engine(ctx, e, view, &run)
		if err != nil {
			return err
		}
		defer engine.Close()
	}
	cfg := distill.Config{Run: run, Clusters: f.clusters, NoEdits: f.noEdits}
	if err := cfg.Check(); err != nil {
		return &exitError{exitUsage, err}
	}
	var sent func()
	if cfg.Run.Progress, sent, err = observe(ctx, e, otel.Distill, view.event); err != nil {
		return &exitError{exitUsage, err}
	}
	result, err := distill.Run(ctx, corpus, cfg)
	view.close()
	sent()
	return f.finish(e, &result, err)
}

// engine makes what runs snippets, and has the run use it.
func (f *distillFlags) engine(ctx context.Context, e *env, view *view, run *loop.Config) (*rlm.Engine, error) {
	p, err := policy(e.settings)
	if err != nil {
		return nil, &exitError{exitUsage, err}
	}
	engine, err := e.engine(ctx, view.note)
	if err != nil {
		return nil, err
	}
	run.Open = engine.Opener(p)
	return engine, nil
}

func readCorpus(e *env, name string) (distill.Corpus, error) {
	if name == "-" {
		return distill.Parse(e.stdin)
	}
	file, err := os.Open(name)
	if err != nil {
		return distill.Corpus{}, fmt.Errorf("cannot read the traces: %w", err)
	}
	defer file.Close()
	corpus, err := distill.Parse(file)
	if err != nil {
		return corpus, fmt.Errorf("%s: %w", name, err)
	}
	return corpus, nil
}

// finish prints what the traces came to, and returns the exit code.
func (f *distillFlags) finish(e *env, r *distill.Result, err error) error {
	if err != nil && r.Elapsed == 0 { // nothing was begun
		return &exitError{exitUsage, err}
	}
	e.recorded(r.Trace, f.quiet)
	if err != nil && len(r.Clusters) == 0 {
		return runFailure(err)
	}
	var writing error
	if f.json {
		writing = printLine(e.stdout, r)
	} else {
		_, writing = io.WriteString(e.stdout, distillText(r))
	}
	if writing != nil {
		return &exitError{exitBroken, fmt.Errorf("cannot write the findings: %w", writing)}
	}
	if err != nil {
		return runFailure(err)
	}
	if r.Partial {
		return &exitError{exitPartial, errors.New(strings.Join(r.Notes, "; "))}
	}
	return nil
}

// distillText is what the traces came to, for people. Names and texts are those of
// traces and models.
func distillText(r *distill.Result) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s of %s, in %s (by %s)\n", english.Plural(r.Failed, "failure", ""), english.Plural(r.Failed+r.Passed, "trace", ""),
		english.Plural(len(r.Clusters), "cluster", ""), r.Method)
	for i, c := range r.Clusters {
		fmt.Fprintf(&b, "\n%d. %s: %d (%.0f%%)", i+1, printable(c.Name), c.Count, 100*c.Share)
		if len(c.Components) > 0 {
			fmt.Fprintf(&b, " in %s", short(strings.Join(c.Components, ", "), 100))
		}
		fmt.Fprintf(&b, "\n   %s\n", short(c.Summary, 200))
		if c.RootCause != "" {
			fmt.Fprintf(&b, "   cause: %s\n", short(c.RootCause, 300))
		}
		fmt.Fprintf(&b, "   such as %s\n", short(strings.Join(c.Failures[:min(5, len(c.Failures))], ", "), 200))
	}
	for _, edit := range r.Edits {
		fmt.Fprintf(&b, "\nedit %d: %s (%s, %s effort), for %s\n   %s\n   because: %s\n   then: %s\n", edit.Priority, printable(edit.Component), edit.Kind, edit.Effort,
			short(strings.Join(edit.Clusters, ", "), 100), short(edit.Change, 500), short(edit.Rationale, 300), short(edit.Prediction, 300))
	}
	return b.String()
}
