package tools

import (
	"context"
	"fmt"
	"sync/atomic"

	"github.com/rlmhq/rlm/internal/text/quantity"
)

// Allowance bounds tool calls outside of runs, whose budgets count their own calls. It is safe for
// concurrent use.
type Allowance struct {
	most int64
	made atomic.Int64
}

// NewAllowance returns an allowance of most calls.
func NewAllowance(most int64) *Allowance { return &Allowance{most: most} }

type allowanceKey struct{}

// In returns a context whose tool calls count against the allowance.
func (a *Allowance) In(ctx context.Context) context.Context {
	return context.WithValue(ctx, allowanceKey{}, a)
}

// take counts a call against the context's allowance, if there is one.
func take(ctx context.Context, t *tool) error {
	a, ok := ctx.Value(allowanceKey{}).(*Allowance)
	if ok && a.made.Add(1) > a.most {
		return fmt.Errorf("%s: the budget of %s tool calls is used up: see --max-tool-calls",
			t.shown(), quantity.Comma(a.most))
	}
	return nil
}
