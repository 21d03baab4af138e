package rlm

import (
	"context"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"
)

// Triggers say when something is so large that a run should look at it instead of
// the model that asked. The zero value has the thresholds below.
type Triggers struct {
	// Always triggers whatever the signal says.
	Always bool
	// NoLongHorizon ignores Signal.LongHorizon.
	NoLongHorizon bool
	// OutputChars, Traces and Nodes are the thresholds: what is above triggers. 0 is
	// the default, NoTrigger switches the condition off.
	OutputChars, Traces, Nodes int64
}

// NoTrigger as a threshold switches its condition off.
const NoTrigger = -1

// Default thresholds.
const (
	DefaultOutputChars = 50_000
	DefaultTraces      = 500
	DefaultNodes       = 1_000
)

// Signal is what is known about a task, or about what a tool returned.
type Signal struct {
	// LongHorizon marks a task that takes many steps.
	LongHorizon bool
	// OutputChars are the characters of an output, Traces the failure traces to
	// distil, Nodes those that a query of a graph returned.
	OutputChars, Traces, Nodes int64
}

// Trigger is a condition that holds.
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
func (t Triggers) ShouldTrigger(s Signal) Trigger {
	switch {
	case t.Always:
		return TriggerAlways
	case s.LongHorizon && !t.NoLongHorizon:
		return TriggerLongHorizon
	case above(s.OutputChars, t.OutputChars, DefaultOutputChars):
		return TriggerLargeOutput
	case above(s.Traces, t.Traces, DefaultTraces):
		return TriggerManyTraces
	case above(s.Nodes, t.Nodes, DefaultNodes):
		return TriggerManyNodes
	}
	return TriggerNone
}

func above(n, threshold, standard int64) bool {
	if threshold == 0 {
		threshold = standard
	}
	return threshold > 0 && n > threshold
}

// HookQuestion is what a run is asked about a large output if the caller has no
// question of its own.
const HookQuestion = "This is the output of a tool, too large to be shown. " +
	"Report what matters in it, faithfully and with exact values: results, errors, warnings, counts. Quote what must be quoted."

// Hooked is what the hook made of an output.
type Hooked struct {
	// Trigger is why a run looked at it, TriggerNone if none did.
	Trigger Trigger
	// Text is what the asking model should see: the output itself, or the run's
	// answer. For a run without an answer it is how that ended, and how the output
	// begins.
	Text string
	// Outcome is the run's, nil if there was none.
	Outcome *Outcome
}

// maxHooked bounds an output that the hook takes, in bytes.
const maxHooked = 1 << 40

// HookOutput stands between a tool and the model that called it: a small output
// passes as it is, and a large one becomes the context of a run whose answer
// takes its place. Task says how that run goes; without a question it is
// HookQuestion. The output is read once, and a large one is never held in memory.
func (e *Engine) HookOutput(ctx context.Context, output io.Reader, triggers Triggers, task Task) (Hooked, error) {
	return triggers.Hook(ctx, output, task, e.Answer)
}

// Hook is [Engine.HookOutput] with any way to answer, which is called only for what
// triggers: no engine is needed before that.
func (t Triggers) Hook(ctx context.Context, output io.Reader, task Task, answer func(context.Context, Task) (Outcome, error)) (Hooked, error) {
	head, whole, err := t.peek(output)
	if err != nil {
		return Hooked{}, fmt.Errorf("cannot read the output: %w", err)
	}
	trigger := t.ShouldTrigger(Signal{OutputChars: int64(utf8.RuneCountInString(head))})
	if head == "" || trigger == TriggerNone {
		if !whole {
			err = fmt.Errorf("the output is larger than %d MiB, too large to pass on as it is: lower the threshold", maxPassed>>20)
		}
		return Hooked{Text: head}, err
	}
	if task.Run.Question == "" {
		task.Run.Question = HookQuestion
	}
	task.Contexts = append([]Context{Reader("output", io.MultiReader(strings.NewReader(head), output), maxHooked)}, task.Contexts...)
	outcome, err := answer(ctx, task)
	hooked := Hooked{Trigger: trigger, Text: outcome.Text(), Outcome: &outcome}
	if outcome.Answer == nil {
		reason := outcome.Reason
		if reason == "" && err != nil {
			reason = err.Error()
		}
		hooked.Text = fmt.Sprintf("[The output is large, and the run that was to look at it has no answer: %s. It begins:]\n%s\n", reason, beginning(head))
	}
	return hooked, err
}

// shownChars is how much of an output is shown of which a run could make nothing.
const shownChars = 2_000

// beginning is the first characters of a text.
func beginning(text string) string {
	n := 0
	for i := range text {
		if n++; n > shownChars {
			return text[:i]
		}
	}
	return text
}

// peek reads as much of an output as decides, and says whether that is all of it.
func (t Triggers) peek(output io.Reader) (head string, whole bool, err error) {
	threshold := t.OutputChars
	if threshold == 0 {
		threshold = DefaultOutputChars
	}
	limit := int64(maxPassed)
	if threshold >= 0 && threshold < limit/utf8.UTFMax {
		limit = threshold*utf8.UTFMax + 1 // a character has at most four bytes, so this decides
	}
	data, err := io.ReadAll(io.LimitReader(output, limit+1))
	return string(data), int64(len(data)) <= limit, err
}

// maxPassed bounds an output that passes as it is, in bytes.
const maxPassed = 64 << 20
