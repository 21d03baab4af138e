package loops

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
	"github.com/rlmhq/rlm/cmd/rlm/internal/config"
	"github.com/rlmhq/rlm/cmd/rlm/internal/wiring"
	"github.com/rlmhq/rlm/hook"
	loop "github.com/rlmhq/rlm/repl/run"
)

const hookLong = `Read a tool's output from stdin, and write to stdout what the model should see.

Output that is not large passes byte for byte, without a model or a key. Large
output becomes the context of a run, as with rlm ask, and the answer of the run
goes to stdout instead. large_output_threshold and the other trigger settings
define "large".

Exit codes are those of rlm ask. If the run has no answer, hook prints the
beginning of the output, and the reason.`

// NewHook makes the command rlm hook.
func NewHook(e *cli.Env) *cobra.Command {
	f := RunFlags{}
	cmd := &cobra.Command{
		Use:   "hook [QUESTION]",
		Short: "Condense large tool output before a model sees it",
		Long:  hookLong,
		Example: `  make test 2>&1 | rlm hook "which tests failed, and why?" --model openai/gpt-5
  kubectl logs api | rlm hook --large-output-threshold 20000`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			task, err := f.hookTask(e, args)
			if err != nil {
				return cli.Usage(err)
			}
			return f.hook(cmd.Context(), e, task)
		},
	}

	flags := cmd.Flags()
	f.Tools.Add(flags, e)
	flags.StringVar(&f.schema, "output-schema", "",
		"`file` with the JSON Schema that a run's answer must meet")
	flags.StringVar(&f.kind, "output-type", "",
		"the `type` that the answer must have, such as bool or list[str]; instead of --output-schema")
	flags.BoolVar(&f.Quiet, "quiet", false, "print only errors on stderr")
	flags.BoolVar(&f.longHorizon, "long-horizon", false,
		"mark the output as part of a task of many steps: see trigger_on_long_horizon")
	flags.Int64Var(&f.traces, "traces", 0,
		"number of failure `traces` in the output: see trace_threshold")
	flags.Int64Var(&f.nodes, "nodes", 0,
		"number of graph `nodes` in the output: see node_threshold")
	config.AddFlags(flags,
		config.In(config.Routing, config.Limits, config.Models, config.Run, config.Graphs,
			config.Triggers))
	return cmd
}

// noTrigger is the threshold that disables a trigger.
const noTrigger = -1

// setTriggers copies the triggers' settings into a task.
func setTriggers(c *config.Loaded, task *rlm.Task) {
	t := &task.Config.Triggers
	t.Always, t.NoLongHorizon = c.Always, !c.OnLongHorizon
	t.OutputChars, t.Traces, t.Nodes = c.LargeOutput, c.ManyTraces, c.ManyNodes
	for _, off := range []struct {
		on        bool
		threshold *int64
	}{{c.OnLargeOutput, &t.OutputChars}, {c.OnManyTraces, &t.Traces}, {c.OnManyNodes, &t.Nodes}} {
		if !off.on {
			*off.threshold = noTrigger
		}
	}
}

// hookTask returns a task about the output on stdin. Without a question, the library asks a default
// one.
func (f *RunFlags) hookTask(e *cli.Env, args []string) (rlm.Task, error) {
	switch {
	case e.Terminal:
		return rlm.Task{}, errors.New(
			"stdin is a terminal: send a tool's output, as in `make test 2>&1 | rlm hook`")
	case len(args) == 0:
		return f.NewTask(e, "")
	case args[0] == "-":
		return rlm.Task{}, errors.New(
			"stdin is the tool's output: give the question as an argument")
	}
	return f.Task(e, args[0])
}

// hook passes stdin through, or condenses it with a run. Most outputs are small, so hook creates
// the engine only for a large one.
func (f *RunFlags) hook(ctx context.Context, e *cli.Env, task rlm.Task) error {
	setTriggers(e.Settings, &task)
	task.Signal = loop.Signal{LongHorizon: f.longHorizon, Traces: f.traces, Nodes: f.nodes}
	if len(e.Settings.Graph) > 0 {
		if err := f.countGraph(ctx, e, &task.Signal); err != nil {
			return err
		}
		defer f.Tools.Known.Close()
	}

	var run *Started
	var kept error
	hooked, err := hook.Output(ctx, e.Stdin, task,
		func(ctx context.Context, task rlm.Task) (outcome rlm.Outcome, err error) {
			if run, err = f.Start(ctx, e, &task); err != nil {
				return outcome, err
			}
			defer run.finish()
			run.View.Note("the output is large: a run condenses it")
			outcome, err = run.Engine.Ask(ctx, task)
			known := run.Tools.Known
			kept = errors.Join(known.RememberRun(task.Config.Question, outcome), known.Keep(ctx))
			return outcome, err
		})
	if run != nil {
		defer run.Close()
	}

	if hooked.Outcome == nil {
		if err == nil {
			_, err = io.WriteString(e.Stdout, hooked.Text)
		}
		if err != nil {
			var exit *cli.ExitError
			if errors.As(err, &exit) {
				return err
			}
			return cli.Broken(fmt.Errorf("cannot write the output: %w", err))
		}
		return nil
	}

	if hooked.Outcome.Answer == nil {
		if _, writing := io.WriteString(e.Stdout, hooked.Text); writing != nil {
			err = errors.Join(err, fmt.Errorf("cannot write the output: %w", writing))
		}
	}
	var exit *cli.ExitError
	if errors.As(err, &exit) {
		return exit
	}

	return cli.JoinExit(f.finish(e, *hooked.Outcome, err), kept)
}

// countGraph loads the graph, since the number of its nodes may trigger a run.
func (f *RunFlags) countGraph(ctx context.Context, e *cli.Env, signal *loop.Signal) error {
	known, err := wiring.OpenKnowledge(ctx, e, e.NoteUnless(f.Quiet))
	if err != nil {
		return err
	}
	f.Tools.Known = known
	stats, err := known.Graph.Stats(ctx)
	if err != nil {
		return cli.Broken(errors.Join(err, known.Close()))
	}

	signal.Nodes = max(signal.Nodes, int64(stats.Nodes))
	return nil
}
