package access

import (
	"context"
	"database/sql"
	"net/http"
	"time"

	"github.com/rlmhq/rlm/internal/text/problem"
	"github.com/rlmhq/rlm/repl/ledger"
)

// Hold is a key's reservation for a run or a direct answer: a place among the key's runs, and money
// that is set aside.
type Hold struct {
	// USD is the money that the holder may spend; 0 means any amount.
	USD float64

	meter       *Meter
	key, tenant string
	use         *use

	// The following fields are guarded by meter.mu.
	setAside   float64
	prepaid    float64 // instead of setAside
	hasPlace   bool
	isReleased bool
}

// Begin counts a run of a key, and sets wants dollars aside for it, or the rest of the budget if
// that is less. Call Release when the run has ended and was charged.
func (m *Meter) Begin(ctx context.Context, k *Key, wants float64) (*Hold, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	spent := 0.0
	if k.Limits.USD > 0 { // under the lock: a run is charged before its money is released
		var err error
		if spent, err = m.spentSince(ctx, k.ID, k.Limits.Period.since(time.Now())); err != nil {
			return nil, err
		}
	}

	u := m.use(k)
	if n := k.Limits.Runs; n > 0 && u.runs >= n {
		return nil, problem.Later(http.StatusTooManyRequests, "too_many_runs", time.Second,
			"the key allows %d runs at the same time: wait until one has ended", n)
	}

	usd := wants
	if k.Limits.USD > 0 {
		left := k.Limits.USD - spent - u.reserved
		if left <= 0 {
			return nil, m.refuseMoney(k, spent, u.reserved+u.prepaid)
		}
		if usd == 0 || usd > left {
			usd = left
		}
	}

	u.runs++
	u.holds++
	u.reserved += usd
	return &Hold{USD: usd, meter: m, key: k.ID, tenant: k.Tenant, use: u, setAside: usd, hasPlace: true}, nil
}

func (m *Meter) refuseMoney(k *Key, spent, reserved float64) error {
	if reserved > 0 {
		return problem.Later(http.StatusTooManyRequests, "budget_in_use", 5*time.Second,
			"the rest of the budget of %s is set aside for runs that go on: wait, or give runs a smaller budget",
			k.Limits.money())
	}
	return problem.New(http.StatusTooManyRequests, "insufficient_quota",
		"the budget of %s is used up: $%.4f were spent", k.Limits.money(), spent)
}

func (m *Meter) spentSince(ctx context.Context, key, day string) (usd float64, err error) {
	err = m.db.QueryRowContext(ctx,
		`SELECT coalesce(sum(usd), 0) FROM spending WHERE key = ? AND day >= ?`, key, day).Scan(&usd)
	return usd, err
}

// Release ends a hold. A second call does nothing.
func (h *Hold) Release() {
	h.meter.mu.Lock()
	defer h.meter.mu.Unlock()
	if h.isReleased {
		return
	}
	h.isReleased = true
	h.leavePlace()

	u := h.use
	u.holds--
	u.reserved -= h.setAside
	u.prepaid -= h.prepaid
	if u.holds == 0 {
		u.reserved, u.prepaid = 0, 0 // without rounding errors
	}
}

// Owe ends a run whose cost cannot be recorded yet. The cost stays set aside until Release.
func (h *Hold) Owe(usd float64) {
	h.meter.mu.Lock()
	defer h.meter.mu.Unlock()
	h.leavePlace()
	h.use.reserved += usd - h.setAside
	h.setAside = usd
}

// leavePlace frees the run's place for another run. The caller holds the lock.
func (h *Hold) leavePlace() {
	if h.hasPlace {
		h.hasPlace = false
		h.use.runs--
	}
}

// Prepaid is a charge that is made before the cost is known. If the process ends before Settle, the
// charge stays.
type Prepaid struct {
	db               *sql.DB
	key, tenant, day string
	charged          ledger.Spending
}

// Prepay charges a key with the maximum cost of a call. The charge replaces the money that is set
// aside. After an error, nothing is charged.
func (h *Hold) Prepay(ctx context.Context, most ledger.Spending) (*Prepaid, error) {
	p := &Prepaid{h.meter.db, h.key, h.tenant, Day.since(time.Now()), most}

	if err := charge(ctx, p.db, p.key, p.tenant, p.day, most); err != nil {
		return nil, err
	}

	h.meter.mu.Lock()
	defer h.meter.mu.Unlock()
	h.use.reserved -= h.setAside
	h.use.prepaid += most.USD
	h.setAside, h.prepaid = 0, most.USD
	return p, nil
}

// Settle corrects the charge once the cost is known.
func (p *Prepaid) Settle(ctx context.Context, cost ledger.Spending) error {
	rest := Subtract(cost, p.charged)
	if rest == (ledger.Spending{}) {
		return nil
	}

	return charge(ctx, p.db, p.key, p.tenant, p.day, rest)
}

// Subtract returns a minus b.
func Subtract(a, b ledger.Spending) ledger.Spending {
	return ledger.Spending{
		Calls: a.Calls - b.Calls, InputTokens: a.InputTokens - b.InputTokens,
		OutputTokens: a.OutputTokens - b.OutputTokens, USD: a.USD - b.USD, Unpriced: a.Unpriced - b.Unpriced,
		ToolCalls: a.ToolCalls - b.ToolCalls,
	}
}

// Execer is a database or a transaction.
type Execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// Charge adds to the spending of a key.
func Charge(ctx context.Context, db Execer, key, tenant string, s ledger.Spending) error {
	return charge(ctx, db, key, tenant, Day.since(time.Now()), s)
}

// charge adds to the spending of a key on a day. It rounds amounts to a millionth of a millionth of
// a dollar, because prepaid amounts are subtracted again.
func charge(ctx context.Context, db Execer, key, tenant, day string, s ledger.Spending) error {
	_, err := db.ExecContext(ctx, `
		INSERT INTO spending (key, tenant, day, calls, input_tokens, output_tokens, usd, unpriced, tool_calls)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (key, day) DO UPDATE SET
			calls = calls + excluded.calls, input_tokens = input_tokens + excluded.input_tokens,
			output_tokens = output_tokens + excluded.output_tokens, usd = round(usd + excluded.usd, 12),
			unpriced = unpriced + excluded.unpriced, tool_calls = tool_calls + excluded.tool_calls`,
		key, tenant, day, s.Calls, s.InputTokens, s.OutputTokens, s.USD, s.Unpriced, s.ToolCalls)
	return err
}
