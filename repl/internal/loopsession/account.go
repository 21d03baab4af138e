package loopsession

import (
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rlmhq/rlm/internal/snippet/protocol"
	"github.com/rlmhq/rlm/internal/text/texts"
	"github.com/rlmhq/rlm/repl/internal/calls"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/tiers"
)

// account counts tool calls against the budget of a run, and reports them.
type account struct {
	ledger *calls.Ledger
	tell   func(ledger.Event)
	// free holds the functions whose calls are not counted: they compute for the snippet, whose
	// limits bound them, or belong to the session.
	free map[string]bool
}

// newAccount returns the account of a session, or nil without a ledger.
func newAccount(cfg *Config, functions []tiers.Function) *account {
	if cfg.Ledger == nil {
		return nil
	}
	a := &account{ledger: cfg.Ledger, tell: cfg.Tell, free: map[string]bool{protocol.Lack: true}}
	for _, f := range functions {
		if f.Timed {
			a.free[f.Name] = true
		}
	}
	return a
}

// take charges a call before it is made. The error is a [*ledger.BudgetError].
func (a *account) take(call *tiers.Call) (used ledger.Spending, err error) {
	if a == nil || a.free[call.Function] {
		return used, nil
	}
	if err := a.ledger.TakeToolCall(); err != nil {
		if a.ledger.CountRefusal() {
			a.tell(ledger.Event{Kind: ledger.EventRefusal, Error: call.Function + ": " + err.Error()})
		}
		return used, err
	}
	return ledger.Spending{ToolCalls: 1}, nil
}

// giveBack returns the charge of a call that was not made.
func (a *account) giveBack(used *ledger.Spending) {
	a.book(ledger.Spending{ToolCalls: -used.ToolCalls})
	*used = ledger.Spending{}
}

// book adds the spending of an earlier process.
func (a *account) book(used ledger.Spending) {
	if a != nil {
		a.ledger.Book(used)
	}
}

// report reports that a call ended.
func (a *account) report(call *tiers.Call, e *toolEnding, elapsed time.Duration) {
	if a == nil || a.free[call.Function] {
		return
	}
	spent := a.ledger.Spent()
	a.tell(ledger.Event{
		Kind: ledger.EventTool, Text: showCall(call), Error: texts.Truncate(e.Error, maxError),
		Elapsed: elapsed, Used: &e.Used, Spent: &spent,
	})
}

// maxArgument and maxError bound an argument and an error in an event, in characters.
const (
	maxArgument = 200
	maxError    = 1_000
)

// showCall formats a call as in a snippet, with its arguments shortened.
func showCall(call *tiers.Call) string {
	var parts []string
	for _, value := range call.Args {
		parts = append(parts, texts.Truncate(string(value), maxArgument))
	}
	for _, name := range slices.Sorted(maps.Keys(call.Named)) {
		parts = append(parts, name+"="+texts.Truncate(string(call.Named[name]), maxArgument))
	}
	return call.Function + "(" + strings.Join(parts, ", ") + ")"
}
