package loops

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
	"github.com/rlmhq/rlm/cmd/rlm/internal/code"
	"github.com/rlmhq/rlm/cmd/rlm/internal/config"
	"github.com/rlmhq/rlm/cmd/rlm/internal/wiring"
	"github.com/rlmhq/rlm/internal/plan/results"
	"github.com/rlmhq/rlm/repl/ledger"
)

// maxQuestion and maxSchema bound a question and a contract, in bytes.
const (
	maxQuestion = 1 << 20
	maxSchema   = 1 << 20
)

// RunFlags are the flags of `rlm ask` that are not settings.
type RunFlags struct {
	nameFlag

	Contexts wiring.ContextFlags
	Session  string // the name of a session to continue
	Talks    bool   // true for rlm chat
	// ModelIsOptional is set for rlm repl, where most lines need no model.
	ModelIsOptional bool
	schema          string
	kind            string
	estimate        bool
	json            bool
	Quiet           bool
	verbose         bool
	events          bool
	stream          bool
	Tools           wiring.ToolFlags
	Files           wiring.FileFlags // only --out

	// only for rlm hook; set by its caller
	longHorizon bool
	traces      int64
	nodes       int64
}

const runLong = `Let a model answer a question about inputs of any size.

The root model learns the kind and size of each context and its first 200
characters; --preview=false hides the characters. The model writes snippets, which
run in a sandbox. There, the contexts are variables, and snippets can call models on
parts of the contexts. The answer is the value that a snippet passes to FINAL.

Only the answer goes to stdout: text unchanged, any other value as JSON. Progress
goes to stderr, on a terminal as a live tree.

Exit codes: 0 answered; 2 usage error, missing key, unknown model or unavailable
server; 3 no tier may run snippets; 5 a failure during the run; 6 the budget ran out
(rlm prints the partial answer); 7 no answer; 8 a call waits for a decision; 130
interrupted.`

// NewRun makes the command rlm ask.
func NewRun(e *cli.Env) *cobra.Command {
	var f RunFlags
	cmd := &cobra.Command{
		Use:     "ask QUESTION",
		Aliases: []string{"run"},
		Short:   "Let a model answer a question about inputs of any size",
		Long:    runLong,
		Example: `  rlm ask "which services failed, and why?" --context logs/ \
    --model openai/gpt-5 --sub-model openai/gpt-5-mini
  rlm ask "is there a security risk?" --context diff.txt --output-type bool --max-usd 2
  rlm ask "count the rows" --context big.csv --model scripted/replies.yaml`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("give one question, in quotes, or - to read it from stdin")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.runKept(cmd, e, args[0])
		},
	}

	f.AddTo(cmd.Flags(), e)
	return cmd
}

// AddTo adds the flags of rlm ask.
func (f *RunFlags) AddTo(flags *pflag.FlagSet, e *cli.Env) {
	f.Contexts.Add(flags,
		"`file` or directory to work on, - for stdin; repeatable")
	f.AddSession(flags)
	f.addName(flags)
	f.Tools.Add(flags, e)
	f.Files.AddOut(flags)
	flags.StringVar(&f.schema, "output-schema", "",
		"`file` with the JSON Schema that the answer must meet")
	flags.StringVar(&f.kind, "output-type", "",
		"the `type` that the answer must have, such as bool or list[str]; instead of --output-schema")
	flags.BoolVar(&f.estimate, "estimate", false,
		"print an estimate of the run's cost, and run nothing")
	flags.BoolVar(&f.json, "json", false,
		"print one JSON object: the answer, the ending, the usage")
	flags.BoolVar(&f.Quiet, "quiet", false, "print only errors on stderr")
	flags.BoolVarP(&f.verbose, "verbose", "v", false,
		"also show the code of each snippet and its output, on stderr")
	flags.BoolVar(&f.events, "events", false,
		"print each event of the run as a line of JSON on stdout; the last line is that of --json")
	flags.BoolVar(&f.stream, "stream", true, "on a terminal, show the root's replies as they arrive")
	config.AddFlags(flags,
		config.In(config.Routing, config.Limits, config.Models, config.Run, config.Graphs))
}

// AddSession adds the flag --session.
func (f *RunFlags) AddSession(flags *pflag.FlagSet) {
	wiring.AddSession(flags, &f.Session,
		"`name` of a session that keeps contexts, variables and history for the next question")
}

// runKept answers the question of rlm ask, and keeps the run. A named run can be continued.
func (f *RunFlags) runKept(cmd *cobra.Command, e *cli.Env, question string) error {
	switch {
	case f.Name == "" && (f.Session != "" || f.estimate || question == "-" && f.Contexts.UseStdin()):
		return f.run(cmd.Context(), e, question)
	case f.Name == "":
	case f.Session != "":
		return cli.Usage(errors.New("give --name or --session, not both"))
	case f.estimate:
		return cli.Usage(errors.New("an estimate runs nothing: omit --name"))
	case f.Contexts.UseStdin():
		return cli.Usage(errors.New("a named run reads its contexts again when it continues: " +
			"give a file in place of stdin"))
	}

	whole := question
	if question == "-" {
		var err error
		if whole, err = cli.ReadAll(e.Stdin, maxQuestion, "the question"); err != nil {
			return cli.Usage(err)
		}
	}
	if err := f.begin(e, cmd, question, strings.TrimSpace(whole)); err != nil {
		return err
	}
	return f.run(cmd.Context(), e, whole)
}

