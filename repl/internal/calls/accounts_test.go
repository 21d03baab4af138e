package calls

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rlmhq/rlm/repl/ledger"
)

func newLedger(t *testing.T, b ledger.Budget) *Ledger {
	t.Helper()
	l, err := NewLedger(b)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func TestBudgetsAreKeptUnderRaces(t *testing.T) {
	l := newLedger(t, ledger.Budget{Calls: 50, OutputTokens: 4_000, Tokens: 1_000_000})
	var wg sync.WaitGroup
	var mu sync.Mutex
	made, refused := 0, 0
	for range 200 {
		wg.Go(func() {
			r, err := l.Reserve(
				t.Context(),
				Need{Spending: ledger.Spending{
					Calls: 1, InputTokens: 10, OutputTokens: 100, USD: 0.001,
				}},
			)
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				refused++
				return
			}
			made++
			r.Settle(ledger.Spending{Calls: 1, InputTokens: 10, OutputTokens: 50, USD: 0.0005})
		})
	}
	wg.Wait()
	spent := l.Spent()
	if made != 50 || refused != 150 || spent.Calls != 50 || spent.OutputTokens != 2_500 ||
		spent.InputTokens != 500 {
		t.Errorf("made %d, refused %d, spent %s", made, refused, spent)
	}
}

func TestReserveWaitsForCallsInFlight(t *testing.T) {
	l := newLedger(t, ledger.Budget{OutputTokens: 1_000})
	need := Need{Spending: ledger.Spending{Calls: 1, OutputTokens: 900}}
	first, err := l.Reserve(t.Context(), need)
	if err != nil {
		t.Fatal(err)
	}
	second := make(chan *Reservation)
	go func() {
		r, err := l.Reserve(t.Context(), need)
		if err != nil {
			t.Error(err)
		}
		second <- r
	}()
	first.Settle(ledger.Spending{Calls: 1, OutputTokens: 50})
	first.Settle(ledger.Spending{Calls: 1, OutputTokens: 50}) // a second settling does nothing
	r := <-second
	r.Release()
	r.Release()
	if spent := l.Spent(); spent.Calls != 1 || spent.OutputTokens != 50 {
		t.Errorf("spent %s", spent)
	}
	ctx, cancel := context.WithCancel(t.Context())
	held, err := l.Reserve(ctx, need)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if _, err := l.Reserve(ctx, need); !errors.Is(err, context.Canceled) {
		t.Errorf("a wait without an end: %v", err)
	}
	held.Release()
}

func TestOutputShrinksToWhatIsLeft(t *testing.T) {
	for name, c := range map[string]struct {
		budget ledger.Budget
		need   ledger.Spending
		want   int64
	}{
		"output tokens": {
			ledger.Budget{OutputTokens: 500},
			ledger.Spending{Calls: 1, OutputTokens: 8_000},
			500,
		},
		"tokens": {
			ledger.Budget{Tokens: 600},
			ledger.Spending{Calls: 1, InputTokens: 100, OutputTokens: 8_000},
			500,
		},
		"dollars": {
			ledger.Budget{USD: 0.5},
			ledger.Spending{Calls: 1, OutputTokens: 1_000, USD: 1},
			500,
		},
		"all of it": {ledger.Budget{}, ledger.Spending{Calls: 1, OutputTokens: 8_000}, 8_000},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLedger(t, c.budget)
			r, err := l.Reserve(t.Context(), Need{Spending: c.need})
			if err != nil || r.Grant.OutputTokens != c.want {
				t.Errorf("%s: granted %+v, %v, want %d", name, r, err, c.want)
			}
		})
	}
}

func TestTheCostOfThePromptDoesNotShrinkWithTheReply(t *testing.T) {
	l := newLedger(t, ledger.Budget{USD: 1})
	need := Need{Spending: ledger.Spending{Calls: 1, OutputTokens: 1_000, USD: 1.5}, PromptUSD: 0.5}
	r, err := l.Reserve(t.Context(), need)
	if err != nil || r.Grant.OutputTokens != 500 || r.Grant.USD != 1 {
		t.Errorf("got %+v, %v", r, err)
	}
}

