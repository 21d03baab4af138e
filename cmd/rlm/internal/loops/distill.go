package loops

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
	"github.com/rlmhq/rlm/cmd/rlm/internal/config"
	"github.com/rlmhq/rlm/cmd/rlm/internal/wiring"
	"github.com/rlmhq/rlm/internal/text/lazyregexp"
	"github.com/rlmhq/rlm/internal/text/quantity"
	"github.com/rlmhq/rlm/repl/distill"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/reflect"
)

// distillFlags are the flags of `rlm distill` that are not settings.
type distillFlags struct {
	nameFlag

	format   string
	clusters int
	noEdits  bool
	skills   skillbookFlags
	json     bool
	quiet    bool
}

const distillLong = `Reduce many traces of failed runs to clusters of failures with a common cause.
With a model, also propose edits that would fix the failures, the most promising first.

TRACES is a file, a folder with files, or - for stdin; give one or several. A file has
a format of rlm reflect (see docs/reference/traces.md), one JSON object per line, a list of
objects, or one object. With a model, one call clusters the failures. If there are more
failures than trace_threshold, a run reads them instead (see rlm ask). Without a model,
rlm clusters the failures by the words of their errors. docs/how-to/distill.md defines a failure.

Exit codes: 0 done; 2 usage error, unreadable file, missing key, unknown model or
unavailable server; 3 no tier may run snippets; 5 a failure during the run; 6 the
budget ran out (rlm prints the partial findings); 130 interrupted.`