// run answers the question.
func (f *RunFlags) run(ctx context.Context, e *cli.Env, question string) error {
	f.json = f.json || f.events
	task, err := f.Task(e, question)
	if err != nil {
		return cli.Usage(err)
	}
	if f.estimate && f.Session != "" {
		return cli.Usage(errors.New("--estimate cannot look into a session: omit --session"))
	}
	if !f.Contexts.UseStdin() {
		e.NoteUnread(e.NoteUnless(f.Quiet))
		defer e.NoteUnread(e.NoteUnless(f.Quiet)) // a slow writer may have sent its data late
	}
	s, err := f.Start(ctx, e, &task)
	if err != nil {
		return err
	}
	defer s.Close()
	if f.estimate {
		task.Config.Trace = ""
		return f.showEstimate(ctx, e, s.Engine, task)
	}

	s.View.Verbose = f.verbose
	f.keep(e, &task.Task, s.View.Note)
	made := code.NewGallery(e, f.Files.Out, s.View.Note)
	lines := &eventWriter{w: e.Stdout}
	task.Config.Progress = func(event ledger.Event) {
		s.progress(event)
		made.Event(event)
		if f.events {
			lines.event(event)
		}
	}
	task.Config.Stream, task.Config.Out = f.stream && s.View.IsLive(), f.Files.Out
	outcome, err := f.answer(ctx, e, s.Engine, task, s.View.Note)
	s.finish()
	f.more, f.quiet = raiseBudget(&outcome), f.Quiet
	f.end(ctx, e, s.Engine, !canContinue(&outcome, err))
	if !f.json {
		made.DrawAnswer()
	}
	if outcome.Status == "" { // the session could not be opened
		return err
	}

	known := s.Tools.Known
	kept := errors.Join(known.RememberRun(task.Config.Question, outcome), known.Keep(ctx))
	if lines.err != nil {
		failed := fmt.Errorf("cannot write an event: %w", lines.err)
		return cli.JoinExit(cli.Broken(failed), kept)
	}
	return cli.JoinExit(f.finish(e, outcome, errors.Join(err, made.Failed)), kept)
}

// answer answers the question of a task, in the task's session if there is one.
func (f *RunFlags) answer(
	ctx context.Context, e *cli.Env, engine *rlm.Engine, task rlm.Task, note func(string, ...any),
) (outcome rlm.Outcome, err error) {
	if f.Session == "" {
		return engine.Ask(ctx, task)
	}
	talk, err := f.OpenTalk(ctx, e, engine, &task, note)
	if err != nil {
		return outcome, err
	}
	defer func() { err = errors.Join(err, talk.Close()) }()
	outcome, err = talk.Ask(ctx, task.Config.Question)
	if f.Files.Out != "" {
		got, failed := talk.Session.Files(context.WithoutCancel(ctx), f.Files.Out)
		outcome.Collected, err = &got, errors.Join(err, failed)
	}
	return outcome, err
}

// Task makes a task from the flags.
func (f *RunFlags) Task(e *cli.Env, question string) (task rlm.Task, err error) {
	if question == "-" {
		if f.Contexts.UseStdin() {
			return task, errors.New("stdin cannot be both the question and a context")
		}
		if question, err = cli.ReadAll(e.Stdin, maxQuestion, "the question"); err != nil {
			return task, err
		}
	}

	if question = strings.TrimSpace(question); question == "" {
		return task, errors.New("the question is empty")
	}
	return f.NewTask(e, question)
}

// NewTask returns a task with the contexts of --context, under the policy.
func (f *RunFlags) NewTask(e *cli.Env, question string) (task rlm.Task, err error) {
	task.Config.Question = question
	if task.Policy, err = wiring.Policy(e.Settings); err != nil {
		return task, err
	}

	if f.Session == "" && !f.Talks { // otherwise the session opens them
		task.Contexts, err = f.Contexts.Open(e, e.NoteUnless(f.Quiet))
	}
	return task, err
}

// complete copies the settings and the contract into a task.
func (f *RunFlags) complete(e *cli.Env, task *rlm.Task, models ledger.Models) (err error) {
	if err := wiring.Configure(e, task, models); err != nil {
		return err
	}
	switch {
	case f.schema != "" && f.kind != "":
		return errors.New("give --output-schema or --output-type, not both")
	case f.schema != "":
		text, err := cli.ReadFile(e, f.schema, maxSchema, "the contract")
		if err != nil {
			return err
		}
		if !json.Valid([]byte(text)) {
			return fmt.Errorf("the contract %s is not valid JSON", f.schema)
		}
		task.Config.Schema = json.RawMessage(text)
	case f.kind != "":
		task.Config.Schema, err = json.Marshal(f.kind)
	}

	return err
}

