package correct

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/workflow/internal/flow"
)

// The state variables of a loop.
const (
	stateIteration = "reflection_iteration"
	stateOutput    = "reflection_output"
	stateErrors    = "reflection_errors"
	stateHistory   = "reflection_history"
	stateBest      = "reflection_best"
	stateBestScore = "reflection_best_score"
)

// Attempt is one output and its verdict.
type Attempt struct {
	Iteration int // from 1
	Output    any
	Score     float64 // from 0 to 1
	Valid     bool
	Errors    []any

	foreign bool // see Verdict
}

// values returns the attempt as an entry of reflection_history.
func (a *Attempt) values() map[string]any {
	return map[string]any{
		"iteration": a.Iteration, "output": a.Output, "score": scoreValue(a.Score),
		"valid": a.Valid, "errors": a.Errors,
	}
}

// Outcome is the result of a loop.
type Outcome struct {
	// Success reports that the last attempt is valid. Otherwise the iterations were used up.
	Success bool
	// Chosen is the attempt that the strategy chose, or the valid one.
	Chosen Attempt
	// Best is the valid attempt, or else the earliest one with the highest score; nil if no
	// attempt produced an output of the required type.
	Best    *Attempt
	History []Attempt
}

// Values returns the outcome in the form of reflection.loop. If a valid output is an object, its
// members are added, except those whose names are taken.
func (o *Outcome) Values() map[string]any {
	values := map[string]any{
		"success": o.Success, "valid": o.Success, stateIteration: len(o.History),
		stateOutput: o.Chosen.Output, stateErrors: o.Chosen.Errors,
		stateHistory: historyValues(o.History), stateBestScore: scoreValue(0),
	}

	if o.Best != nil {
		values[stateBest], values[stateBestScore] = o.Best.Output, scoreValue(o.Best.Score)
	}
	if !o.Success {
		values["exhausted"] = true
		return values
	}

	if members, ok := o.Chosen.Output.(map[string]any); ok {
		all := maps.Clone(members)
		maps.Copy(all, values)
		return all
	}
	return values
}

func historyValues(history []Attempt) []any {
	values := make([]any, len(history))
	for i := range history {
		values[i] = history[i].values()
	}
	return values
}

// FailedError is the error of a loop that raises because no attempt was valid.
type FailedError struct {
	History []Attempt
	// Best is the attempt with the highest score; nil if none produced an output.
	Best *Attempt
}

// Error reports the score of the best attempt and the errors of the last.
func (e *FailedError) Error() string {
	score := 0.0
	if e.Best != nil {
		score = e.Best.Score
	}
	text := fmt.Sprintf(
		"no valid output in %d iterations; the best score is %.2f", len(e.History), score,
	)

	if n := len(e.History); n > 0 && len(e.History[n-1].Errors) > 0 {
		text += "; at last " + errorText(e.History[n-1].Errors[0])
	}
	return text
}

// errorText returns an error of a verdict as one line.
func errorText(e any) string {
	members, _ := e.(map[string]any)
	message, _ := members["message"].(string)
	if path, _ := members["path"].(string); path != "" {
		message = path + ": " + message
	}
	const most = 300
	if runes := []rune(message); len(runes) > most {
		message = string(runes[:most]) + "…"
	}
	return message
}

// loop is a running loop.
type loop struct {
	*flow.Run
	cfg     Config
	output  any
	errors  []any
	history []Attempt
	best    *Attempt
}

