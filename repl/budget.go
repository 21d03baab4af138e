package repl

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"
)

// Budget is what a whole run may use, its sub-calls at every depth included. A
// zero field means its default, never "no limit"; so does a negative one, which
// [Budget.Validate] refuses.
type Budget struct {
	// Calls bounds model calls, those of loops and of snippets alike.
	Calls int64 `json:"calls"`
	// InputTokens and OutputTokens bound each kind, Tokens their sum.
	InputTokens  int64 `json:"input_tokens"`
	OutputTokens int64 `json:"output_tokens"`
	Tokens       int64 `json:"tokens"`
	// USD bounds cost in US dollars. Models without a price count as free unless
	// it is set: then they are refused before any work.
	USD float64 `json:"usd"`
	// Wall bounds time from the ledger's start.
	Wall time.Duration `json:"wall_ns"`
}

// DefaultBudget is what a zero Budget means. Its USD is a guard against
// accidents.
func DefaultBudget() Budget {
	return Budget{
		Calls: 2_000, InputTokens: 50_000_000, OutputTokens: 5_000_000, Tokens: 55_000_000,
		USD: 25, Wall: time.Hour,
	}
}

// WithDefaults returns b with every zero field replaced by its default.
func (b Budget) WithDefaults() Budget {
	d := DefaultBudget()
	for _, f := range []struct{ value, standard *int64 }{
		{&b.Calls, &d.Calls}, {&b.InputTokens, &d.InputTokens}, {&b.OutputTokens, &d.OutputTokens}, {&b.Tokens, &d.Tokens},
	} {
		if *f.value == 0 {
			*f.value = *f.standard
		}
	}
	if b.USD == 0 {
		b.USD = d.USD
	}
	if b.Wall == 0 {
		b.Wall = d.Wall
	}
	return b
}

// Validate reports the first field that cannot be kept.
func (b Budget) Validate() error {
	switch {
	case b.Calls < 0 || b.InputTokens < 0 || b.OutputTokens < 0 || b.Tokens < 0 || b.Wall < 0:
		return errors.New("a budget is negative: give a positive value, or 0 for the default")
	case !(b.USD >= 0) || b.USD > 1e9:
		return fmt.Errorf("a budget of %v US dollars makes no sense: give a positive number, or 0 for the default", b.USD)
	}
	return nil
}

// Less is what is left of b after a run that used so much of it: for several runs, one
// after the other, that share a budget. What was zero is its default, but for USD, which
// stays a guard against accidents. The error is a [*BudgetError] if a field is used up.
func (b Budget) Less(used Spending, elapsed time.Duration) (Budget, error) {
	guard := b.USD == 0
	b = b.WithDefaults()
	for _, f := range []struct {
		what string
		left *int64
		used int64
	}{
		{"calls", &b.Calls, used.Calls},
		{"input tokens", &b.InputTokens, used.InputTokens},
		{"output tokens", &b.OutputTokens, used.OutputTokens},
		{"tokens", &b.Tokens, used.InputTokens + used.OutputTokens},
	} {
		if f.used >= *f.left {
			return b, &BudgetError{f.what, float64(*f.left), float64(f.used), 1}
		}
		*f.left -= f.used
	}
	if elapsed >= b.Wall {
		return b, &BudgetError{"seconds", b.Wall.Seconds(), elapsed.Seconds(), 0}
	}
	b.Wall -= elapsed
	switch {
	case guard:
		b.USD = 0
	case used.USD >= b.USD:
		return b, &BudgetError{"US dollars", b.USD, used.USD, 0}
	default:
		b.USD -= used.USD
	}
	return b, nil
}

// Spending is what a call needs, or what was used.
type Spending struct {
	Calls        int64   `json:"calls"`
	InputTokens  int64   `json:"input_tokens"`
	OutputTokens int64   `json:"output_tokens"`
	USD          float64 `json:"usd"`
}

// Plus is the sum of two.
func (s Spending) Plus(o Spending) Spending {
	return Spending{s.Calls + o.Calls, s.InputTokens + o.InputTokens, s.OutputTokens + o.OutputTokens, s.USD + o.USD}
}

func (s Spending) minus(o Spending) Spending {
	return Spending{s.Calls - o.Calls, s.InputTokens - o.InputTokens, s.OutputTokens - o.OutputTokens, s.USD - o.USD}
}

// String is the spending for people.
func (s Spending) String() string {
	return fmt.Sprintf("%d calls, %d+%d tokens, $%.4f", s.Calls, s.InputTokens, s.OutputTokens, s.USD)
}

// BudgetError says that something does not fit into what is left of a budget.
type BudgetError struct {
	// What is the field of [Budget]: "calls", "input tokens", "output tokens",
	// "tokens", "usd", "wall".
	What string
	// Limit is the budget, Spent what is used, Needed what was asked for, in the
	// unit of the field (seconds for wall).
	Limit, Spent, Needed float64
}

// Error says what is used up.
func (e *BudgetError) Error() string {
	return fmt.Sprintf("the run's budget of %s %s is used up (%s used, %s more needed)",
		number(e.Limit), e.What, number(e.Spent), number(e.Needed))
}

func number(f float64) string {
	return strings.TrimRight(strings.TrimRight(fmt.Sprintf("%.4f", f), "0"), ".")
}

// Ledger keeps the accounts of one run. It is safe for concurrent use.
//
// What a call may cost is reserved before it and settled after it, so that calls
// in flight together cannot pass the budget: what is spent exceeds it only by
// what a server uses beyond a request's own bounds.
type Ledger struct {
	budget Budget
	start  time.Time

	mu       sync.Mutex
	spent    Spending
	reserved Spending
	settled  chan struct{} // closed and made anew whenever a reservation ends
	refused  int
}

