package runs

import (
	"context"
	"errors"
	"net/http"
	"runtime/debug"

	"github.com/rlmhq/rlm/internal/text/problem"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/server/internal/access"
)

// call is a call of a model outside of runs.
type call struct {
	profile *Profile
	model   *llm.Model
	llm.Request
	usd      float64      // the maximum cost; 0 means the profile's bound
	stream   func(string) // receives the pieces, if not nil
	accepted func()       // see Ask, may be nil
}

// complete makes a call when it is its turn, and charges the key for it.
func (m *Manager) complete(
	ctx context.Context, k access.Key, c *call,
) (response llm.Response, spent ledger.Spending, err error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(m.life, func() { cancel(errDrained) })()

	turn, err := m.enlist(m.directs, k.Tenant, false)
	if err != nil {
		return response, spent, err
	}
	defer turn.leave()
	most := mostCost(&c.Request, c.model)
	hold, err := m.Meter.Begin(ctx, &k, most.USD)
	if err != nil {
		return response, spent, err
	}
	defer hold.Release()
	budget := c.profile.budget(&Spec{})
	if err := checkCost(&c.Request, c.model, &k, least(budget.USD, c.usd), hold.USD); err != nil {
		return response, spent, err
	}

	// The call is made only if its cost can be recorded, even if the client goes away meanwhile.
	prepaid, err := hold.Prepay(context.WithoutCancel(ctx), most)
	if err != nil {
		return response, spent, err
	}
	if c.accepted != nil {
		c.accepted()
	}
	if err := turn.enter(ctx); err != nil {
		m.settle(context.WithoutCancel(ctx), c.profile, prepaid, spent)
		return response, spent, err
	}

	if budget.Wall > 0 {
		limited, cancel := context.WithTimeout(ctx, budget.Wall)
		defer cancel()
		ctx = limited
	}
	response, err = m.askModel(ctx, c)
	spent = spentBy(c.model, &response, err)
	m.settle(context.WithoutCancel(ctx), c.profile, prepaid, spent)
	return response, spent, err
}

// askModel asks a model's provider, which may be the embedder's code, and turns a panic into an
// error. In the goroutines of streams and later answers, a panic would end the process.
func (m *Manager) askModel(ctx context.Context, c *call) (response llm.Response, err error) {
	defer func() {
		if r := recover(); r != nil {
			m.Log.Error("a provider panicked", "model", c.model.Name, "panic", r, "stack", string(debug.Stack()))
			err = problem.New(http.StatusBadGateway, "model_failed",
				"the model's provider failed: the log of the server has the reason")
		}
	}()
	return c.model.Provider.Complete(ctx, c.Request, c.stream)
}

// spentBy returns the cost of a call. A failed call may also have a cost.
func spentBy(model *llm.Model, response *llm.Response, err error) ledger.Spending {
	var failed *llm.Error
	if errors.As(err, &failed) {
		response.Usage = failed.Usage
	}
	if err == nil || response.Usage != (llm.Usage{}) {
		return priceOf(model, response.Usage)
	}
	return ledger.Spending{}
}

// mostCost returns the maximum cost of a request, without the number of tokens. A token has at
// least one byte; a picture counts as 4,000 tokens.
func mostCost(r *llm.Request, model *llm.Model) ledger.Spending {
	usage := llm.Usage{OutputTokens: int64(r.MaxTokens)}
	for i := range r.Messages {
		usage.InputTokens += int64(len(r.Messages[i].Content)) + 10 + 4_000*int64(len(r.Messages[i].Images))
	}
	usage.InputTokens += int64(len(r.Schema))
	for i := range r.Tools {
		usage.InputTokens += int64(len(r.Tools[i])) + 10
	}
	most := priceOf(model, usage)
	most.InputTokens, most.OutputTokens = 0, 0 // these are only bounds
	return most
}

// priceOf returns the cost of a call.
func priceOf(model *llm.Model, usage llm.Usage) ledger.Spending {
	usd, known := model.Facts.Cost(usage)
	s := ledger.Spending{Calls: 1, InputTokens: usage.InputTokens, OutputTokens: usage.OutputTokens, USD: usd}
	if !known {
		s.Unpriced = 1
	}
	return s
}

// checkCost refuses a request that may cost more than a budget. A request to a model without a
// price always may.
func checkCost(r *llm.Request, model *llm.Model, k *access.Key, budget, left float64) error {
	if budget == 0 && k.Limits.USD == 0 {
		return nil
	}
	if _, known := model.Facts.Cost(llm.Usage{InputTokens: 1, OutputTokens: 1}); !known {
		return problem.New(http.StatusUnprocessableEntity, "no_price",
			"the model has no known price, so a budget in US dollars cannot hold: "+
				"set price in the profile, or start rlm serve with --price")
	}

	cost := mostCost(r, model).USD
	if most := least(budget, left); most > 0 && cost > most {
		return problem.New(http.StatusTooManyRequests, "insufficient_quota",
			"the answer may cost $%.4f, and $%.4f are left: send less, or allow fewer tokens", cost, most)
	}
	return nil
}

// settle charges a key for a direct answer. If the correction cannot be written to disk, the
// maximum cost stays charged until there is space. The client receives the answer anyway, because
// it is paid for.
func (m *Manager) settle(ctx context.Context, profile *Profile, prepaid *access.Prepaid, cost ledger.Spending) {
	if m.Charged != nil && cost != (ledger.Spending{}) {
		m.Charged(profile.Name, cost)
	}
	err := prepaid.Settle(ctx, cost)
	if err == nil {
		return
	}

	m.Log.Error("cannot correct the charge of a direct answer", "error", err)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.unpaid = append(m.unpaid, unpaid{prepaid, cost})
}

// unpaid is the cost of a direct answer that the database could not record.
type unpaid struct {
	prepaid *access.Prepaid
	cost    ledger.Spending
}
