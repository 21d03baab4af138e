package loops

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
	"github.com/rlmhq/rlm/cmd/rlm/internal/config"
	"github.com/rlmhq/rlm/cmd/rlm/internal/wiring"
	"github.com/rlmhq/rlm/internal/keep/skillbook"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/workflow"
)

// statusDone is the status of a run that completed its last node.
const statusDone = "done"

// maxInput bounds a workflow file and its input, in bytes.
const maxInput = 8 << 20

const workflowLong = `Run or check a workflow file.

A workflow is a YAML file with a list of nodes, which run one after the other and
share one state. A node is an action, such as llm.call or reflection.loop, or Python
code, which runs in a sandbox.`

const workflowRunLong = `Run a workflow file over an input.

The result of the last node goes to stdout: text unchanged, any other value as JSON.
rlm first checks the file, and looks up every model that the file names. The file may
use the default model and the models of --allowed-models. --model-for replaces a model
that the file names.

Exit codes: 0 every node ran; 2 usage error, invalid file, missing key, unknown
model or unavailable server; 3 no tier may run the file's Python; 5 a failure during
the run; 6 the budget ran out; 7 a node ended the run, such as a loop without a valid
output; 130 interrupted.`

// NewWorkflow makes the command rlm workflow.
func NewWorkflow(e *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "workflow",
		Short: "Run or check a workflow file",
		Long:  workflowLong,
	}

	cmd.AddCommand(newWorkflowRun(e), newWorkflowCheck(e))
	return cmd
}

// workflowFlags are the flags of `rlm workflow run` that are not settings.
type workflowFlags struct {
	nameFlag

	input    string
	modelFor map[string]string
	skills   skillbookFlags
	watch    bool
	json     bool
}

func newWorkflowRun(e *cli.Env) *cobra.Command {
	var f workflowFlags
	cmd := &cobra.Command{
		Use:   "run FILE",
		Short: "Run a workflow file over an input",
		Long:  workflowRunLong,
		Example: `  rlm workflow run profile.yaml --input '{"request": "a user called Ann"}' --model openai/gpt-5
  rlm workflow run profile.yaml --input @request.json --model-for gpt-4=anthropic/claude-sonnet-4-5 --watch`,
		Args: requireOneFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := f.begin(e, cmd, "", ""); err != nil {
				return err
			}
			return f.run(cmd.Context(), e, args[0])
		},
	}

	flags := cmd.Flags()
	f.addName(flags)
	flags.StringVar(&f.input, "input", "{}",
		"initial state: a JSON object, @FILE to read it from a file, or - for stdin")
	flags.StringToStringVar(&f.modelFor, "model-for", nil,
		"use MODEL where the file names NAME, as `NAME=MODEL`; repeatable")
	f.skills.addIn(flags)
	flags.BoolVar(&f.watch, "watch", false,
		"show each node, attempt and model call on stderr as it happens")
	flags.BoolVar(&f.json, "json", false,
		"print one JSON object: the state, the result, the ending, the usage")
	config.AddFlags(flags, config.In(config.Routing, config.Limits))
	config.AddFlags(flags, config.Named(workflowSettings...))
	return cmd
}

// workflowSettings are the model and run settings that apply to a workflow.
var workflowSettings = []string{
	"model", "allowed_models", "default_provider", "prices", "record", "replay",
	"request_timeout", "request_attempts", "outage", "allow_http", "max_reply",
	"temperature", "top_p", "seed", "reasoning_effort", "extra_body", "max_calls", "max_tokens",
	"max_input_tokens", "max_output_tokens", "max_usd", "max_time", "calls_at_once", "retries",
	"trace", "otel",
}

