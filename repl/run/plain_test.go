package run_test

import (
	"strings"
	"testing"

	"github.com/rlmhq/rlm/repl/ledger"
)

// TestWordsAreAnAnswerWhereThereIsNothingToLookAt checks that replies in words are answers if the
// run has no input, and are not if it has one.
func TestWordsAreAnAnswerWhereThereIsNothingToLookAt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		script []string
		calls  int
		answer string // "" for no answer
		reason string
	}{
		"greeting":       {[]string{"Hello.", "Hello."}, 2, "Hello.", ""},
		"code after all": {[]string{"It is 4.", code("FINAL(2 + 2)")}, 2, "4", ""},
		"announcements": {
			[]string{"I will compute it.", "I'll compute it.", "I will compute it."},
			3, "", "neither code nor an answer",
		},
		"doubts": {
			[]string{"5.", "Wait, that is wrong.", "Wait, that is wrong.", "Wait, that is wrong."},
			4, "", "neither code nor an answer",
		},
		"code in between": {[]string{"Four.", code("x = 4"), "Four.", "Four."}, 4, "Four.", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &models{script: c.script}
			outcome := solve(t, config(m))
			isAnswered := outcome.Status == ledger.StatusAnswered
			if isAnswered != (c.answer != "") || isAnswered && outcome.Text() != c.answer ||
				!strings.Contains(outcome.Reason, c.reason) || len(m.requests) != c.calls {
				t.Errorf("%s after %d calls: %q, %s", outcome.Status, len(m.requests), outcome.Text(), outcome.Reason)
			}
		})
	}

	m := &models{script: []string{"Hello.", "Hello.", "Hello."}}
	outcome := solve(t, config(m, text("input")))
	if outcome.Status != ledger.StatusNoAnswer || strings.Contains(outcome.Reason, "Your reply") {
		t.Errorf("with an input: %s, %q, %s", outcome.Status, outcome.Text(), outcome.Reason)
	}
}