// NewLedger starts the accounts of a run.
func NewLedger(b Budget) (*Ledger, error) {
	if err := b.Validate(); err != nil {
		return nil, err
	}
	return &Ledger{budget: b.WithDefaults(), start: time.Now(), settled: make(chan struct{})}, nil
}

// Budget is the whole allowance, complete.
func (l *Ledger) Budget() Budget { return l.budget }

// Spent is what was settled so far.
func (l *Ledger) Spent() Spending {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.spent
}

// Deadline is when the budget of time ends.
func (l *Ledger) Deadline() time.Time { return l.start.Add(l.budget.Wall) }

// Elapsed is the time since the ledger began.
func (l *Ledger) Elapsed() time.Duration { return time.Since(l.start) }

// Check returns a [*BudgetError] if sub-calls that need so much do not fit into
// what is left, calls in flight counted. It reserves nothing.
func (l *Ledger) Check(need Spending) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lacks(l.spent.Plus(l.reserved).Plus(l.heldBack()), need)
}

// minOutput is how many tokens a reply needs to be of any use.
const minOutput = 64

// Reserve sets aside what a call may cost, and waits while only calls in flight
// stand in the way: they seldom use all that was reserved for them. A need of
// output tokens shrinks to what is left of them, at least minOutput; Grant says
// what it became. A call of a snippet leaves the budget's end to the root loop, so
// that it can finish: sub says that it is one. The error is a [*BudgetError] or the
// context's.
func (l *Ledger) Reserve(ctx context.Context, need Spending, sub bool) (*Reservation, error) {
	for {
		r, wait, err := l.try(need, sub)
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

// try reserves, or says what to wait for, or refuses.
func (l *Ledger) try(need Spending, sub bool) (*Reservation, chan struct{}, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	spent := l.spent
	if sub {
		spent = spent.Plus(l.heldBack())
	}
	if l.lacks(spent.Plus(l.reserved), need) == nil {
		l.reserved = l.reserved.Plus(need)
		return &Reservation{ledger: l, Grant: need}, nil, nil
	}
	if l.reserved.Calls > 0 {
		return nil, l.settled, nil
	}
	least := l.shrink(need, spent)
	if err := l.lacks(spent, least); err != nil {
		return nil, nil, err
	}
	l.reserved = l.reserved.Plus(least)
	return &Reservation{ledger: l, Grant: least}, nil, nil
}

// heldBack is what sub-calls leave to the root: two calls, and a twentieth of the
// rest.
func (l *Ledger) heldBack() Spending {
	b := l.budget
	return Spending{
		Calls: min(2, b.Calls/4), InputTokens: min(b.InputTokens, b.Tokens) / 20,
		OutputTokens: min(b.OutputTokens, b.Tokens) / 20, USD: b.USD / 20,
	}
}

// shrink asks for less output, where that is what does not fit.
func (l *Ledger) shrink(need, spent Spending) Spending {
	left := min(l.budget.OutputTokens-spent.OutputTokens,
		l.budget.Tokens-spent.InputTokens-spent.OutputTokens-need.InputTokens)
	if need.OutputTokens > 0 && l.budget.USD < spent.USD+need.USD {
		share := (l.budget.USD - spent.USD) / need.USD
		left = min(left, int64(share*float64(need.OutputTokens)))
	}
	if output := max(left, min(need.OutputTokens, minOutput)); output < need.OutputTokens {
		need.USD *= float64(output) / float64(need.OutputTokens)
		need.OutputTokens = output
	}
	return need
}

func (l *Ledger) lacks(used, need Spending) error {
	b := l.budget
	if elapsed := time.Since(l.start); elapsed >= b.Wall {
		return &BudgetError{"seconds", b.Wall.Seconds(), elapsed.Seconds(), 0}
	}
	for _, f := range []struct {
		what                string
		limit, spent, needs int64
	}{
		{"calls", b.Calls, used.Calls, need.Calls},
		{"input tokens", b.InputTokens, used.InputTokens, need.InputTokens},
		{"output tokens", b.OutputTokens, used.OutputTokens, need.OutputTokens},
		{"tokens", b.Tokens, used.InputTokens + used.OutputTokens, need.InputTokens + need.OutputTokens},
	} {
		if f.needs > 0 && f.spent+f.needs > f.limit {
			return &BudgetError{f.what, float64(f.limit), float64(f.spent), float64(f.needs)}
		}
	}
	// Sums of fractions are not exact: a millionth of a cent is none.
	if need.USD > 0 && used.USD+need.USD > b.USD+1e-8 {
		return &BudgetError{"US dollars", b.USD, used.USD, need.USD}
	}
	return nil
}

// Reservation is what was set aside for one call. Exactly one of Settle and
// Release ends it; a second does nothing.
type Reservation struct {
	ledger *Ledger
	done   sync.Once
	// Grant is what was reserved.
	Grant Spending
}

// maxTold bounds the refusals that a run tells of: a snippet may go on asking as long
// as it likes, since it costs nothing.
const maxTold = 100

// refuse counts a refusal and reports whether it is one to tell of.
func (l *Ledger) refuse() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.refused++
	return l.refused <= maxTold
}

// Settle replaces what was reserved by what was used, even if that is more.
func (r *Reservation) Settle(used Spending) {
	r.done.Do(func() {
		l := r.ledger
		l.mu.Lock()
		defer l.mu.Unlock()
		l.reserved = l.reserved.minus(r.Grant)
		l.spent = l.spent.Plus(used)
		close(l.settled)
		l.settled = make(chan struct{})
	})
}

// Release gives back what was reserved for a call that was never made.
func (r *Reservation) Release() { r.Settle(Spending{}) }