// finish prints the answer and returns an error with the exit code.
func (f *RunFlags) finish(e *cli.Env, outcome rlm.Outcome, err error) error {
	var setup *rlm.SetupError
	if errors.As(err, &setup) {
		return cli.Usage(cli.AdviseModel(err))
	}
	wiring.NoteRecord(e, outcome.Trace, f.Quiet)
	if outcome.Collected != nil && !f.Quiet {
		f.Files.Tell(*outcome.Collected, e.NoteUnless(false))
	}
	if f.json {
		if err := f.printOutcome(e, outcome); err != nil {
			return cli.Broken(err)
		}
	} else if text, ok := f.textToPrint(outcome); ok {
		if err := e.Answer(text); err != nil {
			return cli.Broken(fmt.Errorf("cannot write the answer: %w", err))
		}
	}

	text, printed := f.textToPrint(outcome)
	if text != "" && !printed && !f.json {
		what := "the partial answer"
		if outcome.Status == ledger.StatusNoAnswer {
			what = "the last output"
		}
		_, _ = fmt.Fprintf(e.Stderr, "rlm: %s, not validated: %s\n", what, cli.Escape(text))
	}
	if err != nil {
		return cli.AddExitCode(err)
	}
	if outcome.Status == ledger.StatusNoAnswer {
		outcome.Reason += "; another --model may do better"
	}
	return ExitForStatus(e, outcome.Status, outcome.Reason, f.Quiet)
}

// printOutcome prints the object of --json, with the files of the run.
func (f *RunFlags) printOutcome(e *cli.Env, outcome rlm.Outcome) error {
	if f.Files.Out == "" {
		return cli.PrintLine(e.Stdout, outcome)
	}
	files, err := results.ListFolder(f.Files.Out, code.MaxInline, map[string]bool{})
	if err != nil {
		return err
	}
	return cli.PrintLine(e.Stdout, struct {
		rlm.Outcome
		Files []results.File `json:"files"`
	}{outcome, files})
}

// ExitForStatus returns an error with the exit code for the status of a run, or nil for an answer.
// Caveats about an answer go to stderr.
func ExitForStatus(e *cli.Env, status ledger.Status, reason string, quiet bool) error {
	switch status {
	case ledger.StatusAnswered:
		if reason != "" && !quiet {
			_, _ = fmt.Fprintf(e.Stderr, "rlm: %s\n", cli.Escape(reason))
		}
		return nil
	case ledger.StatusSynthesised:
		if !quiet {
			_, _ = fmt.Fprintf(e.Stderr, "rlm: this is the model's best answer so far: %s\n", cli.Escape(reason))
		}
		return nil
	case ledger.StatusPartial:
		return cli.Exit(cli.ExitPartial, errors.New(reason))
	case ledger.StatusParked:
		return cli.Exit(cli.ExitParked, errors.New(reason))
	case ledger.StatusNoAnswer:
		return cli.Exit(cli.ExitNoAnswer, fmt.Errorf("no answer: %s", reason))
	case ledger.StatusCanceled, ledger.StatusFailed:
	}

	return cli.Broken(errors.New(reason))
}

// textToPrint returns the text for stdout, and whether there is one. A partial answer is printed
// there only if the run's budget ran out, not after an interrupt or without an answer. With a
// contract, no partial answer is printed, because programs that read stdout rely on the contract.
func (f *RunFlags) textToPrint(outcome rlm.Outcome) (string, bool) {
	if outcome.Answer != nil {
		return outcome.Text(), true
	}
	isPartial := outcome.Status == ledger.StatusPartial && outcome.Partial != ""
	return outcome.Partial, isPartial && f.schema == "" && f.kind == ""
}

// showEstimate prints the estimated cost of a run.
func (f *RunFlags) showEstimate(
	ctx context.Context, e *cli.Env, engine *rlm.Engine, task rlm.Task,
) error {
	estimate, err := engine.Estimate(ctx, task)
	if err != nil {
		return cli.Usage(err)
	}
	if f.json {
		return cli.PrintLine(e.Stdout, estimate)
	}

	unpriced := ""
	if !estimate.Priced {
		unpriced = " (without the models whose price is not known)"
	}
	way := "a loop of turns"
	if estimate.Bypass {
		way = "one call, because the input is small"
	}

	reading := "unknown, because the sub-model's window is unknown: give it with --window"
	if estimate.ReadOnce != nil {
		reading = estimate.ReadOnce.String()
	}
	most := estimate.Most
	_, err = fmt.Fprintf(e.Stdout, "the run is %s\n"+
		"the first turn:            %s\n"+
		"to read the input once:    %s\n"+
		"never more than:           %d calls, %d tokens, $%g, %v%s\n",
		way, estimate.Turn, reading,
		most.Calls, most.Tokens, most.USD, most.Wall, unpriced)

	return err
}
