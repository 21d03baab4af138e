package access

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/time/rate"

	"github.com/rlmhq/rlm/internal/serve/problem"
	"github.com/rlmhq/rlm/internal/serve/records"
	"github.com/rlmhq/rlm/repl/ledger"
)

// Limits bound the use of a key. A zero field is no bound.
type Limits struct {
	// USD bounds the money in a period, of which the current one counts, in UTC.
	USD    float64 `json:"usd,omitempty"`
	Period Period  `json:"period,omitempty"`
	// Requests bounds the requests in a minute.
	Requests int `json:"requests_per_minute,omitempty"`
	// Runs bounds the runs and direct answers at the same time, those in the queue included.
	Runs int `json:"runs,omitempty"`
	// Sessions bounds the sessions, those that rest included.
	Sessions int `json:"sessions,omitempty"`
	// Files bounds the bytes of all files and sessions of the tenant.
	Files int64 `json:"file_bytes,omitempty"`
}

// Period is the time for which a budget of money holds.
type Period string

// The periods.
const (
	Day   Period = "day"
	Month Period = "month"
	Total Period = "total"
)

func (l *Limits) check() error {
	switch {
	case !(l.USD >= 0) || math.IsInf(l.USD, 0), l.Requests < 0, l.Runs < 0, l.Sessions < 0,
		l.Files < 0:
		return errors.New("give positive limits, or none")
	case l.USD > 0 && l.Period != Day && l.Period != Month && l.Period != Total:
		return fmt.Errorf("unknown period %.40q of a budget: give day, month or total", l.Period)
	}
	return nil
}

// ParseMoney reads a budget such as "20/month", "5/day" or "100", which is for all time.
func ParseMoney(text string) (usd float64, period Period, err error) {
	amount, word, has := strings.Cut(text, "/")
	if period = Total; has {
		period = Period(word)
	}

	usd, err = strconv.ParseFloat(amount, 64)
	l := Limits{USD: usd, Period: period}
	if err != nil || usd == 0 || l.check() != nil {
		return 0, "", fmt.Errorf("%q is no budget: give US dollars, such as 20/month, 5/day or 100", text)
	}
	return usd, period, nil
}

// since returns the first day that counts now, as the table has it.
func (p Period) since(now time.Time) string {
	switch now = now.UTC(); p {
	case Day:
		return now.Format(time.DateOnly)
	case Month:
		return now.Format("2006-01-") + "01"
	case Total:
	}
	return ""
}

// String is the budget for people.
func (l *Limits) money() string { return fmt.Sprintf("$%g per %s", l.USD, l.Period) }

// Meter counts the use of keys against their limits. It is safe for concurrent use.
type Meter struct {
	db *sql.DB

	mu   sync.Mutex
	uses map[string]*use // by keys
}

// use is what a key uses now.
type use struct {
	limit    int // of requests, for which the limiter was made
	requests *rate.Limiter
	runs     int
	reserved float64
}

// NewMeter returns a meter that keeps spending in a database.
func NewMeter(db *sql.DB) *Meter { return &Meter{db: db, uses: map[string]*use{}} }

// use returns the use of a key. The caller holds the lock.
func (m *Meter) use(k *Key) *use {
	u := m.uses[k.ID]
	if u == nil {
		u = &use{}
		m.uses[k.ID] = u
	}
	if n := k.Limits.Requests; u.limit != n {
		u.limit, u.requests = n, rate.NewLimiter(rate.Limit(float64(n)/60), max(n, 1))
	}
	return u
}

// Admit counts a request of a key.
func (m *Meter) Admit(k *Key) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	u := m.use(k)
	if u.limit == 0 {
		return nil
	}

	next := u.requests.Reserve()
	if wait := next.Delay(); wait > 0 {
		next.Cancel()
		return problem.Later(http.StatusTooManyRequests, "too_many_requests", wait,
			"the key allows %d requests per minute: send fewer", u.limit)
	}
	return nil
}

// Begin counts a run of a key, and sets money aside for it: wants, or as much as is left. It
// returns what the run may spend, 0 for any amount. Release must be called when the run has
// ended and is paid.
func (m *Meter) Begin(ctx context.Context, k *Key, wants float64) (usd float64, release func(), err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	spent := 0.0
	if k.Limits.USD > 0 { // under the lock: a run is charged before its money is released
		if spent, err = m.spentSince(ctx, k.ID, k.Limits.Period.since(time.Now())); err != nil {
			return 0, nil, err
		}
	}

	u := m.use(k)
	if n := k.Limits.Runs; n > 0 && u.runs >= n {
		return 0, nil, problem.Later(http.StatusTooManyRequests, "too_many_runs", time.Second,
			"the key allows %d runs at the same time: wait until one has ended", n)
	}

	if usd = wants; k.Limits.USD > 0 {
		left := k.Limits.USD - spent - u.reserved
		if left <= 0 {
			return 0, nil, m.refuseMoney(k, spent, u.reserved)
		}
		if usd == 0 || usd > left {
			usd = left
		}
	}
	u.runs++
	u.reserved += usd
	return usd, sync.OnceFunc(func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		u.runs--
		if u.reserved -= usd; u.runs == 0 {
			u.reserved = 0 // without the errors of rounding
		}
	}), nil
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

// Execer is a database or a transaction.
type Execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// Charge adds to the spending of a key.
func Charge(ctx context.Context, db Execer, key, tenant string, s ledger.Spending) error {
	_, err := db.ExecContext(ctx, `
		INSERT INTO spending (key, tenant, day, calls, input_tokens, output_tokens, usd, unpriced, tool_calls)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (key, day) DO UPDATE SET
			calls = calls + excluded.calls, input_tokens = input_tokens + excluded.input_tokens,
			output_tokens = output_tokens + excluded.output_tokens, usd = usd + excluded.usd,
			unpriced = unpriced + excluded.unpriced, tool_calls = tool_calls + excluded.tool_calls`,
		key, tenant, Day.since(time.Now()), s.Calls, s.InputTokens, s.OutputTokens, s.USD, s.Unpriced, s.ToolCalls)
	return err
}

// Usage is what a key has spent on a day.
type Usage struct {
	Key string `json:"key" doc:"ID of the key, or local"`
	Day string `json:"day" doc:"date in UTC, such as 2026-01-31"`
	ledger.Spending
}

// Usage returns what the keys of a tenant have spent, the last day first.
func (m *Meter) Usage(ctx context.Context, tenant, since string) ([]Usage, error) {
	all, err := records.List(ctx, m.db, scanUsage, `
		SELECT key, day, calls, input_tokens, output_tokens, usd, unpriced, tool_calls FROM spending
		WHERE tenant = ? AND day >= ? ORDER BY day DESC, key LIMIT 10000`, tenant, since)
	if all == nil {
		all = []Usage{}
	}

	return all, err
}

func scanUsage(row records.Row) (u Usage, err error) {
	err = row.Scan(&u.Key, &u.Day, &u.Calls, &u.InputTokens, &u.OutputTokens, &u.USD, &u.Unpriced, &u.ToolCalls)
	return u, err
}