func newWorkflowCheck(e *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE...",
		Short: "Report errors in workflow files without running them",
		Long: `Report errors in workflow files by line and column: unknown keys, actions and
parameters, missing parameters, schemas that do not compile, and unreadable
templates. The command runs nothing and asks no model.

Exit codes: 0 no errors; 2 errors; 5 no jail works on this machine, so the templates
cannot be checked.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("give workflow files, or - to read one from stdin")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			return checkWorkflows(cmd.Context(), e, args)
		},
	}
}

func requireOneFile(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return errors.New("give one workflow file, or - to read it from stdin")
	}
	return nil
}

// checkWorkflows prints the errors of each file.
func checkWorkflows(ctx context.Context, e *cli.Env, names []string) error {
	wrong := 0
	for _, name := range names {
		text, err := cli.ReadFile(e, name, maxInput, "the workflow")
		if err != nil {
			return cli.Usage(err)
		}
		problems, notes, err := checkWorkflow(ctx, name, text)
		if err != nil {
			return cli.Broken(err)
		}
		showNotes(e, notes)

		if len(problems) == 0 {
			if _, err := fmt.Fprintf(e.Stdout, "%s: ok\n", cli.Escape(name)); err != nil {
				return cli.Broken(err)
			}
			continue
		}
		wrong++
		for _, problem := range problems {
			_, _ = fmt.Fprintln(e.Stderr, cli.Escape(problem))
		}
	}

	if wrong > 0 {
		return cli.Exit(cli.ExitUsage, nil)
	}
	return nil
}

// checkWorkflow returns the errors and the notes of a file.
func checkWorkflow(
	ctx context.Context, name, text string,
) (problems []string, notes []*workflow.Problem, err error) {
	task, err := parseWorkflow(name, text)
	if err != nil {
		return strings.Split(err.Error(), "\n"), nil, nil
	}
	err = task.File.Check(ctx)
	var found *workflow.FileError
	if !errors.As(err, &found) {
		return nil, task.File.Notes, err
	}

	for _, problem := range found.Problems {
		problems = append(problems, problem.String())
	}
	return problems, task.File.Notes, nil
}

// showNotes prints the notes about a workflow file.
func showNotes(e *cli.Env, notes []*workflow.Problem) {
	for _, note := range notes {
		_, _ = fmt.Fprintln(e.Stderr, cli.Escape(note.String()))
	}
}

// readWorkflow reads a file, or stdin for "-".
func readWorkflow(e *cli.Env, name string) (workflow.Task, error) {
	text, err := cli.ReadFile(e, name, maxInput, "the workflow")
	if err != nil {
		return workflow.Task{}, err
	}
	return parseWorkflow(name, text)
}

// parseWorkflow makes a task from a file. Its schemas may refer to files in the same folder.
func parseWorkflow(name, text string) (task workflow.Task, err error) {
	if name == "-" {
		task.File, err = workflow.Parse("stdin", []byte(text))
		return task, err
	}
	if task.File, err = workflow.Parse(name, []byte(text)); err == nil {
		task.File.Folder = filepath.Dir(name)
	}
	return task, err
}

// explainNode prints details of a failed node: the traceback of the file's Python, and one line for
// each attempt of a loop.
func explainNode(e *cli.Env, err error) {
	var failed *workflow.NodeError
	if !errors.As(err, &failed) {
		return
	}
	_, _ = fmt.Fprint(e.Stderr, cli.EscapeKeepingLines(failed.Traceback))
	for _, a := range failed.Attempts {
		_, _ = fmt.Fprintf(e.Stderr, "rlm: attempt %d: score %.2f, errors: %d\n",
			a.Iteration, a.Score, len(a.Errors))
	}
}

// run runs the file.
func (f *workflowFlags) run(ctx context.Context, e *cli.Env, name string) error {
	task, err := readWorkflow(e, name)
	if err != nil {
		return cli.Usage(err)
	}
	if task.Input, err = f.readInput(e, name); err == nil {
		err = f.addSkillbook(e, task.Input)
	}
	if err != nil {
		return cli.Usage(err)
	}

	showNotes(e, task.File.Notes)
	models, err := wiring.OpenModels(e, false)
	if err != nil {
		return cli.Usage(err)
	}
	defer models.Close()
	if err := f.configure(e, &task, models); err != nil {
		return cli.Usage(err)
	}

	s, err := start(ctx, e, "workflow", !f.watch, true)
	if err != nil {
		return err
	}
	defer s.Close()

	task.Config.Progress = s.progress
	f.keep(e, &task.Task, s.View.Note)
	outcome, err := workflow.RunOn(ctx, s.Engine, task)
	s.finish()
	f.end(ctx, e, s.Engine, outcome.Status == statusDone)
	return f.finish(e, outcome, err)
}

// readInput reads the initial state from --input.
func (f *workflowFlags) readInput(e *cli.Env, file string) (map[string]any, error) {
	text, err := f.input, error(nil)
	switch {
	case text == "-" && file == "-":
		return nil, errors.New("stdin cannot be both the workflow and its input")
	case text == "-":
		text, err = cli.ReadFile(e, text, maxInput, "the input")
	case text == "@":
		return nil, errors.New("--input @: give a file after the @, or - for stdin")
	case strings.HasPrefix(text, "@"):
		text, err = cli.ReadFile(e, text[1:], maxInput, "the input")
	}

	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.UseNumber()
	var state map[string]any
	if err := decoder.Decode(&state); err != nil || decoder.More() || state == nil {
		return nil, errors.New("--input is not a JSON object: give an object, such as " +
			"'{\"request\": \"…\"}', or @FILE")
	}

	return state, nil
}

// addSkillbook adds the skillbook to the state, in the form that an agent receives.
func (f *workflowFlags) addSkillbook(e *cli.Env, state map[string]any) error {
	if f.skills.in == "" {
		return nil
	}
	if _, given := state["skillbook"]; given {
		return errors.New("--input has a skillbook already: leave it out, or --skillbook")
	}
	if f.skills.in == "-" && f.input == "-" {
		return errors.New("stdin cannot be both the input and the skillbook")
	}
	if err := f.skills.read(e); err != nil {
		return err
	}

	text, err := skillbook.Render(f.skills.text)
	state["skillbook"] = text
	return err
}

// configure copies the settings and flags into a task.
func (f *workflowFlags) configure(
	e *cli.Env, task *workflow.Task, models ledger.Models,
) (err error) {
	var run rlm.Task
	if err := wiring.Configure(e, &run, models); err != nil {
		return err
	}

	cfg := &task.Config
	cfg.Models, cfg.Model = models, run.Config.Model
	cfg.AllowedModels, cfg.ModelFor = run.Config.AllowedModels, f.modelFor
	cfg.MaxReply, cfg.Retries = run.Config.MaxReply, run.Config.Retries
	cfg.CallsAtOnce = run.Config.CallsAtOnce
	cfg.Limits, cfg.Deterministic = run.Config.Limits, run.Config.Deterministic
	cfg.Budget, cfg.Trace = run.Config.Budget, run.Config.Trace
	task.Policy, err = wiring.Policy(e.Settings)
	return err
}

// finish prints the result and returns an error with the exit code.
func (f *workflowFlags) finish(e *cli.Env, outcome workflow.Outcome, err error) error {
	var setup *rlm.SetupError
	if errors.As(err, &setup) {
		return cli.Usage(errors.New(cli.EscapeKeepingLines(err.Error())))
	}

	wiring.NoteRecord(e, outcome.Trace, false)
	if f.json {
		if err := cli.PrintLine(e.Stdout, outcome); err != nil {
			return cli.Broken(err)
		}
	} else if outcome.Status == statusDone && outcome.Result != nil {
		if err := f.printResult(e, outcome.Result); err != nil {
			return cli.Broken(err)
		}
	}

	switch outcome.Status { //nolint:exhaustive // only loops with an answer have the others
	case statusDone:
		return nil
	case ledger.StatusParked:
		return cli.Exit(cli.ExitParked, errors.New(outcome.Reason))
	case ledger.StatusPartial:
		return cli.Exit(cli.ExitPartial, errors.New(outcome.Reason))
	case ledger.StatusFailed:
		explainNode(e, err)
		return cli.Exit(cli.ExitNoAnswer, errors.New(cli.Escape(err.Error())))
	case ledger.StatusCanceled, "broken":
	}

	return cli.AddExitCode(err)
}

// printResult prints a result: a string unchanged, any other value as JSON.
func (f *workflowFlags) printResult(e *cli.Env, result any) error {
	if text, ok := result.(string); ok {
		return e.Answer(text)
	}
	return cli.PrintLine(e.Stdout, result)
}
