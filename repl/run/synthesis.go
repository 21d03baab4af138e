package run

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/rlmhq/rlm/internal/texts"
	"github.com/rlmhq/rlm/repl/internal/calls"
	"github.com/rlmhq/rlm/repl/ledger"
)

// synthesize asks for the best answer so far, once, when the turns are used up.
func (l *loop) synthesize(ctx context.Context) (Outcome, error) {
	reason := fmt.Sprintf("the %d turns were used up", l.cfg.MaxTurns)
	if l.cfg.NoSynthesis {
		return Outcome{Status: ledger.StatusNoAnswer, Reason: reason}, nil
	}
	order, err := prompt("synthesis", nil)
	if err != nil {
		return Outcome{}, err
	}

	_, response, err := l.askFitting(ctx, "synthesis", order)
	if err != nil {
		return Outcome{}, err
	}
	done, err := l.execute(ctx, readReply(response))
	if err != nil {
		return Outcome{}, err
	}
	if declined := calls.CheckRefusal(l.model, response); declined != nil && done.IsSilent {
		return Outcome{
			Status: ledger.StatusNoAnswer, Reason: reason + ", and " + declined.Error(),
		}, nil
	}

	failed := l.answers.TakeFailed()
	value := json.RawMessage(nil)
	if done.Final != nil {
		value = done.Final.Value
	} else if done.IsSilent {
		if value, err = json.Marshal(strings.TrimSpace(response.Text)); err != nil {
			return Outcome{}, err
		}
	}

	switch {
	case failed.Count > 0:
		return Outcome{
			Status: ledger.StatusNoAnswer, Reason: reason + ", and for the last answer " + failed.String(),
		}, nil
	case value == nil || string(value) == `""`:
		return Outcome{Status: ledger.StatusNoAnswer, Reason: reason}, nil
	case l.answers.FindFailure(value) != "":
		return Outcome{
			Status: ledger.StatusNoAnswer, Reason: reason + ", and the last answer has a sub-call that failed in it",
		}, nil
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
