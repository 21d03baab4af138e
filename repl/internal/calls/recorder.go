package calls

import (
	"context"
	"strings"

	"github.com/rlmhq/rlm/repl/ledger"
)

type recorderKey struct{}

// WithRecorder returns a context that sends sub-calls to record, which is called concurrently.
func WithRecorder(ctx context.Context, record func(ledger.SubCall)) context.Context {
	return context.WithValue(ctx, recorderKey{}, record)
}

// RecordCall passes a sub-call to the recorder of the snippet that made it.
func RecordCall(ctx context.Context, c ledger.SubCall) {
	if record, ok := ctx.Value(recorderKey{}).(func(ledger.SubCall)); ok {
		record(c)
	}
}

// maxEventText bounds each string of an event, in characters.
const maxEventText = 4_000

// NestEvents returns a function that passes on the events of a run as events of a sub-loop, for a
// run that consists of others. Node is the name of the sub-loop; spent is the spending before it.
func NestEvents(node string, spent ledger.Spending, emit func(ledger.Event)) func(ledger.Event) {
	if emit == nil {
		return nil
	}
	return func(e ledger.Event) {
		e.Depth += strings.Count(node, ".")
		e.Node = node + strings.TrimPrefix(e.Node, "0")
		switch e.Kind { //nolint:exhaustive // the others stay as they are
		case ledger.EventRunStarted:
			e.Kind = ledger.EventLoopStarted
		case ledger.EventRunEnded:
			e.Kind = ledger.EventLoopEnded
		}

		if e.Spent != nil {
			sum := Add(spent, *e.Spent)
			e.Spent = &sum
		}
		emit(e)
	}
}
