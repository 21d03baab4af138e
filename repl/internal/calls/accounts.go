package calls

import (
	"context"
	"sync"
	"time"

	"github.com/rlmhq/rlm/repl/ledger"
)

// Ledger keeps the accounts of one run. It is safe for concurrent use.
//
// Each call reserves its maximum cost beforehand and settles its real cost afterwards, so that
// concurrent calls cannot exceed the budget. A run exceeds its budget only if a server uses more
// than the request allows.
type Ledger struct {
	budget ledger.Budget
	start  time.Time
	// atOnce is the number of snippet calls that share the rest of the budget; 0 means 1.
	atOnce int64
	// kept is the number of calls that are reserved for those marked Last.
	kept int64

	mu       sync.Mutex
	spent    ledger.Spending
	reserved ledger.Spending
	settled  chan struct{} // closed and replaced whenever a reservation ends
	refused  int
}

// NewLedger opens the accounts of a run.
func NewLedger(b ledger.Budget) (*Ledger, error) {
	if err := CheckBudget(b); err != nil {
		return nil, err
	}
	return &Ledger{budget: b.WithDefaults(), start: time.Now(), settled: make(chan struct{})}, nil
}

// Budget returns the whole budget, with defaults filled in.
func (l *Ledger) Budget() ledger.Budget { return l.budget }

// Spent returns the sum of the settled calls.
func (l *Ledger) Spent() ledger.Spending {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.spent
}

// Deadline returns the end of the time budget.
func (l *Ledger) Deadline() time.Time { return l.start.Add(l.budget.Wall) }

// timeForRoot is the part of the time that sub-calls leave to the root, so that it can finish: a
// twentieth, or half a minute if that is at most a quarter.
func (l *Ledger) timeForRoot() time.Duration {
	wall := l.budget.Wall
	return max(wall/20, min(30*time.Second, wall/4))
}

// LastWord returns the time at which sub-calls end, so that the root has the rest.
func (l *Ledger) LastWord() time.Time { return l.Deadline().Add(-l.timeForRoot()) }

// Elapsed returns the time since the ledger was opened.
func (l *Ledger) Elapsed() time.Duration { return time.Since(l.start) }

// CallsLeft returns the number of remaining calls, without those reserved for [Ask.Last].
func (l *Ledger) CallsLeft() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return max(0, l.budget.Calls-l.kept-l.spent.Calls-l.reserved.Calls)
}

// Check returns a [*ledger.BudgetError] if sub-calls with this need do not fit into the rest of
// the budget, counting calls in flight. It reserves nothing.
func (l *Ledger) Check(need ledger.Spending) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.findLack(Add(Add(l.spent, l.reserved), l.reserveForRoot()), need)
}

// minOutput is the minimum length of a useful reply, in tokens.
const minOutput = 64

// Need is the most that a call may use.
type Need struct {
	ledger.Spending
	// PromptUSD is the part of USD that does not depend on the length of the reply.
	PromptUSD float64
	// Sub marks a call below the root, which leaves the end of the budget to the root loop,
	// so that the root can finish.
	Sub bool
	// Last marks a call that may use the calls kept for it, and the tokens and dollars that
	// sub-calls leave to the root.
	Last bool
	// Least is the number of output tokens that suffice to start the call, if it can be repeated
	// with more. The call is then granted at most its share of the budget, so that even a small
	// budget allows many concurrent calls. 0 means that the call needs all its tokens from the
	// start.
	Least int64
}

// withOutput returns a need with at most that many output tokens.
func (n Need) withOutput(most int64) Need {
	if most < n.OutputTokens {
		share := float64(most) / float64(n.OutputTokens)
		n.USD = n.PromptUSD + share*(n.USD-n.PromptUSD)
		n.OutputTokens = most
	}
	return n
}