// NewDistill makes the command rlm distill.
func NewDistill(e *cli.Env) *cobra.Command {
	var f distillFlags
	cmd := &cobra.Command{
		Use:   "distill TRACES...",
		Short: "Cluster failed runs and propose edits",
		Long:  distillLong,
		Example: `  rlm distill traces.jsonl
  rlm distill traces.jsonl --model openai/gpt-5 --sub-model openai/gpt-5-mini --max-usd 5 --json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("give traces: a file, a folder, or - for stdin")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.begin(e, cmd, "", ""); err != nil {
				return err
			}
			return f.run(cmd.Context(), e, args)
		},
	}

	flags := cmd.Flags()
	f.addName(flags)
	flags.StringVar(&f.format, "format", reflect.TraceFormats()[0], "format of the traces")
	flags.IntVar(&f.clusters, "clusters", defaultClusters, "maximum number of clusters")
	flags.BoolVar(&f.noEdits, "no-edits", false, "propose no edits")
	f.skills.addIn(flags)
	f.skills.addOut(flags, "the edits that an agent can follow")
	flags.BoolVar(&f.json, "json", false, "print one JSON object")
	flags.BoolVar(&f.quiet, "quiet", false, "print only errors on stderr")
	config.AddFlags(flags,
		config.In(config.Routing, config.Limits, config.Models, config.Run, config.Graphs,
			config.Triggers))

	return cmd
}

// run distils the traces in files.
func (f *distillFlags) run(ctx context.Context, e *cli.Env, names []string) error {
	task, err := f.read(e, names)
	if err != nil {
		return cli.Usage(err)
	}
	models, err := wiring.OpenModels(e, false)
	if err != nil {
		return cli.Usage(err)
	}
	defer models.Close()
	if err := f.complete(e, &task, models); err != nil {
		return cli.Usage(err)
	}

	isAsked := task.Config.Run.Model != "" // without a model, no snippets run
	s, err := start(ctx, e, "distill", f.quiet, isAsked)
	if err != nil {
		return err
	}
	defer s.Close()

	known, err := s.openKnowledge(ctx, e)
	if err != nil {
		return err
	}
	if task.Config.Run.Tools, err = known.AddTo(task.Config.Run.Tools); err != nil {
		return err
	}
	task.Config.Run.Progress = s.progress
	f.keep(e, &task.Task, s.View.Note)
	outcome, err := distill.RunOn(ctx, s.Engine, task)
	s.finish()
	f.end(ctx, e, s.Engine, err == nil && !outcome.Partial)
	kept := errors.Join(known.RememberClusters(outcome), known.Keep(ctx))
	if err == nil && len(outcome.Edits) > 0 {
		kept = errors.Join(kept, f.skills.learnFromEdits(&outcome, s.View.Note))
	}
	return cli.JoinExit(f.finish(e, &outcome, err), kept)
}

// complete copies the flags and the settings into a task.
func (f *distillFlags) complete(e *cli.Env, task *distill.Task, models ledger.Models) error {
	var run rlm.Task
	if err := wiring.Configure(e, &run, models); err != nil {
		return err
	}
	setTriggers(e.Settings, &run)
	if run.Config.Model == "" && e.Settings.From("sub_model").Kind == config.FromFlag {
		return errors.New("--sub-model has no effect without --model: give both")
	}

	task.Config.Run = run.Config
	task.Config.Clusters, task.Config.NoEdits = f.clusters, f.noEdits

	var err error
	task.Policy, err = wiring.Policy(e.Settings)
	return err
}

// read reads the traces and the skillbook into a task.
func (f *distillFlags) read(e *cli.Env, names []string) (task distill.Task, err error) {
	if slices.Contains(names, "-") && f.skills.in == "-" {
		return task, errors.New("stdin cannot be both the traces and the skillbook")
	}
	if f.skills.out != "" && (e.Settings.Model == "" || f.noEdits) {
		return task, errors.New("--skillbook-out needs edits: give a --model that proposes them")
	}
	if task.Corpus, err = f.readCorpus(e, names); err != nil {
		return task, err
	}
	err = f.skills.read(e)
	task.Config.Skillbook = f.skills.text
	return task, err
}

// readCorpus reads the traces in files and folders, or in stdin for "-", and describes them on
// stderr.
func (f *distillFlags) readCorpus(e *cli.Env, names []string) (all distill.Corpus, err error) {
	if err := checkFormat(f.format); err != nil {
		return all, err
	}
	found, err := collectTraces(e, names, maxTraces)
	if err != nil {
		return all, err
	}

	all.Formats = map[string]int{}
	for _, source := range found.sources {
		corpus, err := distill.Parse(strings.NewReader(source.text), f.format)
		if err != nil {
			return all, fmt.Errorf("%s: %w", source.name, err)
		}
		if saysNothing(&corpus) {
			found.notes = append(found.notes, source.name+": left out, because it does not say whether a run failed")
			continue
		}
		if corpus.Note != "" {
			found.notes = append(found.notes, source.name+": "+corpus.Note)
		}
		all.Passed += corpus.Passed
		all.Unmarked += corpus.Unmarked
		for format, n := range corpus.Formats {
			all.Formats[format] += n
		}
		for _, failure := range corpus.Failures {
			failure.ID = nameTrace(failure.ID, &source, &corpus, len(found.sources))
			all.Failures = append(all.Failures, failure)
		}
	}

	if len(all.Failures)+all.Passed == 0 {
		return all, errors.New("no trace says whether its run failed, by members such as success, status or error: " +
			"give traces of rlm reflect's formats, or such objects")
	}
	f.describeCorpus(e, &all, found.notes)
	return all, nil
}

// saysNothing reports whether a source contains only texts or objects of unknown formats, without
// any record of whether a run failed. Such a source has no traces.
func saysNothing(c *distill.Corpus) bool {
	unknown := c.Formats["object"] + c.Formats["reasoning"]
	return len(c.Failures) == 0 && c.Passed == c.Unmarked && unknown == c.Passed
}

// nameTrace returns the name of a failure. A generated ID is replaced with the name of its source
// if there is no other trace, and prefixed with that name if there are several sources.
func nameTrace(id string, source *traceSource, corpus *distill.Corpus, sources int) string {
	switch isAlone := len(corpus.Failures)+corpus.Passed == 1; {
	case !unnamed.MatchString(id):
		return id
	case isAlone && source.name != "-":
		return source.name
	case sources > 1:
		return source.name + " " + id
	}
	return id
}

// unnamed matches generated IDs, which traces without an ID have.
var unnamed = lazyregexp.New(`^(line|trace) \d+$`)

// describeCorpus reports the traces' formats, what was omitted, and how many traces do not record
// whether they failed.
func (f *distillFlags) describeCorpus(e *cli.Env, c *distill.Corpus, notes []string) {
	if f.quiet {
		return
	}
	for _, note := range notes {
		_, _ = fmt.Fprintf(e.Stderr, "rlm: trace %s\n", cli.Escape(note))
	}

	var kinds []string
	for _, format := range slices.Sorted(maps.Keys(c.Formats)) {
		kinds = append(kinds, fmt.Sprintf("%d %s", c.Formats[format], format))
	}
	_, _ = fmt.Fprintf(e.Stderr, "rlm: traces by format: %s\n", strings.Join(kinds, ", "))
	if c.Unmarked > 0 {
		_, _ = fmt.Fprintf(e.Stderr, "rlm: %s as passed without saying whether the run succeeded\n",
			quantity.Plural(c.Unmarked, "trace counts", "traces count"))
	}
}

// finish prints the findings and returns an error with the exit code.
func (f *distillFlags) finish(e *cli.Env, r *distill.Outcome, err error) error {
	var setup *rlm.SetupError
	if errors.As(err, &setup) {
		return cli.Usage(err)
	}
	wiring.NoteRecord(e, r.Trace, f.quiet)
	if err != nil && len(r.Clusters) == 0 {
		return cli.AddExitCode(err)
	}

	var writing error
	if f.json {
		writing = cli.PrintLine(e.Stdout, r)
	} else {
		_, writing = io.WriteString(e.Stdout, formatFindings(r)+f.describeNoEdits(e, r, err))
	}

	if writing != nil {
		return cli.Broken(fmt.Errorf("cannot write the findings: %w", writing))
	}
	if err != nil {
		return cli.AddExitCode(err)
	}
	if r.Partial {
		return cli.Exit(cli.ExitPartial, errors.New(strings.Join(r.Notes, "; ")))
	}

	return nil
}

// formatFindings formats the findings as text. The names and texts come from traces and models, so
// they are escaped.
func formatFindings(r *distill.Outcome) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s of %s, in %s (by %s)\n", quantity.Plural(r.Failed, "failure", ""),
		quantity.Plural(r.Failed+r.Passed, "trace", ""),
		quantity.Plural(len(r.Clusters), "cluster", ""), r.Method)

	for i, c := range r.Clusters {
		fmt.Fprintf(&b, "\n%d. %s\n   %s (%.0f%%)", i+1, cli.Escape(c.Name),
			quantity.Plural(c.Count, "failure", ""), 100*c.Share)
		if len(c.Components) > 0 {
			fmt.Fprintf(&b, " in %s", cli.Shorten(strings.Join(c.Components, ", "), 100))
		}
		fmt.Fprintf(&b, "\n   %s\n", cli.Shorten(c.Summary, 200))
		if c.RootCause != "" {
			fmt.Fprintf(&b, "   cause: %s\n", cli.Shorten(c.RootCause, 300))
		}

		fmt.Fprintf(&b, "   such as %s\n",
			cli.Shorten(strings.Join(c.Failures[:min(5, len(c.Failures))], ", "), 200))
	}

	for _, edit := range r.Edits {
		fmt.Fprintf(&b,
			"\nedit %d: %s (%s, %s effort), for %s\n   %s\n   because: %s\n   expected: %s\n",
			edit.Priority, cli.Escape(edit.Component), edit.Kind, edit.Effort,
			cli.Shorten(strings.Join(edit.Clusters, ", "), 100), cli.Shorten(edit.Change, 500),
			cli.Shorten(edit.Rationale, 300), cli.Shorten(edit.Prediction, 300))
	}

	return b.String()
}

// describeNoEdits explains why there are no edits; the result is empty if there are edits, if none
// were requested, or if the run failed.
func (f *distillFlags) describeNoEdits(e *cli.Env, r *distill.Outcome, failed error) string {
	switch {
	case failed != nil || len(r.Edits) > 0 || f.noEdits || len(r.Clusters) == 0:
		return ""
	case e.Settings.Model == "":
		return "\nno edits: give a --model that proposes them\n"
	case len(r.Notes) > 0:
		return "\nno edits: " + cli.Shorten(r.Notes[len(r.Notes)-1], 300) + "\n"
	}
	return "\nno edits: the model proposes none\n"
}
