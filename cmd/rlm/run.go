package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/cmd/rlm/internal/config"
	"github.com/rlmhq/rlm/internal/plan/results"
	"github.com/rlmhq/rlm/repl/ledger"
)

// maxQuestion and maxSchema bound a question and a contract, in bytes.
const (
	maxQuestion = 1 << 20
	maxSchema   = 1 << 20
)

// runFlags are the flags of `rlm run` that are not settings.
type runFlags struct {
	nameFlag

	contexts contextFlags
	session  string // the name of a session to go on with
	talks    bool   // of rlm chat
	// modelIsOptional is set for rlm repl, most of whose lines ask no model.
	modelIsOptional bool
	schema          string
	kind            string
	estimate        bool
	json            bool
	quiet           bool
	verbose         bool
	events          bool
	stream          bool
	tools           toolFlags
	files           files // of these, only --out

	// only of rlm hook, from its caller
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

// newRun makes the command rlm run.
func newRun(e *env) *cobra.Command {
	var f runFlags
	cmd := &cobra.Command{
		Use:   "run QUESTION",
		Short: "Let a model answer a question about inputs of any size",
		Long:  runLong,
		Example: `  rlm run "which services failed, and why?" --context logs/ \
    --model openai/gpt-5 --sub-model openai/gpt-5-mini
  rlm run "is there a security risk?" --context diff.txt --output-type bool --max-usd 2
  rlm run "count the rows" --context big.csv --model scripted/replies.yaml`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("give one question, in quotes, or - to read it from stdin")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.runNamed(cmd, e, args[0])
		},
	}

	f.addTo(cmd.Flags(), e)
	return cmd
}

// addTo adds the flags of rlm run.
func (f *runFlags) addTo(flags *pflag.FlagSet, e *env) {
	f.contexts.add(flags,
		"`file` or directory to work on, - for stdin; repeatable")
	f.addSession(flags)
	f.addName(flags)
	f.tools.add(flags, e)
	f.files.addOut(flags)
	flags.StringVar(&f.schema, "output-schema", "",
		"`file` with the JSON Schema that the answer must meet")
	flags.StringVar(&f.kind, "output-type", "",
		"the `type` that the answer must have, such as bool or list[str]; instead of --output-schema")
	flags.BoolVar(&f.estimate, "estimate", false,
		"print an estimate of the run's cost, and run nothing")
	flags.BoolVar(&f.json, "json", false,
		"print one JSON object: the answer, the ending, the usage")
	flags.BoolVar(&f.quiet, "quiet", false, "print only errors on stderr")
	flags.BoolVarP(&f.verbose, "verbose", "v", false,
		"also show the code of each snippet and its output, on stderr")
	flags.BoolVar(&f.events, "events", false,
		"print each event of the run as a line of JSON on stdout; the last line is that of --json")
	flags.BoolVar(&f.stream, "stream", true, "on a terminal, show the root's replies as they arrive")
	config.AddFlags(flags,
		config.In(config.Routing, config.Limits, config.Models, config.Run, config.Graphs))
}

// addSession adds the flag --session.
func (f *runFlags) addSession(flags *pflag.FlagSet) {
	addSession(flags, &f.session,
		"`name` of a session that keeps contexts, variables and history for the next question")
}

// runNamed answers the question of rlm run. A run with a name can be continued.
func (f *runFlags) runNamed(cmd *cobra.Command, e *env, question string) error {
	if f.name == "" && f.session == "" && !f.estimate {
		if err := f.replay(e, cmd); err != nil {
			return err
		}
	}
	if f.name == "" {
		return f.run(cmd.Context(), e, question)
	}
	switch {
	case f.session != "":
		return Usage(errors.New("give --name or --session, not both"))
	case f.estimate:
		return Usage(errors.New("an estimate runs nothing: omit --name"))
	case f.contexts.useStdin():
		return Usage(errors.New("a named run reads its contexts again when it continues: " +
			"give a file in place of stdin"))
	}

	whole := question
	if question == "-" {
		var err error
		if whole, err = readAll(e.stdin, maxQuestion, "the question"); err != nil {
			return Usage(err)
		}
	}
	if err := f.begin(e, cmd, question, strings.TrimSpace(whole)); err != nil {
		return err
	}
	return f.run(cmd.Context(), e, whole)
}

