package rlm

import (
	"context"

	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/repl/ledger"
)

var _ repl.Engine = (*Engine)(nil)

// RunLoop runs a loop of another package, such as [github.com/rlmhq/rlm/repl/workflow.RunOn]. The
// error is a [*SetupError] if the loop could not begin, the context's cause if the context ended,
// or the failure that ended the loop.
func (e *Engine) RunLoop(ctx context.Context, task repl.Task, loop repl.Loop) error {
	ctx, leave, err := e.enter(ctx, task.Policy, task.Labels)
	if err != nil {
		return refuse(ctx, err)
	}
	defer leave()
	if loop.Check != nil {
		if err := loop.Check(ctx); err != nil {
			return refuse(ctx, err)
		}
	}

	kept := keptRun{name: task.Name, loop: loop.Kind, title: loop.Title, begun: task.Begun, notKept: task.NotKept}
	return e.keepRun(ctx, kept, func(ctx context.Context) (ledger.Status, string, error) {
		return loop.Run(ctx, repl.Lent{Open: e.opener(task.Policy, task.Labels), SQL: e.sql})
	})
}
