package rlm

import (
	"context"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/rlmhq/rlm/repl/run"
)

// What decides whether a run should look at something instead of the model that
// asked. Package repl/run has it.
type (
	// Triggers say when.
	Triggers = run.Triggers
	// Signal is what is known about a task, or about what a tool returned.
	Signal = run.Signal
	// Trigger is a condition that holds.
	Trigger = run.Trigger
)

// The conditions, in the order in which they are looked at, and the thresholds.
const (
	TriggerNone        = run.TriggerNone
	TriggerAlways      = run.TriggerAlways
	TriggerLongHorizon = run.TriggerLongHorizon
	TriggerLargeOutput = run.TriggerLargeOutput
	TriggerManyTraces  = run.TriggerManyTraces
	TriggerManyNodes   = run.TriggerManyNodes

	// NoTrigger as a threshold switches its condition off.
	NoTrigger          = run.NoTrigger
	DefaultOutputChars = run.DefaultOutputChars
	DefaultTraces      = run.DefaultTraces
	DefaultNodes       = run.DefaultNodes
)

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
	return Hook(ctx, output, triggers, task, e.Answer)
}

// Hook is [Engine.HookOutput] with any way to answer, which is called only for what
// triggers: no engine is needed before that.
func Hook(ctx context.Context, output io.Reader, t Triggers, task Task, answer func(context.Context, Task) (Outcome, error)) (Hooked, error) {
	head, whole, err := peek(output, t)
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
func peek(output io.Reader, t Triggers) (head string, whole bool, err error) {
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
