package turns_test

import (
	"strings"
	"testing"

	"github.com/rlmhq/rlm/repl/internal/turns"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/router"
	"github.com/rlmhq/rlm/tiers"
)

// TestFeedbackKeepsItsCap: however many blocks write, and however much a sandbox leaves
// behind.
func TestFeedbackKeepsItsCap(t *testing.T) {
	const limit = 2_000
	ran := make([]ledger.Snippet, 64)
	for i := range ran {
		ran[i].Status = tiers.StatusOK
		ran[i].Stdout = strings.Repeat("o", 3_000)
		ran[i].Stderr = strings.Repeat("e", 3_000)
	}
	left := make([]tiers.Left, 1_000)
	for i := range left {
		left[i] = tiers.Left{Name: strings.Repeat("n", 300), Reason: strings.Repeat("r", 300)}
	}
	ran[0].Moved = &router.Move{Report: tiers.Report{Left: left}}
	ran[63].Status = tiers.StatusRaised
	ran[63].Exception = &tiers.Exception{
		Type: "ValueError", Traceback: "Traceback: ValueError: the reason",
	}
	told := turns.WriteFeedback(ran, 0, turns.FeedbackOptions{Cap: limit, Turn: 1, Turns: 9})
	if len(told) > limit+64*120+30*700+3_000 || !strings.Contains(told, "the reason") ||
		!strings.Contains(told, "970 more were left behind") {
		t.Errorf("%d characters: %.300s … %s", len(told), told, told[len(told)-300:])
	}
}