// run answers the question.
func (f *runFlags) run(ctx context.Context, e *env, question string) error {
	f.json = f.json || f.events
	task, err := f.task(e, question)
	if err != nil {
		return Usage(err)
	}
	if f.estimate && f.session != "" {
		return Usage(errors.New("--estimate cannot look into a session: omit --session"))
	}
	s, err := f.start(ctx, e, &task)
	if err != nil {
		return err
	}
	defer s.close()
	if f.estimate {
		task.Config.Trace = ""
		return f.showEstimate(ctx, e, s.engine, task)
	}

	s.view.verbose = f.verbose
	f.tellKept(e, s.view.note)
	made := e.newGallery(f.files.out, s.view.note)
	lines := &eventWriter{w: e.stdout}
	task.Config.Progress = func(event ledger.Event) {
		s.progress(event)
		made.event(event)
		if f.events {
			lines.event(event)
		}
	}
	task.Name, task.Begun = f.name, f.begun
	task.Config.Stream, task.Config.Out = f.stream && s.view.isLive(), f.files.out
	outcome, err := f.answer(ctx, e, s.engine, task, s.view.note)
	s.finish()
	f.end(ctx, e, s.engine, outcome.Answer != nil)
	if !f.json {
		made.drawAnswer()
	}
	if outcome.Status == "" { // the session could not be opened
		return err
	}

	known := s.tools.known
	kept := errors.Join(known.rememberRun(task.Config.Question, outcome), known.keep(ctx))
	if lines.err != nil {
		failed := fmt.Errorf("cannot write an event: %w", lines.err)
		return joinExit(Broken(failed), kept)
	}
	return joinExit(f.finish(e, outcome, errors.Join(err, made.failed)), kept)
}

// answer answers the question of a task, in its session if it has one.
func (f *runFlags) answer(
	ctx context.Context, e *env, engine *rlm.Engine, task rlm.AnswerTask, note func(string, ...any),
) (outcome rlm.AnswerOutcome, err error) {
	if f.session == "" {
		return engine.Answer(ctx, task)
	}
	talk, err := f.openTalk(ctx, e, engine, &task, note)
	if err != nil {
		return outcome, err
	}
	defer func() { err = errors.Join(err, talk.close()) }()
	outcome, err = talk.ask(ctx, task.Config.Question)
	if f.files.out != "" {
		got, failed := talk.session.Files(context.WithoutCancel(ctx), f.files.out)
		outcome.Collected, err = &got, errors.Join(err, failed)
	}
	return outcome, err
}

// task makes a task from the flags.
func (f *runFlags) task(e *env, question string) (task rlm.AnswerTask, err error) {
	if question == "-" {
		if f.contexts.useStdin() {
			return task, errors.New("stdin cannot be both the question and a context")
		}
		if question, err = readAll(e.stdin, maxQuestion, "the question"); err != nil {
			return task, err
		}
	}

	if question = strings.TrimSpace(question); question == "" {
		return task, errors.New("the question is empty")
	}
	return f.newTask(e, question)
}

// newTask returns a task with the contexts of --context, under the policy.
func (f *runFlags) newTask(e *env, question string) (task rlm.AnswerTask, err error) {
	task.Config.Question = question
	if task.Policy, err = policy(e.settings); err != nil {
		return task, err
	}

	if f.session == "" && !f.talks { // else the session opens them
		task.Contexts, err = f.contexts.open(e, e.noteUnless(f.quiet))
	}
	return task, err
}

