package run

import (
	"context"
	"fmt"

	"github.com/rlmhq/rlm/repl/internal/turns"
)

// checkFailed informs the model about sub-calls that failed in a turn. An answer of that turn is
// not accepted, because the model gave it before it was informed. The model may repeat the answer,
// but an answer with the text of a failure is never accepted.
func (l *loop) checkFailed(ctx context.Context, done *turns.Turn) error {
	failed := l.answers.TakeFailed()
	if done.Final != nil {
		if text := l.answers.FindFailure(done.Final.Value); text != "" {
			done.Refuse("the answer has the text of a sub-call that failed in it",
				fmt.Sprintf("FINAL was not accepted: the answer has the text of a "+
					"sub-call that failed in it, %q. Repeat the call, or say in your own words what is missing.", text))
		}
	}
	if failed.Count == 0 {
		return nil
	}
	if done.Final == nil {
		if !done.Shows(failed.Reasons) {
			done.Notes = append(done.Notes, failed.String())
		}
		return nil
	}

	note := "FINAL was not accepted yet: " + failed.String() + "\nRepeat them, or answer without them."
	if failed.Count < failed.Of {
		if err := l.session.Assign(ctx, keptAnswer, done.Final.Value); err != nil {
			return err
		}
		note = "FINAL was not accepted yet: " + failed.String() + "\nRepeat them. If your answer holds without them, " +
			"confirm it: FINAL(" + keptAnswer + ")"
	}
	done.Refuse(failed.String(), note)
	return nil
}

// keptAnswer is the variable that holds an answer for the model to confirm.
const keptAnswer = "_answer"
