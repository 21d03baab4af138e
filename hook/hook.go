// Package hook condenses the output of a tool before a model reads it: a large output becomes the
// context of a run, and the run's answer replaces it.
package hook

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/inputs"
	"github.com/rlmhq/rlm/repl/run"
)

// hookQuestion is the default question about a large output.
const hookQuestion = "This is the output of a tool, too large to be shown. " +
	"Report what matters in it, faithfully and with exact values: results, errors, warnings, counts. " +
	"Quote what must be quoted."

// Result is the result of [Output].
type Result struct {
	// Trigger is the reason for the run. It is empty if there was no run.
	Trigger run.Trigger
	// Text is for the model that called the tool: the output itself, or the run's answer. For a
	// run without an answer, it contains the reason and the beginning of the output.
	Text string
	// Outcome is the outcome of the run, or nil if there was no run.
	Outcome *rlm.Outcome
}

// maxResult is the maximum size of a tool's output, in bytes.
const maxResult = 1 << 40

// Output condenses the output of a tool before a model reads it. A small output passes unchanged. A
// large output becomes the first context of a run, and the run's answer replaces it. The task's
// Config.Triggers define "large", and which parts of its Signal trigger a run even for a small
// output. The default question asks for the important parts of the output. Output reads the output
// once, and never holds a large one in memory.
//
// answer is usually [rlm.Engine.Ask]. It is called only if a run is triggered, so a program can
// create its engine inside answer.
func Output(
	ctx context.Context, output io.Reader, task rlm.Task,
	answer func(context.Context, rlm.Task) (rlm.Outcome, error),
) (Result, error) {
	triggers := task.Config.WithDefaults().Triggers
	head, whole, err := peek(output, triggers)
	if err != nil {
		return Result{}, fmt.Errorf("cannot read the output: %w", err)
	}
	signal := task.Signal
	signal.OutputChars = int64(utf8.RuneCountInString(head))
	trigger := triggers.ShouldTrigger(signal)
	if head == "" || trigger == "" {
		if !whole {
			err = fmt.Errorf("the output is larger than %d MiB and cannot pass unchanged: "+
				"lower large_output_threshold, so that a run condenses it", maxPassed>>20)
		}
		return Result{Text: head}, err
	}

	if task.Config.Question == "" {
		task.Config.Question = hookQuestion
	}
	all := inputs.Stream(inputs.Options{}, "output", io.MultiReader(strings.NewReader(head), output), maxResult)
	task.Contexts = slices.Concat([]rlm.Context{all}, task.Contexts)
	outcome, err := answer(ctx, task)

	hooked := Result{Trigger: trigger, Text: outcome.Text(), Outcome: &outcome}
	if outcome.Answer == nil {
		hooked.Text = describeFailure(outcome, err, head)
	}
	return hooked, err
}

// describeFailure returns the reason for a run without an answer, and the beginning of the output.
func describeFailure(outcome rlm.Outcome, err error, head string) string {
	reason := outcome.Reason
	if reason == "" && err != nil {
		reason = err.Error()
	}
	return fmt.Sprintf("[The output is large, and the run that was to look at it has no answer: "+
		"%s. It begins:]\n%s\n", reason, cutBeginning(head))
}

// shownChars is the length, in characters, of the beginning that is shown if there is no answer.
const shownChars = 2_000

// cutBeginning returns the first characters of a text.
func cutBeginning(text string) string {
	n := 0
	for i := range text {
		if n++; n > shownChars {
			return text[:i]
		}
	}
	return text
}

// peek reads as much of an output as the threshold requires, and reports whether this is the whole
// output. The thresholds of t must be set.
func peek(output io.Reader, t run.Triggers) (head string, whole bool, err error) {
	threshold := t.OutputChars
	limit := int64(maxPassed)
	if threshold >= 0 && threshold < limit/utf8.UTFMax {
		limit = threshold*utf8.UTFMax + 1 // a character has at most four bytes
	}
	data, err := io.ReadAll(io.LimitReader(output, limit+1))
	return string(data), int64(len(data)) <= limit, err
}

// maxPassed is the maximum size of an output that passes unchanged, in bytes.
const maxPassed = 64 << 20