// complete copies the settings and the contract into a task.
func (f *runFlags) complete(e *env, task *rlm.AnswerTask, models ledger.Models) (err error) {
	if err := configure(e, task, models); err != nil {
		return err
	}
	switch {
	case f.schema != "" && f.kind != "":
		return errors.New("give --output-schema or --output-type, not both")
	case f.schema != "":
		text, err := readFile(e, f.schema, maxSchema, "the contract")
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
func (f *runFlags) finish(e *env, outcome rlm.AnswerOutcome, err error) error {
	var setup *rlm.SetupError
	if errors.As(err, &setup) {
		return Usage(err)
	}
	e.noteRecord(outcome.Trace, f.quiet)
	if outcome.Collected != nil && !f.quiet {
		f.files.tell(*outcome.Collected, (&execFlags{}).note(e))
	}
	if f.json {
		if err := f.printOutcome(e, outcome); err != nil {
			return Broken(err)
		}
	} else if text, ok := f.textToPrint(outcome); ok {
		if err := e.answer(text); err != nil {
			return Broken(fmt.Errorf("cannot write the answer: %w", err))
		}
	}

	if err != nil {
		return addExitCode(err)
	}
	text, printed := f.textToPrint(outcome)
	partial := outcome.Status == ledger.StatusPartial && outcome.Partial != ""
	if partial && !printed && !f.json {
		_, _ = fmt.Fprintf(e.stderr, "rlm: the partial answer, not validated: %s\n", escape(text))
	}

	return exitForStatus(e, outcome.Status, outcome.Reason, f.quiet)
}

// printOutcome prints the object of --json, with the files of the run.
func (f *runFlags) printOutcome(e *env, outcome rlm.AnswerOutcome) error {
	if f.files.out == "" {
		return printLine(e.stdout, outcome)
	}
	files, err := results.ListFolder(f.files.out, maxInline, map[string]bool{})
	if err != nil {
		return err
	}
	return printLine(e.stdout, struct {
		rlm.AnswerOutcome
		Files []results.File `json:"files"`
	}{outcome, files})
}

// exitForStatus returns an error with the exit code for the status of a run, nil for an answer.
// What the reader should know about an answer goes to stderr.
func exitForStatus(e *env, status ledger.Status, reason string, quiet bool) error {
	switch status {
	case ledger.StatusAnswered:
		if reason != "" && !quiet {
			_, _ = fmt.Fprintf(e.stderr, "rlm: %s\n", escape(reason))
		}
		return nil
	case ledger.StatusSynthesised:
		if !quiet {
			_, _ = fmt.Fprintf(e.stderr, "rlm: this is the model's best answer so far: %s\n", escape(reason))
		}
		return nil
	case ledger.StatusPartial:
		return Exit(exitPartial, errors.New(reason))
	case ledger.StatusParked:
		return Exit(exitParked, errors.New(reason))
	case ledger.StatusNoAnswer:
		return Exit(exitNoAnswer, fmt.Errorf("no answer: %s", reason))
	case ledger.StatusCanceled, ledger.StatusFailed:
	}

	return Broken(errors.New(reason))
}

// textToPrint returns the text for stdout. A partial answer goes there only without a
// contract: programs that read stdout rely on the contract.
func (f *runFlags) textToPrint(outcome rlm.AnswerOutcome) (string, bool) {
	if outcome.Answer != nil {
		return outcome.Text(), true
	}
	return outcome.Partial, outcome.Partial != "" && f.schema == "" && f.kind == ""
}

// showEstimate prints the estimated cost of a run.
func (f *runFlags) showEstimate(
	ctx context.Context, e *env, engine *rlm.Engine, task rlm.AnswerTask,
) error {
	estimate, err := engine.Estimate(ctx, task)
	if err != nil {
		return Usage(err)
	}
	if f.json {
		return printLine(e.stdout, estimate)
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
	_, err = fmt.Fprintf(e.stdout, "the run is %s\n"+
		"the first turn:            %s\n"+
		"to read the input once:    %s\n"+
		"never more than:           %d calls, %d tokens, $%g, %v%s\n",
		way, estimate.Turn, reading,
		most.Calls, most.Tokens, most.USD, most.Wall, unpriced)

	return err
}
