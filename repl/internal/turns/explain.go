package turns

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/rlmhq/rlm/internal/text/quantity"
	"github.com/rlmhq/rlm/repl/internal/record"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/tiers"
)

// Explain describes to the user why the turn has no answer; the notes do so for the model. Limits
// are those of the turn's code.
func (t *Turn) Explain(limits tiers.Limits) string {
	failed := t.Failed()
	switch {
	case failed != nil:
		return explainCode(failed, limits)
	case t.why != "":
		return t.why
	case len(t.Ran) > 0:
		return "the code gave no answer"
	case slices.Contains(t.Notes, ReplyCut):
		return "the limit of tokens cut the reply"
	case len(t.unread) > 0:
		return retell(t.unread[0])
	}
	return "the model wrote neither code nor an answer"
}

// retell turns a note to the model about its reply into a description for the user.
func retell(note string) string {
	fact, _, _ := strings.Cut(note, ": ")
	fact, _, _ = strings.Cut(fact, ". ")
	for _, own := range []struct{ said, meant string }{
		{"Your ", "the "}, {"A block", "a block"}, {"The tool", "the tool"},
	} {
		if rest, ok := strings.CutPrefix(fact, own.said); ok {
			fact = own.meant + rest
		}
	}
	if strings.Contains(strings.ToLower(fact), "your ") {
		return "the reply had an answer that does not count"
	}
	return fact
}

// explainCode describes code that ended early.
func explainCode(failed *ledger.Snippet, limits tiers.Limits) string {
	if failed.Status == tiers.StatusLimit {
		return explainLimit(failed.Limit, limits)
	}
	return cmp.Or(record.FormatFailure(failed), "the code ended as "+string(failed.Status))
}

// explainLimit describes to the user a limit that stopped code, and how to raise it.
func explainLimit(limit tiers.Limit, limits tiers.Limits) string {
	limits = limits.WithDefaults()
	switch limit {
	case tiers.LimitWall:
		return fmt.Sprintf("the code took longer than %v; raise --timeout", limits.Wall)
	case tiers.LimitActive:
		return fmt.Sprintf("the code computed longer than %v; raise --timeout", limits.Active)
	case tiers.LimitMemory:
		return fmt.Sprintf("the code needed more than %s of memory; raise --memory", quantity.IBytes(limits.Memory))
	case tiers.LimitHostCalls:
		return fmt.Sprintf("the code made more than %d calls of host functions", limits.HostCalls)
	case tiers.LimitFuel:
		return fmt.Sprintf("the code did more work than %d; raise --fuel", limits.Fuel)
	case tiers.LimitOutput:
	}
	return "the code reached its limit of " + string(limit)
}
