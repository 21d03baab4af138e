package loops

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
	"github.com/rlmhq/rlm/internal/keep/runlog"
	"github.com/rlmhq/rlm/repl/ledger"
)

// canContinue reports whether a run could make progress if it were continued. A run that ended,
// never began, or requested an unknown model would end the same way again.
func canContinue(outcome *rlm.Outcome, err error) bool {
	var setup *rlm.SetupError
	var course *runlog.CourseError
	return outcome.Answer == nil && outcome.Status != ledger.StatusNoAnswer && !errors.As(err, &setup) &&
		!errors.As(err, &course) && !cli.IsUnknownModel(err)
}

// raiseBudget returns the flag, after a space, that a run needs to continue after its budget ran
// out. The flag doubles the limit whose use is highest. The result is empty for other runs.
func raiseBudget(outcome *rlm.Outcome) string {
	if outcome.Status != ledger.StatusPartial {
		return ""
	}

	spent, budget := outcome.Spent, outcome.Budget
	tokens := float64(spent.InputTokens + spent.OutputTokens)
	flag, most := "", 0.0
	for _, part := range []struct {
		flag        string
		spent, most float64
		text        string
	}{
		{"--max-calls", float64(spent.Calls), float64(budget.Calls), double(budget.Calls)},
		{"--max-tool-calls", float64(spent.ToolCalls), float64(budget.ToolCalls), double(budget.ToolCalls)},
		{"--max-input-tokens", float64(spent.InputTokens), float64(budget.InputTokens), double(budget.InputTokens)},
		{"--max-output-tokens", float64(spent.OutputTokens), float64(budget.OutputTokens), double(budget.OutputTokens)},
		{"--max-tokens", tokens, float64(budget.Tokens), double(budget.Tokens)},
		{"--max-usd", spent.USD, budget.USD, strconv.FormatFloat(2*budget.USD, 'g', -1, 64)},
		{"--max-time", float64(outcome.Elapsed), float64(budget.Wall), showTime(2 * budget.Wall)},
	} {
		if part.most > 0 && part.spent/part.most > most {
			flag, most = fmt.Sprintf(" %s %s", part.flag, part.text), part.spent/part.most
		}
	}
	return flag
}

func double(n int64) string { return strconv.FormatInt(2*n, 10) }

// showTime formats a duration as 2h instead of 2h0m0s.
func showTime(t time.Duration) string {
	if t%time.Hour == 0 {
		return fmt.Sprintf("%dh", t/time.Hour)
	}
	return t.String()
}