// Reserve sets aside the maximum cost of a call. While only calls in flight prevent the grant, it
// waits, because they seldom use their whole reservation. The output tokens are reduced to the rest
// of the budget, but not below minOutput; Grant holds the result. The error is a
// [*ledger.BudgetError] or the context's.
func (l *Ledger) Reserve(ctx context.Context, need Need) (*Reservation, error) {
	for {
		r, wait, err := l.try(need)
		if wait == nil {
			return r, err
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// try makes a reservation, returns a channel to wait for, or refuses.
func (l *Ledger) try(need Need) (*Reservation, chan struct{}, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	spent := l.spent
	switch {
	case need.Sub && time.Now().After(l.LastWord()):
		return nil, nil, l.TimeError()
	case need.Sub:
		spent = Add(spent, l.reserveForRoot())
	case l.kept > 0 && !need.Last:
		kept := l.reserveForRoot()
		kept.Calls = l.kept
		spent = Add(spent, kept)
	}
	if need.Least > 0 {
		need = need.withOutput(max(need.Least, l.leftForOutput(need, spent, max(1, l.atOnce))))
	}

	if l.findLack(Add(spent, l.reserved), need.Spending) == nil {
		return l.grant(need), nil, nil
	}
	if l.reserved.Calls > 0 {
		return nil, l.settled, nil
	}

	need = need.withOutput(max(minOutput, l.leftForOutput(need, spent, 1)))
	if err := l.findLack(spent, need.Spending); err != nil {
		return nil, nil, err
	}
	return l.grant(need), nil, nil
}

// grant reserves a need.
func (l *Ledger) grant(need Need) *Reservation {
	l.reserved = Add(l.reserved, need.Spending)
	return &Reservation{ledger: l, Grant: need.Spending}
}

// reserveForRoot returns the part of the budget that sub-calls leave to the root: two calls (at
// least the kept ones), and a twentieth of everything else.
func (l *Ledger) reserveForRoot() ledger.Spending {
	b := l.budget
	return ledger.Spending{
		Calls: max(l.kept, min(2, b.Calls/4)), InputTokens: min(b.InputTokens, b.Tokens) / 20,
		OutputTokens: min(b.OutputTokens, b.Tokens) / 20, USD: b.USD / 20,
	}
}

// leftForOutput returns how many output tokens a call may use if a number of equal calls share the
// rest of the budget.
func (l *Ledger) leftForOutput(need Need, spent ledger.Spending, calls int64) int64 {
	b := l.budget
	left := min(
		(b.OutputTokens-spent.OutputTokens)/calls,
		(b.Tokens-spent.InputTokens-spent.OutputTokens)/calls-need.InputTokens,
	)

	if usd := need.USD - need.PromptUSD; usd > 0 {
		share := ((b.USD-spent.USD)/float64(calls) - need.PromptUSD) / usd
		left = int64(min(float64(left), share*float64(need.OutputTokens)))
	}
	return left
}

// findLack returns an error for the first part of the budget that the need exceeds.
func (l *Ledger) findLack(used, need ledger.Spending) error {
	b := l.budget
	if l.Elapsed() >= b.Wall {
		return l.TimeError()
	}

	for _, f := range []struct {
		what                string
		limit, spent, needs int64
	}{
		{"calls", b.Calls, used.Calls, need.Calls},
		{"tool calls", b.ToolCalls, used.ToolCalls, need.ToolCalls},
		{"input tokens", b.InputTokens, used.InputTokens, need.InputTokens},
		{"output tokens", b.OutputTokens, used.OutputTokens, need.OutputTokens},
		{
			"tokens", b.Tokens,
			used.InputTokens + used.OutputTokens, need.InputTokens + need.OutputTokens,
		},
	} {
		if f.needs > 0 && f.spent+f.needs > f.limit {
			return &ledger.BudgetError{
				What:   f.what,
				Limit:  float64(f.limit),
				Spent:  float64(f.spent),
				Needed: float64(f.needs),
			}
		}
	}

	// Sums of fractions are inexact, so a millionth of a cent is ignored.
	if need.USD > 0 && used.USD+need.USD > b.USD+1e-8 {
		return &ledger.BudgetError{
			What:   "US dollars",
			Limit:  b.USD,
			Spent:  used.USD,
			Needed: need.USD,
		}
	}

	return nil
}

// Reservation is a part of a budget set aside for one call. Settle or Release ends it; ending it
// again does nothing.
type Reservation struct {
	ledger *Ledger
	done   sync.Once
	// Grant is the reserved part.
	Grant ledger.Spending
}

// maxRefusals bounds the refusal events, because a refused call costs nothing and a snippet may
// repeat it endlessly.
const maxRefusals = 100

// CountRefusal counts a refusal and reports whether the run emits an event for it.
func (l *Ledger) CountRefusal() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refused++
	return l.refused <= maxRefusals
}

// Settle replaces the reservation with the real spending, even if that is more.
func (r *Reservation) Settle(used ledger.Spending) {
	r.done.Do(func() {
		l := r.ledger
		l.mu.Lock()
		defer l.mu.Unlock()
		l.reserved = subtract(l.reserved, r.Grant)
		l.spent = Add(l.spent, used)
		close(l.settled)
		l.settled = make(chan struct{})
	})
}

// TakeToolCall charges a tool call before it is made. The error is a [*ledger.BudgetError].
func (l *Ledger) TakeToolCall() error {
	one := ledger.Spending{ToolCalls: 1}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := l.findLack(l.spent, one); err != nil {
		return err
	}
	l.spent = Add(l.spent, one)
	return nil
}

// Book adds the spending of a call that an earlier process paid for.
func (l *Ledger) Book(used ledger.Spending) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.spent = Add(l.spent, used)
}

// Restore continues the accounts of an earlier process: its spending and its elapsed time.
func (l *Ledger) Restore(spent ledger.Spending, elapsed time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.spent, l.start = spent, time.Now().Add(-elapsed)
}

// Release returns the reservation of a call that was never made.
func (r *Reservation) Release() { r.Settle(ledger.Spending{}) }

// TimeError returns the error that the time is used up, or all of it except the root's part.
func (l *Ledger) TimeError() *ledger.BudgetError {
	return &ledger.BudgetError{
		What: "seconds", Limit: l.budget.Wall.Seconds(), Spent: l.Elapsed().Seconds(),
		Needed: l.timeForRoot().Seconds(),
	}
}

// WithDeadline returns a context that ends with the ledger's time budget. Its cause is a
// [*ledger.BudgetError].
func (l *Ledger) WithDeadline(ctx context.Context) (context.Context, context.CancelFunc) {
	limit := l.budget.Wall.Seconds()
	return context.WithDeadlineCause(
		ctx, l.Deadline(), &ledger.BudgetError{What: "seconds", Limit: limit, Spent: limit},
	)
}

// WithTimeForRoot returns a context that ends early enough to leave a share of the root's time
// to the root. Its cause is a [*ledger.BudgetError].
func (l *Ledger) WithTimeForRoot(ctx context.Context, share float64) (context.Context, context.CancelFunc) {
	left := time.Duration(share * float64(l.timeForRoot()))
	end := l.Deadline().Add(-left)
	return context.WithDeadlineCause(ctx, end, &ledger.BudgetError{
		What: "seconds", Limit: l.budget.Wall.Seconds(), Spent: end.Sub(l.start).Seconds(), Needed: left.Seconds(),
	})
}
