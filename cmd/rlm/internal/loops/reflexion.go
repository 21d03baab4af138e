package loops

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
	"github.com/rlmhq/rlm/cmd/rlm/internal/config"
	"github.com/rlmhq/rlm/cmd/rlm/internal/wiring"
	"github.com/rlmhq/rlm/internal/text/quantity"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/reflexion"
)

// The defaults of the flags, equal to those of the loop.
const (
	defaultJudges   = 1
	defaultDrafts   = 3
	defaultClusters = 20
)

// reflexionFlags are the flags of `rlm reflexion` that are not settings.
type reflexionFlags struct {
	nameFlag

	facts      string
	evidence   []string
	embed      string
	judges     int
	iterations int
	json       bool
	stream     bool
	quiet      bool
}

const reflexionLong = `Write an answer with a model, let judges compare it with evidence, and revise it
until no judge finds more than minor issues.

Evidence is the content of --facts, and passages from the files and folders of
--evidence. The search runs again for each draft. --model names the model that
writes, --sub-model the model that judges (default: the same model). Code, not a
model, decides whether a draft passes, by the severity of its issues: see
docs/how-to/reflexion.md.

Only the last draft goes to stdout, even if it did not pass. Its issues and the progress
go to stderr; --stream adds the drafts as they are written.

Exit codes: 0 the draft passed; 2 usage error, missing key, unknown model or
unavailable server; 5 a failure during the run; 6 the budget ran out; 7 the draft
did not pass; 130 interrupted.`

// reflexionSettings selects the settings that apply to a run without snippets.
var reflexionSettings = config.Named(
	"model", "sub_model", "default_provider", "prices", "record", "replay", "request_timeout",
	"request_attempts", "outage", "allow_http", "max_reply",
	"temperature", "top_p", "seed", "reasoning_effort", "extra_body", "max_calls", "max_tokens", "max_input_tokens",
	"max_output_tokens", "max_usd", "max_time", "calls_at_once", "retries", "trace", "otel",
)

// NewReflexion makes the command rlm reflexion.
func NewReflexion(e *cli.Env) *cobra.Command {
	var f reflexionFlags
	cmd := &cobra.Command{
		Use:   "reflexion TASK",
		Short: "Write an answer and revise it until judges accept it",
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
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.begin(e, cmd, "", ""); err != nil {
				return err
			}
			return f.run(cmd.Context(), e, args[0])
		},
	}

	flags := cmd.Flags()
	f.addName(flags)
	flags.StringVar(&f.facts, "facts", "",
		"JSON `file` with prior knowledge: facts, procedures, the conversation so far")
	flags.StringArrayVar(&f.evidence, "evidence", nil,
		"`file` or folder to search for evidence; repeatable")
	flags.StringVar(&f.embed, "embed", "",
		"`model` for embeddings, such as openai/text-embedding-3-small, to compare --evidence also by meaning")
	flags.IntVar(&f.judges, "judges", defaultJudges,
		"number of independent critiques of each draft, requested at the same time")
	flags.IntVar(&f.iterations, "max-iterations", defaultDrafts, "maximum number of drafts")
	flags.BoolVar(&f.json, "json", false,
		"print one JSON object: the draft, all iterations, the ending, the usage")
	flags.BoolVar(&f.stream, "stream", false, "show drafts on stderr as they are written")
	flags.BoolVar(&f.quiet, "quiet", false, "print only errors on stderr")
	config.AddFlags(flags, reflexionSettings)
	return cmd
}

// run performs the task and writes the answer.
func (f *reflexionFlags) run(ctx context.Context, e *cli.Env, task string) error {
	models, err := wiring.OpenModels(e, false)
	if err != nil {
		return cli.Usage(err)
	}
	defer models.Close()
	whole, err := f.task(e, task, models)
	if err != nil {
		return cli.Usage(err)
	}

	s, err := start(ctx, e, "reflexion", f.quiet, false)
	if err != nil {
		return err
	}
	defer s.Close()

	whole.Config.Progress = s.progress
	f.keep(e, &whole.Task, s.View.Note)
	outcome, err := reflexion.RunOn(ctx, s.Engine, whole)
	s.finish()
	f.end(ctx, e, s.Engine, outcome.Status == "passed" || outcome.Status == "rejected")
	return f.finish(e, &outcome, err)
}

