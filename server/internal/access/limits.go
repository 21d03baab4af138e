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

	"github.com/rlmhq/rlm/internal/text/problem"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/server/internal/records"
)

// Limits bound the use of a key. A zero field sets no limit.
type Limits struct {
	// USD bounds the spending in the current period, in UTC.
	USD    float64 `json:"usd,omitempty"`
	Period Period  `json:"period,omitempty"`
	// Requests is the maximum number of requests per minute.
	Requests int `json:"requests_per_minute,omitempty"`
	// Runs is the maximum number of concurrent runs and direct answers, including queued ones.
	Runs int `json:"runs,omitempty"`
	// Sessions is the maximum number of sessions, including resting ones.
	Sessions int `json:"sessions,omitempty"`
	// Files bounds the bytes of all files, sessions and conversations of the tenant.
	Files int64 `json:"file_bytes,omitempty"`
}

// Period is the time for which a spending budget applies.
type Period string

// These are the periods of a budget.
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

// SetMoney sets the budget from a string such as "20/month", "5/day" or "100", which means for all
// time.
func (l *Limits) SetMoney(text string) error {
	amount, word, has := strings.Cut(text, "/")
	period := Total
	if has {
		period = Period(word)
	}

	usd, err := strconv.ParseFloat(amount, 64)
	money := Limits{USD: usd, Period: period}
	if err != nil || usd == 0 || money.check() != nil {
		return fmt.Errorf("%q is no budget: give US dollars, such as 20/month, 5/day or 100", text)
	}
	l.USD, l.Period = usd, period
	return nil
}

// since returns the first day of the current period, in the format of the spending table.
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

// money formats the budget for display.
func (l *Limits) money() string { return fmt.Sprintf("$%g per %s", l.USD, l.Period) }

// Meter counts the use of keys against their limits. It is safe for concurrent use.
type Meter struct {
	db *sql.DB

	mu   sync.Mutex
	uses map[string]*use // by key
}

// use is a key's current use.
type use struct {
	limit    int // limit of requests for which the bucket was made
	requests *bucket
	runs     int
	holds    int     // including those of ended runs that are not charged yet
	reserved float64 // money that is set aside
	prepaid  float64 // money that is charged, and may be refunded
}

// NewMeter returns a meter that stores spending in a database.
func NewMeter(db *sql.DB) *Meter { return &Meter{db: db, uses: map[string]*use{}} }

// use returns the current use of a key. The caller holds the lock.
func (m *Meter) use(k *Key) *use {
	u := m.uses[k.ID]
	if u == nil {
		u = &use{}
		m.uses[k.ID] = u
	}
	if n := k.Limits.Requests; u.limit != n {
		u.limit, u.requests = n, newBucket(float64(n)/60, float64(n))
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

	if wait := u.requests.take(time.Now()); wait > 0 {
		return problem.Later(http.StatusTooManyRequests, "too_many_requests", wait,
			"the key allows %d requests per minute: send fewer", u.limit)
	}
	return nil
}

// Usage is a key's spending on a day.
type Usage struct {
	Key string `json:"key" doc:"ID of the key, or local"`
	Day string `json:"day" doc:"date in UTC, such as 2026-01-31"`
	ledger.Spending
}

// Usage returns the spending of a tenant's keys per day, latest first.
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
