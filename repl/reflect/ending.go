package reflect

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/rlmhq/rlm/internal/text/quantity"
	"github.com/rlmhq/rlm/repl/internal/conversation"
	"github.com/rlmhq/rlm/repl/ledger"
)

// synthesisPurpose is the purpose of the call that asks for the best assessment.
const synthesisPurpose = "synthesis"

// callsForSynthesis returns how many calls are reserved for the synthesis.
func (c *Config) callsForSynthesis() int64 {
	if c.NoSynthesis {
		return 0
	}
	return 1
}

// usedUp returns an error for a part of the budget that allows the synthesis but no further
// iteration, or nil.
func (l *loop) usedUp() *ledger.BudgetError {
	book := l.caller.Ledger
	switch {
	case l.cfg.NoSynthesis:
		return nil
	case time.Now().After(book.LastWord()):
		return book.TimeError()
	case book.CallsLeft() == 0:
		most := float64(l.cfg.MaxLLMCalls)
		return &ledger.BudgetError{What: "calls", Limit: most, Spent: most, Needed: 1}
	}
	return nil
}

// conclude asks once for the best assessment when a part of the budget is used up. Without an
// assessment, the budget error is returned.
func (l *loop) conclude(
	ctx context.Context, it iteration, used *ledger.BudgetError,
) (Outcome, error) {
	reason := "the time was nearly used up"
	if used.What != "seconds" {
		reason = "the budget of " + used.What + " was used up"
	}
	if used.What == "calls" {
		reason = "the budget of " + quantity.Plural(l.cfg.MaxLLMCalls, "call", "") + " was used up"
	}

	outcome, err := l.synthesize(ctx, it, reason)
	if err == nil && outcome.Status == ledger.StatusNoAnswer {
		err = used
	}
	return outcome, err
}

// synthesize asks once for the best assessment when the iterations or a budget is used up. If that
// fails, the reflection ends without an analysis, and the reason names the failure.
func (l *loop) synthesize(ctx context.Context, it iteration, reason string) (Outcome, error) {
	outcome := Outcome{Status: ledger.StatusNoAnswer, Reason: reason}
	if l.cfg.NoSynthesis {
		return outcome, nil
	}

	reflection, err := l.requestAssessment(ctx, it)
	switch {
	case err == nil:
		l.tell(ledger.Event{
			Kind: ledger.EventAnswer, Purpose: synthesisPurpose, Text: reflection.KeyInsight,
		})
		outcome.Status, outcome.Output = ledger.StatusSynthesised, reflection
	case ctx.Err() != nil:
		return outcome, err
	default:
		l.tell(ledger.Event{Kind: ledger.EventWarning, Purpose: synthesisPurpose, Error: err.Error()})
		outcome.Reason += ", and there is no last assessment: " + err.Error()
	}

	return outcome, nil
}

// requestAssessment asks for one more reply and returns its analysis. The reply's code runs in a
// fresh session, unaffected by earlier failures.
func (l *loop) requestAssessment(ctx context.Context, it iteration) (output Analysis, err error) {
	begun := time.Now()
	it.sent = conversation.AppendUser(
		conversation.TrimTurns(it.messages, 1, l.cfg.MaxContextChars),
		strings.TrimSpace(synthesisPrompt),
	)
	response, err := l.ask(ctx, synthesisPurpose, it.sent)
	if err != nil {
		return output, err
	}

	it.response, it.finish = response.Text, response.Finish
	if it, err = l.extract(ctx, it); err != nil {
		return output, err
	}
	if it.code != nil {
		if err := l.renewSession(ctx); err != nil {
			return output, err
		}
	}
	if it, err = l.execute(ctx, it); err != nil {
		return output, err
	}
	defer func() { l.write(it, begun) }()
	value, ok := it.submission()
	switch {
	case !ok:
		return output, errors.New("the reply does not call FINAL")
	case it.result != nil && !it.result.success:
		return output, errors.New("the code of the reply failed")
	}

	if output, err = parseAnalysis(value); err == nil {
		it.reflection = &output
	}
	return output, err
}

// renewSession replaces the session with a fresh one. The executor keeps the output of earlier
// turns, because the assessment may refer to it.
func (l *loop) renewSession(ctx context.Context) error {
	fresh, err := l.open(ctx)
	if err != nil {
		return err
	}
	err = l.session.Close()
	l.session, l.executor.Session = fresh, fresh
	return err
}

// finish completes the output: it describes a missing analysis, and adds the record.
func (l *loop) finish(outcome *Outcome) error {
	var err error
	timedOut := outcome.Status != ledger.StatusAnswered && outcome.Status != ledger.StatusFailed &&
		outcome.Status != ledger.StatusCanceled
	switch {
	case outcome.Status == ledger.StatusSynthesised:
		err = outcome.Output.add(rawPartial, true)
	case timedOut:
		outcome.Output = l.describeTimeout(outcome.Reason)
		err = errors.Join(
			outcome.Output.add(rawTimeout, true),
			outcome.Output.add("max_iterations", l.cfg.MaxIterations),
		)
	}
	return errors.Join(err, outcome.Output.add(rawTrace, l.record(timedOut)))
}

// describeTimeout returns the output of a reflection without an analysis. The output only states
// whether the agent's answer matches the expected one.
func (l *loop) describeTimeout(reason string) Analysis {
	verdict := "There is no ground truth to compare the agent's answer with."
	if truth := l.subject.GroundTruth; truth != nil && strings.TrimSpace(*truth) != "" {
		verdict = "The agent's answer differs from the ground truth."
		if strings.EqualFold(
			strings.TrimSpace(*truth), strings.TrimSpace(l.subject.agent().Answer),
		) {
			verdict = "The agent's answer is the ground truth."
		}
	}

	return Analysis{
		Reasoning:           "The reflection ended without an analysis: " + reason + ". " + verdict,
		ErrorIdentification: "timeout",
		RootCauseAnalysis:   "The trace was not analysed to the end.",
		CorrectApproach:     "Reflect again with more iterations or calls, or on a smaller part of the trace.",
		ExtractedLearnings:  []Learning{},
		SkillTags:           []SkillTag{},
	}
}
