package runs

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"time"

	"github.com/rlmhq/rlm/internal/text/problem"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/llm"
	"github.com/rlmhq/rlm/schema"
	"github.com/rlmhq/rlm/server/internal/access"
)

// Ask is a short conversation, which the profile's root model answers without a run.
type Ask struct {
	Profile  string
	Messages []llm.Message
	// Schema is the contract of the answer, nil for any text.
	Schema json.RawMessage
	// MaxTokens bounds the reply, 0 for the profile's bound.
	MaxTokens int
	llm.Sampling
	Stop []string
	// USD is the maximum cost, 0 for the profile's bound.
	USD float64
	// Stream, if set, receives the text in pieces. An empty piece means that it starts over.
	Stream func(piece string)
}

// Reply is the answer to an Ask.
type Reply struct {
	Text   string
	Finish string
	Usage  llm.Usage
	Spent  ledger.Spending
}

// Ask asks the profile's root model. The error is for the client.
func (m *Manager) Ask(ctx context.Context, k access.Key, a Ask) (reply Reply, err error) {
	profile, err := m.Profile(a.Profile)
	if err != nil {
		return reply, err
	}
	if err := checkSchema(a.Schema); err != nil {
		return reply, err
	}
	model, err := profile.root()
	if err != nil {
		return reply, err
	}
	request := a.request(profile, &model)
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(m.life, func() { cancel(errDrained) })()

	turn, err := m.enlist(m.directs, k.Tenant, false)
	if err != nil {
		return reply, err
	}
	defer turn.leave()
	hold, err := m.Meter.Begin(ctx, &k, mostCost(&request, &model).USD)
	if err != nil {
		return reply, err
	}
	defer hold.Release()
	if err := turn.enter(ctx); err != nil {
		return reply, err
	}

	if err := checkCost(&request, &model, &k, least(profile.budget(&Spec{}).USD, a.USD), hold.USD); err != nil {
		return reply, err
	}
	if wall := profile.budget(&Spec{}).Wall; wall > 0 {
		limited, cancel := context.WithTimeout(ctx, wall)
		defer cancel()
		ctx = limited
	}

	// A call is not made unless its cost can be recorded. The client may go away meanwhile.
	prepaid, err := hold.Prepay(context.WithoutCancel(ctx), mostCost(&request, &model))
	if err != nil {
		return reply, err
	}
	response, err := model.Provider.Complete(ctx, request, a.Stream)
	reply = describeReply(&model, response, err)
	m.settle(context.WithoutCancel(ctx), profile, prepaid, reply.Spent)
	if err == nil {
		err = checkReply(&reply, a.Schema)
	}
	return reply, asProblem(err)
}

// request returns the request for the model.
func (a *Ask) request(profile *Profile, model *llm.Model) llm.Request {
	cfg := profile.Task.Config.WithDefaults()
	request := llm.Request{
		Model: model.ID, Messages: a.Messages, Schema: a.Schema, Sampling: a.Sampling, Stop: a.Stop,
		MaxTokens: int(least(int64(cfg.MaxReply), int64(a.MaxTokens))),
		Metadata:  llm.Metadata{Purpose: "direct"},
	}

	if cfg.System != "" {
		request.Messages = append([]llm.Message{{Role: llm.RoleSystem, Content: cfg.System}}, a.Messages...)
	}
	return request
}

// mostCost returns the maximum cost of a request, without the tokens. A token has at least one
// byte; a picture counts as 4,000 tokens.
func mostCost(r *llm.Request, model *llm.Model) ledger.Spending {
	usage := llm.Usage{OutputTokens: int64(r.MaxTokens)}
	for i := range r.Messages {
		usage.InputTokens += int64(len(r.Messages[i].Content)) + 10 + 4_000*int64(len(r.Messages[i].Images))
	}
	usage.InputTokens += int64(len(r.Schema))
	most := priceOf(model, usage)
	most.InputTokens, most.OutputTokens = 0, 0 // they have not been counted
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

// checkCost refuses a request that may cost more than a budget, which is always possible for a
// model without a price.
func checkCost(r *llm.Request, model *llm.Model, k *access.Key, budget, left float64) error {
	if budget == 0 && k.Limits.USD == 0 {
		return nil
	}
	if _, known := model.Facts.Cost(llm.Usage{InputTokens: 1, OutputTokens: 1}); !known {
		return problem.New(http.StatusUnprocessableEntity, "no_price",
			"the model has no known price, so a budget in US dollars cannot hold: set rates in the profile")
	}

	cost := mostCost(r, model).USD
	if most := least(budget, left); most > 0 && cost > most {
		return problem.New(http.StatusTooManyRequests, "insufficient_quota",
			"the answer may cost $%.4f, and $%.4f are left: send less, or allow fewer tokens", cost, most)
	}
	return nil
}

// describeReply makes the reply of a call, which may have failed and may still have cost
// something.
func describeReply(model *llm.Model, response llm.Response, err error) Reply {
	reply := Reply{Text: response.Text, Finish: response.Finish, Usage: response.Usage}
	var failed *llm.Error
	if errors.As(err, &failed) {
		reply.Usage = failed.Usage
	}
	if err == nil || reply.Usage != (llm.Usage{}) {
		reply.Spent = priceOf(model, reply.Usage)
	}
	return reply
}

// settle charges a key for a direct answer. If the disk accepts no correction, the maximum cost
// stays charged until there is space: the answer is paid for, so the client receives it.
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

// checkReply makes the text satisfy its contract, or fails.
func checkReply(reply *Reply, contract json.RawMessage) error {
	if len(contract) == 0 || reply.Finish != llm.FinishStop {
		return nil
	}
	c, err := schema.Parse(contract)
	if err != nil {
		return err
	}

	value, violations, err := c.CheckReply(strings.TrimSpace(reply.Text))
	if err == nil && len(violations) > 0 {
		err = errors.New(violations[0].String())
	}
	if err != nil {
		return problem.New(http.StatusBadGateway, "contract_broken",
			"the model's answer does not meet the schema: %v", err)
	}
	reply.Text = string(value)
	return nil
}

// asProblem converts the error of a model call for the client.
func asProblem(err error) error {
	var failed *llm.Error
	if !errors.As(err, &failed) {
		return err
	}

	switch {
	case errors.Is(err, llm.ErrContextLength):
		return problem.New(http.StatusBadRequest, "context_length_exceeded",
			"the messages are too long for the model: send the long part as a file")
	case errors.Is(err, llm.ErrRateLimited):
		return problem.Later(http.StatusServiceUnavailable, "model_busy", max(failed.RetryAfter, time.Second),
			"the model's server is busy: try again")
	}
	shown := *failed
	shown.Err = nil // contains details of this machine
	return problem.New(http.StatusBadGateway, "model_failed", "the model's server failed: %.600s", shown.Error())
}
