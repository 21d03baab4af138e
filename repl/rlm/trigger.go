package rlm

import (
	"context"
	"errors"
	"fmt"

	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/tiers"
)

// Triggers say when work should go to a run of this loop instead of straight into
// a model's prompt. The zero value has all conditions with their defaults.
type Triggers struct {
	// Always sends everything: ENABLE_RLM.
	Always bool
	// NoLargeOutput, NoManyTraces and NoManyNodes switch a condition off:
	// trigger_on_large_output, trigger_on_ahe_distillation and
	// trigger_on_kg_bulk_analysis set to false.
	NoLargeOutput, NoManyTraces, NoManyNodes bool
	// OutputChars, Traces and Nodes are what has to be exceeded; 0 is the default.
	OutputChars, Traces, Nodes int64
}

// Thresholds of Triggers: a count must exceed them.
const (
	DefaultOutputChars = 50_000
	DefaultTraces      = 500
	DefaultNodes       = 1_000
)

// Situation is what there is to decide about.
type Situation struct {
	// LongHorizon says that the task is going to need many steps.
	LongHorizon bool
	// OutputChars is the size of a tool's output, Traces the number of failure
	// traces to distil, Nodes the number of nodes that a query returned.
	OutputChars, Traces, Nodes int64
}

// Trigger names the condition that decided.
type Trigger string

// The conditions, in the order in which they are looked at.
const (
	TriggerNone        Trigger = ""
	TriggerAlways      Trigger = "always"
	TriggerLongHorizon Trigger = "long_horizon"
	TriggerLargeOutput Trigger = "large_output"
	TriggerManyTraces  Trigger = "many_traces"
	TriggerManyNodes   Trigger = "many_nodes"
)

// ShouldTrigger returns the first condition that holds, TriggerNone if none does.
func (c *Config) ShouldTrigger(s Situation) Trigger {
	t := c.Triggers
	switch {
	case t.Always:
		return TriggerAlways
	case s.LongHorizon:
		return TriggerLongHorizon
	case !t.NoLargeOutput && s.OutputChars > threshold(t.OutputChars, DefaultOutputChars):
		return TriggerLargeOutput
	case !t.NoManyTraces && s.Traces > threshold(t.Traces, DefaultTraces):
		return TriggerManyTraces
	case !t.NoManyNodes && s.Nodes > threshold(t.Nodes, DefaultNodes):
		return TriggerManyNodes
	}
	return TriggerNone
}

func threshold(own, standard int64) int64 {
	if own == 0 {
		return standard
	}
	return own
}

// HookInput is the output of a tool on its way into a model's prompt.
type HookInput struct {
	// Output is what the tool wrote. The caller keeps it open.
	Output tiers.Input
	// Tool is who wrote it, Task what the model is working on: both go into the
	// question, and may be empty.
	Tool, Task string
}

// HookResult is what should go into the prompt instead.
type HookResult struct {
	// Text is the output itself if it is small, else what a run made of it.
	Text string
	// Trigger is why there was a run, empty if there was none.
	Trigger Trigger
	// Outcome is the run's.
	Outcome Outcome
}

// LargeOutput passes a small output through and routes a large one into a run of
// cfg, whose question and inputs it replaces. If the run has no answer, Text is the
// output's beginning with a note that says so, and never the whole: with an error
// too, it is safe to hand on.
func LargeOutput(ctx context.Context, cfg Config, in HookInput) (HookResult, error) {
	if in.Output.Text == nil {
		return HookResult{}, errors.New("the hook takes a text")
	}
	size, err := in.Output.Text.Len(ctx)
	if err != nil {
		return HookResult{}, err
	}
	inputs := repl.Inputs{in.Output}
	whole := tiers.Value(fmt.Sprintf(`{"__rlm_text__":[0,0,%d]}`, size))
	trigger := cfg.ShouldTrigger(Situation{OutputChars: size})
	if trigger == TriggerNone {
		text, err := inputs.Text(ctx, whole, size+1)
		return HookResult{Text: text}, err
	}
	if cfg.Progress != nil {
		cfg.Progress(repl.Event{Kind: repl.EventLargeOutput, Node: "0", Text: in.Tool, Status: string(trigger)})
	}
	cfg.Inputs, cfg.Question = inputs, hookQuestion(in)
	outcome, err := Run(ctx, cfg)
	result := HookResult{Text: outcome.Text(), Trigger: trigger, Outcome: outcome}
	if outcome.Answer != nil {
		return result, err
	}
	head, headErr := inputs.Text(context.WithoutCancel(ctx), tiers.Value(fmt.Sprintf(`{"__rlm_text__":[0,0,%d]}`, min(size, shownChars))), shownChars)
	result.Text = fmt.Sprintf("[The output has %d characters; a run that was to condense it ended as %s: %s. It begins:]\n%s",
		size, outcome.Status, outcome.Reason, head)
	return result, errors.Join(err, headErr)
}

// shownChars is how much of an output is shown that could not be condensed.
const shownChars = 2_000

func hookQuestion(in HookInput) string {
	tool := "a tool"
	if in.Tool != "" {
		tool = "the tool " + fmt.Sprintf("%q", in.Tool)
	}
	question := "`context` is the output of " + tool + ", too long for the model that asked for it. " +
		"Condense it into what that model needs: the facts, figures, names and errors, exactly as they stand."
	if in.Task != "" {
		question += " Its task: " + in.Task
	}
	return question
}
