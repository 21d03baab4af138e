package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/cmd/rlm/internal/config"
	"github.com/rlmhq/rlm/hook"
	loop "github.com/rlmhq/rlm/repl/run"
)

const hookLong = `Read a tool's output from stdin, and write to stdout what the model should see.

Output that is not large passes byte for byte, without a model or a key. Large
output becomes the context of a run, as with rlm run, and the answer of the run
goes to stdout instead. large_output_threshold and the other trigger settings
define "large".

Exit codes are those of rlm run. If the run has no answer, hook prints the
beginning of the output, and the reason.`

// newHook makes the command rlm hook.
func newHook(e *env) *cobra.Command {
	f := runFlags{}
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
				return Usage(err)
			}
			return f.hook(cmd.Context(), e, task)
		},
	}

	flags := cmd.Flags()
	f.tools.add(flags, e)
	flags.StringVar(&f.schema, "output-schema", "",
		"`file` with the JSON Schema that a run's answer must meet")
	flags.StringVar(&f.kind, "output-type", "",
		"the `type` that the answer must have, such as bool or list[str]; instead of --output-schema")
	flags.BoolVar(&f.quiet, "quiet", false, "print only errors on stderr")
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

// noTrigger as a threshold disables a trigger.
const noTrigger = -1

// setTriggers copies the settings of the triggers into a task.
func setTriggers(c *config.Loaded, task *rlm.AnswerTask) {
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

// hookTask returns the task of a run about the output on stdin. Without a question, the
// library asks its own.
func (f *runFlags) hookTask(e *env, args []string) (rlm.AnswerTask, error) {
	switch {
	case e.terminal:
		return rlm.AnswerTask{}, errors.New(
			"stdin is a terminal: send a tool's output, as in `make test 2>&1 | rlm hook`")
	case len(args) == 0:
		return f.newTask(e, "")
	case args[0] == "-":
		return rlm.AnswerTask{}, errors.New(
			"stdin is the tool's output: give the question as an argument")
	}
	return f.task(e, args[0])
}

// hook passes stdin on, or lets a run condense it. Most outputs are small, so the engine is
// made only for a large one.
func (f *runFlags) hook(ctx context.Context, e *env, task rlm.AnswerTask) error {
	setTriggers(e.settings, &task)
	task.Signal = loop.Signal{LongHorizon: f.longHorizon, Traces: f.traces, Nodes: f.nodes}
	if len(e.settings.Graph) > 0 {
		if err := f.countGraph(ctx, e, &task.Signal); err != nil {
			return err
		}
		defer f.tools.known.Close()
	}

	var run *started
	var kept error
	hooked, err := hook.Output(ctx, e.stdin, task,
		func(ctx context.Context, task rlm.AnswerTask) (outcome rlm.AnswerOutcome, err error) {
			if run, err = f.start(ctx, e, &task); err != nil {
				return outcome, err
			}
			defer run.finish()
			run.view.note("the output is large: a run condenses it")
			outcome, err = run.engine.Answer(ctx, task)
			known := run.tools.known
			kept = errors.Join(known.rememberRun(task.Config.Question, outcome), known.keep(ctx))
			return outcome, err
		})
	if run != nil {
		defer run.close()
	}

	if hooked.Outcome == nil {
		if err == nil {
			_, err = io.WriteString(e.stdout, hooked.Text)
		}
		if err != nil {
			var exit *exitError
			if errors.As(err, &exit) {
				return err
			}
			return Broken(fmt.Errorf("cannot write the output: %w", err))
		}
		return nil
	}

	if hooked.Outcome.Answer == nil {
		if _, writing := io.WriteString(e.stdout, hooked.Text); writing != nil {
			err = errors.Join(err, fmt.Errorf("cannot write the output: %w", writing))
		}
	}
	var exit *exitError
	if errors.As(err, &exit) {
		return exit
	}

	return joinExit(f.finish(e, *hooked.Outcome, err), kept)
}

// countGraph loads the graph, whose nodes may trigger a run.
func (f *runFlags) countGraph(ctx context.Context, e *env, signal *loop.Signal) error {
	known, err := e.openKnowledge(ctx, e.noteUnless(f.quiet))
	if err != nil {
		return err
	}
	f.tools.known = known
	stats, err := known.graph.Stats(ctx)
	if err != nil {
		return Broken(errors.Join(err, known.Close()))
	}

	signal.Nodes = max(signal.Nodes, int64(stats.Nodes))
	return nil
}