// task makes a task from the flags and the settings.
func (f *reflexionFlags) task(
	e *cli.Env, text string, models ledger.Models,
) (task reflexion.Task, err error) {
	if text == "-" {
		if text, err = cli.ReadAll(e.Stdin, maxQuestion, "the task"); err != nil {
			return task, err
		}
	}
	if text = strings.TrimSpace(text); text == "" {
		return task, errors.New("the task is empty")
	}

	var run rlm.Task
	if err := wiring.Configure(e, &run, models); err != nil {
		return task, err
	}
	run.Config.DepthModels, run.Config.AllowedModels = nil, nil // these apply to loops with sub-loops
	if err := wiring.RequireModel(&run); err != nil {
		return task, err
	}

	cfg := &task.Config
	cfg.Task, cfg.Paths = text, f.evidence
	cfg.Models, cfg.Model, cfg.SubModel = models, run.Config.Model, run.Config.SubModel
	cfg.EmbedModel = f.embed
	cfg.MaxReply, cfg.Retries = run.Config.MaxReply, run.Config.Retries
	cfg.CallsAtOnce = run.Config.CallsAtOnce
	cfg.MaxIterations, cfg.Judges, cfg.Budget = f.iterations, f.judges, run.Config.Budget
	cfg.Trace, cfg.Stream = run.Config.Trace, f.stream && !f.quiet

	err = f.readFacts(&task)
	return task, err
}

// readFacts reads the prior knowledge of --facts.
func (f *reflexionFlags) readFacts(task *reflexion.Task) error {
	if f.facts == "" {
		return nil
	}
	file, err := os.Open(f.facts)
	if err != nil {
		return fmt.Errorf("cannot read the facts: %w", err)
	}
	defer file.Close()
	if task.Config.Memory, err = reflexion.ParseMemory(file); err != nil {
		return fmt.Errorf("--facts %s: %w", f.facts, err)
	}

	return nil
}

// finish prints the last draft and returns an error with the exit code.
func (f *reflexionFlags) finish(e *cli.Env, r *reflexion.Outcome, err error) error {
	var setup *rlm.SetupError
	if errors.As(err, &setup) {
		return cli.Usage(err)
	}
	wiring.NoteRecord(e, r.Trace, f.quiet)
	if f.json {
		if err := cli.PrintLine(e.Stdout, r); err != nil {
			return cli.Broken(err)
		}
	} else if r.FinalDraft != "" {
		if err := e.Answer(r.FinalDraft); err != nil {
			return cli.Broken(fmt.Errorf("cannot write the draft: %w", err))
		}
	}

	if !f.quiet {
		f.showEvidence(e, r)
	}
	if !f.quiet || r.Status != "passed" {
		showIssues(e, r)
	}
	if err != nil {
		return cli.AddExitCode(err)
	}
	switch r.Status {
	case "passed":
		return nil
	case ledger.StatusParked:
		return cli.Exit(cli.ExitParked, errors.New(r.Reason))
	case ledger.StatusPartial:
		return cli.Exit(cli.ExitPartial, errors.New(r.Reason))
	case "rejected", "unjudged":
		return cli.Exit(cli.ExitNoAnswer, errors.New(r.Reason))
	default:
		return cli.Broken(errors.New(r.Reason))
	}
}

// showIssues prints the issues of the last judged draft, one per line.
func showIssues(e *cli.Env, r *reflexion.Outcome) {
	for i := len(r.Iterations) - 1; i >= 0; i-- {
		critique := r.Iterations[i].Critique
		if critique == nil {
			continue
		}
		for _, issue := range critique.Issues {
			line := fmt.Sprintf("rlm: %s, %s: %s",
				cli.Escape(issue.Severity), cli.Escape(issue.Type), cli.Shorten(issue.Description, 500))
			if issue.SuggestedFix != "" {
				line += " (fix: " + cli.Shorten(issue.SuggestedFix, 300) + ")"
			}
			_, _ = fmt.Fprintln(e.Stderr, line)
		}
		return
	}
}

// showEvidence prints how many passages of --evidence the judges of the last draft received.
func (f *reflexionFlags) showEvidence(e *cli.Env, r *reflexion.Outcome) {
	if len(f.evidence) == 0 || len(r.Iterations) == 0 {
		return
	}
	passages := 0
	for _, one := range r.Iterations[len(r.Iterations)-1].Evidence {
		if one.Location != "" {
			passages++
		}
	}
	_, _ = fmt.Fprintf(e.Stderr, "rlm: %s of --evidence for the last draft\n",
		quantity.Plural(passages, "passage", ""))
}
