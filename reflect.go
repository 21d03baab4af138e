package rlm

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/reflect"
)

// ReflectOutcome says how a run of [Engine.Reflect] ended.
type ReflectOutcome = reflect.Outcome

// ReflectTask is the record of an agent's work, from which models are to learn.
type ReflectTask struct {
	// Subject is the record: see [ParseTrace].
	Subject reflect.Subject
	// Policy says which tiers may run the snippets.
	Policy Policy
	// Labels say for whom the run works: see [SessionConfig]. Its events have them, too.
	Labels map[string]string
	// Config is the models and the bounds. Its Open is made of the fields above.
	Config reflect.Config
}

// Reflect has a model explore a record by snippets, which the engine runs, until it hands
// over what can be learned. The Outcome's status says how the run ended; a budget or
// iterations that were used up are no error. The error is a [*SetupError] if nothing was
// begun, the context's cause if it ended, or what broke.
func (e *Engine) Reflect(ctx context.Context, task ReflectTask) (ReflectOutcome, error) {
	refused := func(err error) (ReflectOutcome, error) {
		return ReflectOutcome{Status: ledger.StatusFailed, Reason: err.Error()}, refuse(err)
	}
	ctx, leave, err := e.enter(ctx, task.Policy, task.Labels)
	if err != nil {
		return refused(err)
	}
	defer leave()

	cfg := task.Config
	if err := ledger.CheckModels(ctx, cfg.Models, cfg.Model, cfg.SubagentModel); err != nil {
		return refused(err)
	}
	cfg.Open = e.opener(task.Policy, task.Labels)
	cfg.Progress = addLabels(cfg.Progress, task.Labels)

	return reflect.Run(ctx, cfg, task.Subject)
}

// ParseTrace reads the record of an agent's work, of at most 32 MiB: an agent's output,
// messages in the form of OpenAI or Anthropic, a history of browser-use, steps of
// LangChain, a tau-bench simulation, or a dict with question and steps. format is one of
// [TraceFormats].
func ParseTrace(data []byte, format string) (reflect.Subject, error) {
	if !slices.Contains(TraceFormats(), format) {
		return reflect.Subject{}, fmt.Errorf("unknown format %q: give one of %s",
			format, strings.Join(TraceFormats(), ", "))
	}
	return reflect.ParseTrace(data, format)
}

// TraceFormats returns the formats of [ParseTrace]. The first, "auto", finds out which of
// the others it is.
func TraceFormats() []string { return reflect.TraceFormats() }
