package access

import (
	"errors"
	"math"
	"testing"
	"time"

	"github.com/rlmhq/rlm/internal/text/problem"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/server/internal/records"
)

func TestBudgetsAreRead(t *testing.T) {
	for text, want := range map[string]Limits{
		"20/month": {USD: 20, Period: Month}, "0.5/day": {USD: 0.5, Period: Day}, "100": {USD: 100, Period: Total},
	} {
		var got Limits
		if err := got.SetMoney(text); err != nil || got != want {
			t.Errorf("%s is %v per %s: %v", text, got.USD, got.Period, err)
		}
	}
	for _, text := range []string{"", "0", "-1/day", "nan", "inf", "1/year", "x/day", "1/"} {
		if err := (&Limits{}).SetMoney(text); err == nil {
			t.Errorf("%q is a budget", text)
		}
	}
}

func TestMoneyIsSetAside(t *testing.T) {
	db, err := records.Open(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	m, k, ctx := NewMeter(db), &Key{ID: "k", Tenant: "t", Limits: Limits{USD: 10, Period: Month}}, t.Context()
	begin := func(wants, gets float64) (release func()) {
		t.Helper()
		hold, err := m.Begin(ctx, k, wants)
		if err != nil || hold.USD != gets {
			t.Fatalf("a run that wants $%g gets %+v: %v", wants, hold, err)
		}
		return hold.Release
	}
	refuse := func(code string) {
		t.Helper()
		_, err := m.Begin(ctx, k, 1)
		var e *problem.Error
		if !errors.As(err, &e) || e.Code != code {
			t.Fatalf("a run is refused with %v, want %s", err, code)
		}
	}

	first := begin(4, 4)
	second := begin(0, 6)
	refuse("budget_in_use")
	second()
	second() // a second call has no effect
	third := begin(7, 6)
	third()
	if err := Charge(ctx, db, k.ID, k.Tenant, ledger.Spending{Calls: 1, USD: 7}); err != nil {
		t.Fatal(err)
	}
	first()
	begin(9, 3)()
	if err := Charge(ctx, db, k.ID, k.Tenant, ledger.Spending{Calls: 1, USD: 4}); err != nil {
		t.Fatal(err)
	}
	refuse("insufficient_quota")

	usage, err := m.Usage(ctx, "t", "")
	if err != nil || len(usage) != 1 || usage[0].Calls != 2 || usage[0].USD != 11 {
		t.Errorf("the usage is %+v: %v", usage, err)
	}
	if usage, err := m.Usage(ctx, "other", ""); err != nil || len(usage) != 0 {
		t.Errorf("another tenant has %+v: %v", usage, err)
	}

	// A run has ended, and its cost of $1.5 cannot be recorded yet.
	k.Limits.USD = 20
	owing, err := m.Begin(ctx, k, 5)
	if err != nil {
		t.Fatal(err)
	}
	owing.Owe(1.5)
	begin(0, 20-11-1.5)()
	owing.Release()
	begin(0, 20-11)()

	// Two answers that cost at most $2 each are charged in advance. The second one ends first, and
	// costs less.
	k.Limits.USD = 15
	one, two := prepay(t, m, k), prepay(t, m, k)
	refuse("budget_in_use")
	if err := two.paid.Settle(ctx, ledger.Spending{Calls: 1, InputTokens: 5, USD: 0.3}); err != nil {
		t.Fatal(err)
	}
	two.hold.Release()
	begin(1.6, 1.6)()
	restarted := NewMeter(db) // the first answer is not settled yet
	if hold, err := restarted.Begin(ctx, k, 0); err != nil || math.Abs(hold.USD-1.7) > 1e-9 {
		t.Errorf("after a crash, %+v is left: %v", hold, err)
	}
	if err := one.paid.Settle(ctx, ledger.Spending{}); err != nil {
		t.Fatal(err)
	}
	usage, err = m.Usage(ctx, "t", "")
	want := ledger.Spending{Calls: 3, InputTokens: 5, USD: 11.3}
	if err != nil || len(usage) != 1 || usage[0].Spending != want {
		t.Errorf("the usage is %+v: %v", usage, err)
	}

	if day := Month.since(time.Date(2026, 12, 24, 23, 0, 0, 0, time.FixedZone("", -3600))); day != "2026-12-01" {
		t.Errorf("the month begins at %s", day)
	}
}

// prepaid is an answer whose maximum cost was charged.
type prepaid struct {
	hold *Hold
	paid *Prepaid
}

func prepay(t *testing.T, m *Meter, k *Key) prepaid {
	t.Helper()
	hold, err := m.Begin(t.Context(), k, 2)
	if err != nil {
		t.Fatal(err)
	}
	paid, err := hold.Prepay(t.Context(), ledger.Spending{Calls: 1, USD: 2})
	if err != nil {
		t.Fatal(err)
	}
	return prepaid{hold, paid}
}
