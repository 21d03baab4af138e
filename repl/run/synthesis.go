package run

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/rlmhq/rlm/internal/text/texts"
	"github.com/rlmhq/rlm/repl/internal/calls"
	"github.com/rlmhq/rlm/repl/internal/conversation"
	"github.com/rlmhq/rlm/repl/internal/turns"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
)

// mustConclude reports whether so little time is left that the root's next reply must be its
// last.
func (l *loop) mustConclude() bool {
	return l.depth == 0 && !l.cfg.NoSynthesis && time.Now().After(l.ledger.LastWord())
}

// concludeInTime asks for the best available answer, because the time is nearly used up.
func (l *loop) concludeInTime(ctx context.Context) (Outcome, error) {
	outcome, err := l.synthesize(ctx, "time", "the time was nearly used up")
	if err == nil && outcome.Answer == nil {
		l.tell(ledger.Event{Kind: ledger.EventWarning, Purpose: "synthesis", Error: outcome.Reason})
		err = l.ledger.TimeError()
	}
	return outcome, err
}

// leaveTime returns a context for the root's snippets that reserves half of the root's last time
// for the root. Snippets whose sub-calls have just ended may use the other half.
func (l *loop) leaveTime(ctx context.Context) (context.Context, context.CancelFunc) {
	if l.depth > 0 || l.cfg.NoSynthesis {
		return ctx, func() {}
	}
	return l.ledger.WithTimeForRoot(ctx, 0.5)
}

// noteStopped appends to the messages a reply whose code was stopped when the time ran out.
func (l *loop) noteStopped(reply string, done *turns.Turn) {
	told := "Your code was stopped, because the time of the run is nearly used up. What it wrote:\n" +
		texts.Truncate(turns.JoinOutput(done.Ran), l.cfg.FeedbackChars)
	if failed := l.answers.TakeFailed(); failed.Count > 0 {
		told += "\n" + failed.String()
	}
	l.messages = conversation.AppendReply(l.messages, reply, told)
}

// readLastWord returns the answer in the last reply, or the problem with it. The model cannot be
// asked again, so a reply that a loop would question is not an answer.
func (l *loop) readLastWord(
	response llm.Response, done *turns.Turn,
) (value json.RawMessage, lack string, err error) {
	failed := l.answers.TakeFailed()
	switch {
	case failed.Count > 0:
		return nil, failed.String(), nil
	case done.Final != nil:
		value = done.Final.Value
	case response.Finish != llm.FinishStop:
		return nil, calls.DescribeCut(response), nil
	case done.IsSilent && len(done.Notes) == 0:
		if lack = turns.RefuseWords(response.Text); lack != "" {
			return nil, lack, nil
		}
		if value, err = texts.Quote(strings.TrimSpace(response.Text)); err != nil {
			return nil, "", err
		}
	default:
		return nil, done.Explain(l.cfg.Limits), nil
	}

	switch {
	case string(value) == `""` || string(value) == "null" && l.contract == nil:
		return nil, "the reply has nothing in it", nil
	case l.answers.FindFailure(value) != "":
		return nil, "the reply has a sub-call that failed in it", nil
	}
	return value, "", nil
}

// synthesize asks once for the best available answer when the turns, the time or a budget is used
// up.
func (l *loop) synthesize(ctx context.Context, usedUp, reason string) (Outcome, error) {
	if l.cfg.NoSynthesis {
		return Outcome{Status: ledger.StatusNoAnswer, Reason: reason}, nil
	}
	order, err := prompt("synthesis", map[string]any{"UsedUp": usedUp})
	if err != nil {
		return Outcome{}, err
	}

	_, response, err := l.askFitting(ctx, "synthesis", order)
	if err != nil {
		return Outcome{}, err
	}
	if declined := calls.CheckRefusal(l.model, response); declined != nil {
		return Outcome{ //nolint:nilerr // a refusal is an outcome
			Status: ledger.StatusNoAnswer, Reason: reason + ", and " + declined.Error(),
		}, nil
	}
	done, err := l.execute(ctx, readReply(response))
	if err != nil {
		return Outcome{}, err
	}

	value, lack, err := l.readLastWord(response, &done)
	if err != nil {
		return Outcome{}, err
	}
	if lack != "" {
		return Outcome{Status: ledger.StatusNoAnswer, Reason: reason + ", and for the last answer " + lack}, nil
	}
	answer, violations := l.check(value)
	if violations != nil {
		return Outcome{
			Status: ledger.StatusNoAnswer,
			Reason: reason + ", and the last answer does not meet the schema: " + violations[0].String(),
		}, nil
	}

	l.tell(ledger.Event{Kind: ledger.EventAnswer, Purpose: "synthesis", Text: texts.Show(answer)})
	return Outcome{Status: ledger.StatusSynthesised, Answer: answer, Reason: reason}, nil
}