// Loop makes an output, judges it and corrects it until it is valid or the iterations are
// used up. While it runs, the state has its variables. The error is a [*FailedError] if
// the strategy is Raise and no output was valid; any other error ended the loop early.
func Loop(ctx context.Context, r *flow.Run, cfg Config) (Outcome, error) {
	if err := cfg.validate(); err != nil {
		return Outcome{}, err
	}
	l := &loop{Run: r, cfg: cfg, errors: []any{}}
	defer r.Iterate(0)
	for i := 1; i <= cfg.Iterations; i++ {
		attempt, err := l.attempt(ctx, i)
		if err != nil {
			return Outcome{}, fmt.Errorf("iteration %d: %w", i, err)
		}
		r.Tell(ledger.Event{Kind: ledger.EventVerdict, Status: attempt.text()})
		if attempt.Valid {
			r.Tell(ledger.Event{Kind: ledger.EventAnswer})
			return Outcome{Success: true, Chosen: attempt, Best: l.best, History: l.history}, nil
		}
	}

	outcome := Outcome{Chosen: l.history[len(l.history)-1], Best: l.best, History: l.history}
	switch {
	case cfg.OnFailure == Raise:
		return outcome, &FailedError{History: l.history, Best: l.best}
	case cfg.OnFailure == ReturnBest && l.best != nil:
		outcome.Chosen = *l.best
	}

	return outcome, nil
}

// attempt makes and judges one output.
func (l *loop) attempt(ctx context.Context, i int) (Attempt, error) {
	l.Iterate(i)
	if err := l.publish(i); err != nil {
		return Attempt{}, err
	}
	a := Attempt{Iteration: i}
	output, err := l.make(ctx, i)
	var ended *flow.ProgramError
	switch {
	case err == nil:
		if a, err = l.judgeOutput(ctx, i, output); err != nil {
			return a, err
		}
	case errors.As(err, &ended) && !ended.OfFile():
		a.Errors = failVerdict("%v", ended).Errors
	default:
		return a, err
	}

	l.errors = a.Errors
	l.history = append(l.history, a)
	if a.Valid || a.Output != nil && !a.foreign && (l.best == nil || a.Score > l.best.Score) {
		l.best = &l.history[len(l.history)-1]
	}
	return a, l.publish(i)
}

// judgeOutput judges an output and makes it the current one.
func (l *loop) judgeOutput(ctx context.Context, i int, output any) (Attempt, error) {
	l.output = output
	if err := l.publish(i); err != nil {
		return Attempt{}, err
	}
	output, verdict, err := l.cfg.Evaluator.judge(ctx, l.Run, output)
	if err != nil {
		return Attempt{}, fmt.Errorf("the evaluator: %w", err)
	}

	l.output = output
	return Attempt{
		Iteration: i, Output: output, Score: verdict.Score, Valid: verdict.Valid,
		Errors: verdict.Errors, foreign: verdict.foreign,
	}, nil
}

// make makes the next output: the generator makes the first; the corrector, if any, makes the
// others.
func (l *loop) make(ctx context.Context, i int) (any, error) {
	if i == 1 || l.cfg.Corrector == nil {
		output, err := l.cfg.Generator.do(ctx, l.Run, "the generator", nil)
		if err != nil {
			return nil, fmt.Errorf("the generator: %w", err)
		}
		return output, nil
	}

	output, err := l.cfg.Corrector.do(
		ctx, l.Run, "the corrector", map[string]any{"output": l.output, "errors": l.errors},
	)
	if err != nil {
		return nil, fmt.Errorf("the corrector: %w", err)
	}
	return output, nil
}

// publish puts the loop's variables into the state.
func (l *loop) publish(i int) error {
	values := map[string]any{
		stateIteration: i, stateOutput: l.output, stateErrors: l.errors,
		stateHistory: historyValues(l.history), stateBestScore: scoreValue(0),
	}

	if l.best != nil {
		values[stateBest], values[stateBestScore] = l.best.Output, scoreValue(l.best.Score)
	} else {
		l.Drop(stateBest) // an earlier loop may have set it
	}
	return l.Set(values)
}

// text describes the result of an attempt.
func (a *Attempt) text() string {
	if a.Valid {
		return fmt.Sprintf("the output is valid, score %.2f", a.Score)
	}
	text := fmt.Sprintf("the output is not valid, score %.2f, errors: %d", a.Score, len(a.Errors))
	if len(a.Errors) > 0 {
		text += ", such as " + errorText(a.Errors[0])
	}
	return text
}
