package loops

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
	"github.com/rlmhq/rlm/cmd/rlm/internal/config"
	"github.com/rlmhq/rlm/cmd/rlm/internal/wiring"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/reflect"
)

// maxTemplate is the maximum size of the prompt template, in bytes.
const maxTemplate = 1 << 20

// reflectFlags are the flags of `rlm reflect` that are not settings.
type reflectFlags struct {
	nameFlag

	question, feedback, truth, format, template string
	skills                                      skillbookFlags
	json, quiet                                 bool
}

const reflectLong = `Find the lessons in the record of an agent's work.

A model reads the record with snippets, and asks a sub-agent about parts of the
record. The snippets run in a sandbox, where the record is in the variables trace and
traces. The analysis is the value that a snippet passes to FINAL: the errors and their
causes, the correct approach, the lessons, and which strategies of the skillbook
helped.

TRACE is a file, a folder with traces, or - for stdin; give one or several. A trace can
have messages of model APIs, logs of agents, spans of observability tools,
trajectories of benchmarks, or plain text. rlm detects its format and names it on
stderr; docs/reference/traces.md lists all formats. The analysis goes to stdout as Markdown.

Exit codes are those of rlm ask.`

// NewReflect makes the command rlm reflect.
func NewReflect(e *cli.Env) *cobra.Command {
	var f reflectFlags
	cmd := &cobra.Command{
		Use:   "reflect TRACE...",
		Short: "Find the lessons in the record of an agent's work",
		Long:  reflectLong,
		Example: `  rlm reflect run.json --model openai/gpt-5 --sub-model openai/gpt-5-mini
  rlm reflect chat.json --format conversation --question "book a table" \
    --ground-truth "booked for 8 pm" --skillbook skills.md
  rlm reflect ~/.claude/projects/app --model openai/gpt-5
  rlm reflect run.json --model scripted/replies.yaml --json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("give a trace: a file, a folder, or - for stdin")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.begin(e, cmd, "", ""); err != nil {
				return err
			}
			return f.run(cmd.Context(), e, cmd.Flags(), args)
		},
	}

	flags := cmd.Flags()
	f.addName(flags)
	f.skills.addIn(flags)
	f.skills.addOut(flags, "the lessons and tags of the analysis")
	flags.StringVar(&f.question, "question", "", "the agent's task; overrides the one in the trace")
	flags.StringVar(&f.feedback, "feedback", "",
		"the environment's feedback on the answer; overrides the one in the trace")
	flags.StringVar(&f.truth, "ground-truth", "",
		"the expected answer; overrides the one in the trace")
	flags.StringVar(&f.format, "format", reflect.TraceFormats()[0],
		"format of the trace: "+strings.Join(reflect.TraceFormats(), ", "))
	flags.StringVar(&f.template, "prompt-template", "",
		"`file` with the first message in place of the built-in one; see docs/how-to/reflect.md")
	flags.BoolVar(&f.json, "json", false,
		"print one JSON object: the analysis, the ending, the usage")
	flags.BoolVar(&f.quiet, "quiet", false, "print only errors on stderr")
	config.AddFlags(flags, isReflectSetting)
	return cmd
}

// isReflectSetting reports whether a setting applies to a reflection.
func isReflectSetting(s config.Setting) bool {
	if config.Named("depth_models", "allowed_models")(s) {
		return false
	}

	ofGroup := config.In(config.Routing, config.Limits, config.Models, config.Graphs, config.Reflect)
	byName := config.Named("max_tokens", "max_input_tokens", "max_output_tokens", "max_usd",
		"max_time", "calls_at_once", "synthesis", "trace", "otel")

	return ofGroup(s) || byName(s)
}

// run runs the reflection.
func (f *reflectFlags) run(ctx context.Context, e *cli.Env, flags *pflag.FlagSet, traces []string) error {
	task, models, err := f.task(e, flags, traces)
	if err != nil {
		return cli.Usage(err)
	}
	defer models.Close()
	s, err := start(ctx, e, "reflect", f.quiet, true)
	if err != nil {
		return err
	}
	defer s.Close()

	known, err := s.openKnowledge(ctx, e)
	if err != nil {
		return err
	}
	if task.Config.Tools, err = known.AddTo(task.Config.Tools); err != nil {
		return err
	}
	task.Config.Progress = s.progress
	f.keep(e, &task.Task, s.View.Note)
	outcome, err := reflect.RunOn(ctx, s.Engine, task)
	s.finish()
	f.end(ctx, e, s.Engine, isAnalysed(&outcome))
	kept := errors.Join(known.RememberReflection(task.Subject.Question, outcome), known.Keep(ctx))
	if isAnalysed(&outcome) {
		learned := f.skills.learnFromReflection(task.Subject.Question, &outcome, s.View.Note)
		kept = errors.Join(kept, learned)
	}
	return cli.JoinExit(f.finish(e, outcome, err), kept)
}

// task makes a task from the flags and settings. The caller must close the models, which are a
// registry.
func (f *reflectFlags) task(
	e *cli.Env, flags *pflag.FlagSet, traces []string,
) (task reflect.Task, models io.Closer, err error) {
	if err := f.readSubject(e, flags, traces, &task); err != nil {
		return task, nil, err
	}
	if task.Policy, err = wiring.Policy(e.Settings); err != nil {
		return task, nil, err
	}

	all, err := wiring.OpenModels(e, false)
	if err != nil {
		return task, nil, err
	}
	c := e.Settings
	if c.Model == "" {
		err = wiring.ErrNoModel
	} else {
		err = wiring.CheckModels(all, []string{c.Model, c.SubModel})
	}

	if err == nil {
		err = configureReflection(e, &task, all)
	}
	if err == nil && f.template != "" {
		task.Config.PromptTemplate, err = cli.ReadFile(e, f.template, maxTemplate, "the prompt template")
	}
	if err != nil {
		return task, nil, errors.Join(err, all.Close())
	}

	return task, all, nil
}

// configureReflection copies the settings into a task.
func configureReflection(e *cli.Env, task *reflect.Task, models ledger.Models) (err error) {
	c, cfg := e.Settings, &task.Config
	cfg.Models, cfg.Model, cfg.SubModel = models, c.Model, c.SubModel
	cfg.MaxReply = int(c.MaxReply)
	cfg.Limits, cfg.Timeout, cfg.Deterministic = wiring.Limits(c, wiring.RunOutput), c.Timeout, c.Deterministic
	cfg.MaxIterations, cfg.MaxLLMCalls = int(c.MaxIterations), int(c.MaxLLMCalls)
	cfg.MaxContextChars, cfg.MaxOutputChars = int(c.MaxContextChars), int(c.MaxOutputChars)
	cfg.Budget = wiring.Budget(c)
	cfg.Budget.Calls = 0 // MaxLLMCalls bounds the calls
	cfg.CallsAtOnce = int(c.CallsAtOnce)

	cfg.NoLLMQuery, cfg.NoSubagent = !c.EnableLLMQuery, !c.EnableSubagent
	cfg.SubagentMaxTokens = int(c.SubagentMaxTokens)
	cfg.SubagentTemperature = &c.SubagentTemperature
	cfg.SubagentSystemPrompt, cfg.NoSynthesis = c.SubagentSystemPrompt, !c.Synthesis

	cfg.Trace, err = wiring.TraceFolder(c.Trace)
	return err
}

// readSubject reads the traces and the skillbook, and applies the flags that replace parts of the
// traces.
func (f *reflectFlags) readSubject(
	e *cli.Env, flags *pflag.FlagSet, traces []string, task *reflect.Task,
) error {
	if slices.Contains(traces, "-") && f.skills.in == "-" {
		return errors.New("stdin cannot be both the trace and the skillbook")
	}
	subject, err := f.readTraces(e, traces)
	if err != nil {
		return err
	}

	if err := f.skills.read(e); err != nil {
		return err
	}
	subject.Skillbook = f.skills.text

	if flags.Changed("question") {
		subject.Question = f.question
	}
	if flags.Changed("ground-truth") {
		subject.GroundTruth = &f.truth
	}
	if flags.Changed("feedback") {
		subject.Feedback = &f.feedback
	}

	task.Subject = subject
	return nil
}

// isAnalysed reports whether a reflection produced an analysis.
func isAnalysed(outcome *reflect.Outcome) bool {
	return outcome.Status == ledger.StatusAnswered || outcome.Status == ledger.StatusSynthesised
}

// finish prints the analysis and returns an error with the exit code.
func (f *reflectFlags) finish(e *cli.Env, outcome reflect.Outcome, err error) error {
	var setup *rlm.SetupError
	if errors.As(err, &setup) {
		return cli.Usage(err)
	}
	wiring.NoteRecord(e, outcome.Trace, f.quiet)
	var writing error
	if f.json {
		writing = cli.PrintLine(e.Stdout, outcome)
	} else if isAnalysed(&outcome) {
		_, writing = io.WriteString(e.Stdout, formatAnalysis(&outcome))
	}

	if writing != nil {
		return cli.Broken(fmt.Errorf("cannot write the analysis: %w", writing))
	}
	if err != nil {
		return cli.AddExitCode(err)
	}

	return ExitForStatus(e, outcome.Status, outcome.Reason, f.quiet)
}

// formatAnalysis formats an analysis as Markdown. A model wrote its strings, so they are escaped.
func formatAnalysis(outcome *reflect.Outcome) string {
	o := &outcome.Output
	var b strings.Builder
	if outcome.Status == ledger.StatusSynthesised {
		fmt.Fprintf(&b, "> Partial: %s. This is the best assessment so far.\n\n", cli.Escape(outcome.Reason))
	}
	for _, part := range []struct{ title, text string }{
		{"Key insight", o.KeyInsight},
		{"Reasoning", o.Reasoning},
		{"Error", o.ErrorIdentification},
		{"Root cause", o.RootCauseAnalysis},
		{"Correct approach", o.CorrectApproach},
	} {
		if text := strings.TrimSpace(part.text); text != "" {
			fmt.Fprintf(&b, "## %s\n\n%s\n\n", part.title, cli.EscapeKeepingLines(text))
		}
	}

	if len(o.ExtractedLearnings) > 0 {
		b.WriteString("## Learnings\n\n")
	}
	for _, l := range o.ExtractedLearnings {
		fmt.Fprintf(&b, "- %s (atomicity %.2f)", cli.Escape(l.Learning), l.AtomicityScore)
		if l.Evidence != "" {
			b.WriteString("\n  evidence: " + cli.Escape(l.Evidence))
		}
		b.WriteString("\n")
	}

	if len(o.SkillTags) > 0 {
		b.WriteString("\n## Skills\n\n")
	}
	for _, tag := range o.SkillTags {
		fmt.Fprintf(&b, "- %s: %s\n", cli.Escape(tag.ID), cli.Escape(tag.Tag))
	}

	return strings.TrimSpace(b.String()) + "\n"
}
