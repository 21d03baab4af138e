package repl

import (
	"context"
	"strings"
)

type recorderKey struct{}

// WithRecorder makes sub-calls under the returned context known to record, which
// is called concurrently.
func WithRecorder(ctx context.Context, record func(SubCall)) context.Context {
	return context.WithValue(ctx, recorderKey{}, record)
}

// Record makes a sub-call known to the snippet that made it.
func Record(ctx context.Context, c SubCall) {
	if record, ok := ctx.Value(recorderKey{}).(func(SubCall)); ok {
		record(c)
	}
}

// maxEventText bounds the texts of an event, in characters.
const maxEventText = 4_000

// Below returns what passes the events of a run on as those of a sub-loop, for a run
// that consists of others. Node is the sub-loop's, spent what was used before it.
func Below(node string, spent Spending, emit func(Event)) func(Event) {
	if emit == nil {
		return nil
	}
	return func(e Event) {
		e.Depth += strings.Count(node, ".")
		e.Node = node + strings.TrimPrefix(e.Node, "0")
		switch e.Kind { //nolint:exhaustive // the others stay as they are
		case EventRunStarted:
			e.Kind = EventLoopStarted
		case EventRunEnded:
			e.Kind = EventLoopEnded
		}
		if e.Spent != nil {
			sum := spent.Plus(*e.Spent)
			e.Spent = &sum
		}
		emit(e)
	}
}
