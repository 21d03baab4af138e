package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rlmhq/rlm/cmd/rlm/internal/config"
	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/otel"
	"github.com/rlmhq/rlm/repl/workflow"
)

// maxInput bounds what is read of a workflow's file and of its input.
const maxInput = 8 << 20

const workflowLong = `Run or check a workflow file.

A workflow is a YAML file with a list of nodes, which run one after the other
over one state: actions such as llm.call and reflection.loop, and Python, which
runs in a sandbox.`

const workflowRunLong = `Run a workflow file over an input.

The result of the last node goes to stdout: a text as it is, anything else as
JSON. The file is checked first, and every model that it names is looked up. It
may ask the default model, those of --allowed-models, and what --model-for says
is asked instead of others.

Exit codes: 0 every node ran, 2 usage, a file that is wrong, no key, unknown
model or server away, 3 no tier may run the file's Python, 5 something broke, 6
the budget was used up, 7 a node ended the run, such as a loop without a valid
output, 130 interrupted.`

func newWorkflow(e *env) *cobra.Command {
	cmd := &cobra.Command{
		Use: "workflow", Short: "Run or check a workflow file", Long: workflowLong, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(newWorkflowRun(e), newWorkflowCheck(e))
	return cmd
}

// workflowFlags are the flags of `rlm workflow run` that are no settings.
type workflowFlags struct {
	input    string
	modelFor map[string]string
	watch    bool
	json     bool
}

func newWorkflowRun(e *env) *cobra.Command {
	var f workflowFlags
	cmd := &cobra.Command{
		Use: "run FILE", Short: "Run a workflow file over an input", Long: workflowRunLong,
		Example: `  rlm workflow run profile.yaml --input '{"request": "a user called Ann"}' --model openai/gpt-5
  rlm workflow run profile.yaml --input @request.json --model-for gpt-4=anthropic/claude-sonnet-4-5 --watch`,
		Args: oneFile,
		RunE: func(cmd *cobra.Command, args []string) error { return f.run(cmd.Context(), e, args[0]) },
	}
	flags := cmd.Flags()
	flags.StringVar(&f.input, "input", "{}", "the state to begin with: a JSON object, @FILE for one in a file, - for stdin")
	flags.StringToStringVar(&f.modelFor, "model-for", nil, "ask another model instead of one that the file names, as in `gpt-4=openai/gpt-5`")
	flags.BoolVar(&f.watch, "watch", false, "show each node, attempt and model call on stderr as it happens")
	flags.BoolVar(&f.json, "json", false, "print one JSON object: the state, the result, how the run ended, what it used")
	config.AddFlags(flags, config.In(config.Routing, config.Limits))
	config.AddFlags(flags, config.Named(workflowSettings...))
	return cmd
}

// workflowSettings are the settings about models and runs that a workflow has a use
// for.
var workflowSettings = []string{
	"model", "allowed_models", "default_provider", "prices", "record", "replay", "request_timeout", "request_attempts", "allow_http",
	"max_reply", "max_calls", "max_tokens", "max_input_tokens", "max_output_tokens", "max_usd", "max_time", "calls_at_once", "retries", "trace", "otel",
}

func newWorkflowCheck(e *env) *cobra.Command {
	return &cobra.Command{
		Use: "check FILE...", Short: "Find what is wrong with workflow files, and run nothing",
		Long: `Find what is wrong with workflow files, by line and column: keys, actions and
parameters that are not known, parameters that are missing, schemas that do not
compile, templates that cannot be read. Nothing runs and no model is asked.

Exit codes: 0 nothing is wrong, 2 something is, 5 there is no jail here, in
which templates are read.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("give workflow files, or - to read one from stdin")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error { return checkWorkflows(cmd.Context(), e, args) },
	}
}

func oneFile(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return errors.New("give one workflow file, or - to read it from stdin")
	}
	return nil
}

// checkWorkflows prints what is wrong with each file.
func checkWorkflows(ctx context.Context, e *env, names []string) error {
	wrong := 0
	for _, name := range names {
		file, err := e.workflow(name)
		if err == nil {
			err = file.Check(ctx)
		}
		var found *workflow.FileError
		switch {
		case errors.As(err, &found):
			wrong++
			for _, p := range found.Problems {
				_, _ = fmt.Fprintln(e.stderr, printable(p.String()))
			}
		case err != nil && file == nil:
			return &exitError{exitUsage, err}
		case err != nil:
			return &exitError{exitBroken, err}
		default:
			if _, err := fmt.Fprintf(e.stdout, "%s: ok\n", printable(name)); err != nil {
				return &exitError{exitBroken, err}
			}
		}
	}
	if wrong > 0 {
		return &exitError{code: exitUsage}
	}
	return nil
}

// workflow reads a file, - from stdin. Its schemas may refer to files beside it.
func (e *env) workflow(name string) (*workflow.File, error) {
	text, err := readFile(e, name, maxInput, "the workflow")
	if err != nil {
		return nil, err
	}
	if name == "-" {
		return workflow.Parse("stdin", []byte(text))
	}
	file, err := workflow.Parse(name, []byte(text))
	if err == nil {
		file.Folder = filepath.Dir(name)
	}
	return file, err
}

// run runs the file.
func (f *workflowFlags) run(ctx context.Context, e *env, name string) error {
	file, err := e.workflow(name)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	input, err := f.state(e, name)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	models, err := registry(e, false)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	defer models.Close()
	cfg, err := f.config(e, models)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	rules, err := policy(e.settings)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	view := newView(e, !f.watch)
	defer view.close()
	engine, err := e.engine(ctx, view.note)
	if err != nil {
		return err
	}
	defer engine.Close()
	progress, sent, err := observe(ctx, e, otel.Workflow, view.event)
	if err != nil {
		return &exitError{exitUsage, err}
	}
	cfg.Open, cfg.Progress = engine.Opener(rules), progress
	outcome, err := file.Run(ctx, cfg, input)
	view.close()
	sent()
	return f.finish(e, outcome, err)
}

// state is the input.
func (f *workflowFlags) state(e *env, file string) (map[string]any, error) {
	text, err := f.input, error(nil)
	switch {
	case text == "-" && file == "-":
		return nil, errors.New("stdin cannot be both the workflow and its input")
	case text == "-":
		text, err = readFile(e, text, maxInput, "the input")
	case text == "@":
		return nil, errors.New("--input @: give a file after the @, or - for stdin")
	case strings.HasPrefix(text, "@"):
		text, err = readFile(e, text[1:], maxInput, "the input")
	}
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var state map[string]any
	if err := decoder.Decode(&state); err != nil || decoder.More() || state == nil {
		return nil, errors.New("--input is no JSON object: give one, such as '{\"request\": \"…\"}', or @FILE")
	}
	return state, nil
}

// config is what the settings say of a run.
func (f *workflowFlags) config(e *env, models ledger.Models) (cfg workflow.Config, err error) {
	run, err := runConfig(e, models)
	if err != nil {
		return cfg, err
	}
	return workflow.Config{
		Models: models, Model: run.Model, Allowed: run.Allowed, ModelFor: f.modelFor, MaxReply: run.MaxReply,
		Retries: run.Retries, CallsAtOnce: run.CallsAtOnce, Limits: run.Limits, Deterministic: run.Deterministic, Budget: run.Budget,
		Trace: run.Trace,
	}, nil
}

// finish prints what became of a run and returns its exit code.
func (f *workflowFlags) finish(e *env, outcome workflow.Outcome, err error) error {
	var found *workflow.FileError
	var setup *repl.SetupError
	switch {
	case errors.As(err, &found):
		return &exitError{exitUsage, errors.New(printableLines(err.Error()))}
	case errors.As(err, &setup):
		return &exitError{exitUsage, err}
	}
	e.recorded(outcome.Trace, false)
	if f.json {
		if err := printLine(e.stdout, outcome); err != nil {
			return &exitError{exitBroken, err}
		}
	} else if outcome.Status == workflow.StatusDone && outcome.Result != nil {
		if err := f.print(e, outcome.Result); err != nil {
			return &exitError{exitBroken, err}
		}
	}
	switch outcome.Status { //nolint:exhaustive // the others are of loops with an answer
	case workflow.StatusDone:
		return nil
	case ledger.StatusPartial:
		return &exitError{exitPartial, errors.New(outcome.Reason)}
	case ledger.StatusFailed:
		f.tell(e, err)
		return &exitError{exitNoAnswer, errors.New(printable(err.Error()))}
	case ledger.StatusCanceled, workflow.StatusBroken:
	}
	return runFailure(err)
}

// print prints a result: a text as it is, anything else as JSON.
func (f *workflowFlags) print(e *env, result any) error {
	if text, ok := result.(string); ok {
		return e.answer(text)
	}
	return printLine(e.stdout, result)
}

// tell says more about a node that ended the run: code's traceback, a loop's
// attempts.
func (f *workflowFlags) tell(e *env, err error) {
	var ended *workflow.ProgramError
	if errors.As(err, &ended) && ended.Traceback != "" {
		_, _ = fmt.Fprint(e.stderr, printableLines(ended.Traceback))
	}
	var failed *workflow.FailedError
	if errors.As(err, &failed) {
		for _, a := range failed.History {
			_, _ = fmt.Fprintf(e.stderr, "rlm: attempt %d: score %.2f, errors: %d\n", a.Iteration, a.Score, len(a.Errors))
		}
	}
}
