package calls

import (
	"fmt"
	"testing"

	"github.com/rlmhq/rlm/repl/ledger"
)

// TestARunBelowAnotherIsASubLoop checks that the nodes of such a run are below the sub-loop's, that
// it begins and ends like a loop, and that its spending is added to earlier spending.
func TestARunBelowAnotherIsASubLoop(t *testing.T) {
	var told []string
	tell := NestEvents("0.2", ledger.Spending{Calls: 10}, func(e ledger.Event) {
		calls := int64(-1)
		if e.Spent != nil {
			calls = e.Spent.Calls
		}
		told = append(told, fmt.Sprint(e.Kind, " ", e.Node, " ", e.Depth, " ", calls))
	})
	spent := ledger.Spending{Calls: 1}
	for _, e := range []ledger.Event{
		{Kind: ledger.EventRunStarted, Node: "0"},
		{Kind: ledger.EventReply, Node: "0", Spent: &spent},
		{Kind: ledger.EventLoopStarted, Node: "0.1", Depth: 1},
		{Kind: ledger.EventLoopEnded, Node: "0.1", Depth: 1},
		{Kind: ledger.EventRunEnded, Node: "0", Spent: &spent},
	} {
		tell(e)
	}
	want := "[loop_started 0.2 1 -1 reply 0.2 1 11 loop_started 0.2.1 2 -1 loop_ended 0.2.1 2 -1 loop_ended 0.2 1 11]"
	if got := fmt.Sprint(told); got != want {
		t.Errorf("told were %s, want %s", got, want)
	}
	if spent.Calls != 1 {
		t.Error("the event of the run was changed")
	}
	if NestEvents("0.1", ledger.Spending{}, nil) != nil {
		t.Error("events for nobody are told")
	}
}