func TestCallsThatCanBeginSmallShareTheBudget(t *testing.T) {
	for name, c := range map[string]struct {
		budget ledger.Budget
		need   Need
		want   int64 // grant of the first of 16 calls
	}{
		"plenty": {ledger.Budget{}, Need{Least: 64}, 8_000},
		"output tokens": {
			ledger.Budget{OutputTokens: 16_000}, Need{Least: 64}, 950, // 1/20 is for the root
		},
		"tokens": {
			ledger.Budget{Tokens: 16_000},
			Need{Least: 64, Spending: ledger.Spending{InputTokens: 100}},
			800,
		},
		"dollars": {
			ledger.Budget{USD: 16},
			Need{Least: 64, Spending: ledger.Spending{USD: 8.1}, PromptUSD: 0.1},
			850,
		},
		"too small":   {ledger.Budget{OutputTokens: 1_600}, Need{Least: 400}, 400},
		"all at once": {ledger.Budget{OutputTokens: 16_000}, Need{}, 8_000},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLedger(t, c.budget)
			l.atOnce = 16
			c.need.Sub, c.need.Calls, c.need.OutputTokens = true, 1, 8_000
			r, err := l.Reserve(t.Context(), c.need)
			if err != nil || r.Grant.OutputTokens != c.want {
				t.Errorf("%s: granted %+v, %v, want %d", name, r, err, c.want)
			}
		})
	}
}

func TestRefusalsNameTheBudget(t *testing.T) {
	for what, c := range map[string]struct {
		budget ledger.Budget
		need   ledger.Spending
	}{
		"calls":         {ledger.Budget{Calls: 1}, ledger.Spending{Calls: 2}},
		"input tokens":  {ledger.Budget{InputTokens: 10}, ledger.Spending{Calls: 1, InputTokens: 11}},
		"output tokens": {ledger.Budget{OutputTokens: 10}, ledger.Spending{Calls: 1, OutputTokens: 100}},
		"tokens":        {ledger.Budget{Tokens: 10}, ledger.Spending{Calls: 1, InputTokens: 11}},
		"US dollars":    {ledger.Budget{USD: 0.001}, ledger.Spending{Calls: 1, InputTokens: 1, USD: 0.01}},
		"seconds":       {ledger.Budget{Wall: time.Nanosecond}, ledger.Spending{Calls: 1}},
	} {
		t.Run(what, func(t *testing.T) {
			l := newLedger(t, c.budget)
			time.Sleep(time.Microsecond)
			_, err := l.Reserve(t.Context(), Need{Spending: c.need})
			var budget *ledger.BudgetError
			if !errors.As(err, &budget) || budget.What != what || !strings.Contains(err.Error(), what) {
				t.Errorf("%s: %v", what, err)
			}
		})
	}
}

func TestSubCallsLeaveTheEndToTheRoot(t *testing.T) {
	l := newLedger(t, ledger.Budget{Calls: 10})
	made := 0
	for {
		r, err := l.Reserve(t.Context(), Need{Spending: ledger.Spending{Calls: 1}, Sub: true})
		if err != nil {
			break
		}
		r.Settle(ledger.Spending{Calls: 1})
		made++
	}
	if made != 8 {
		t.Errorf("sub-calls took %d of 10 calls", made)
	}
	if _, err := l.Reserve(t.Context(), Need{Spending: ledger.Spending{Calls: 1}}); err != nil {
		t.Errorf("nothing was left to the root: %v", err)
	}
}

func TestBudgetsThatMakeNoSense(t *testing.T) {
	for _, b := range []ledger.Budget{{Calls: -1}, {USD: -1}, {USD: nan()}, {Wall: -1}, {Tokens: -1}} {
		if _, err := NewLedger(b); err == nil {
			t.Errorf("%+v was taken", b)
		}
	}
}

func nan() float64 { zero := 0.0; return zero / zero }

func TestSubtractLeavesTheRestOfABudget(t *testing.T) {
	used := ledger.Spending{Calls: 3, InputTokens: 100, OutputTokens: 50, USD: 1}
	rest, err := Subtract(ledger.Budget{Calls: 10, USD: 5}, used, time.Minute)
	want := ledger.Budget{
		Calls: 7, ToolCalls: 1_000, InputTokens: 49_999_900, OutputTokens: 4_999_950,
		Tokens: 54_999_850, USD: 4, Wall: 59 * time.Minute,
	}
	if err != nil || rest != want {
		t.Errorf("left is %+v, %v", rest, err)
	}
	if rest, err = Subtract(ledger.Budget{}, used, 0); err != nil || rest.USD != 0 {
		t.Errorf("a guard against accidents became %+v, %v", rest, err)
	}
	for what, b := range map[string]ledger.Budget{
		"calls": {Calls: 3}, "input tokens": {InputTokens: 100},
		"output tokens": {OutputTokens: 50}, "tokens": {Tokens: 150},
		"US dollars": {USD: 1}, "seconds": {Wall: time.Minute},
	} {
		t.Run(what, func(t *testing.T) {
			var budget *ledger.BudgetError
			if _, err := Subtract(b, used, time.Minute); !errors.As(err, &budget) ||
				budget.What != what {
				t.Errorf("without %s left: %v", what, err)
			}
		})
	}
}
