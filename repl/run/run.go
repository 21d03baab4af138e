package run

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/rlmhq/rlm/repl/internal/calls"
	"github.com/rlmhq/rlm/repl/internal/record"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/schema"
	"github.com/rlmhq/rlm/tiers"
)

// run is what all loops of a tree share.
type run struct {
	cfg     Config
	caller  *calls.Caller
	ledger  *calls.Ledger
	allowed []string
	loops   atomic.Int64
}

// Run answers a question. It returns an error for a configuration that makes no
// sense, before any work, for what broke on the way, and for the context's end;
// the Outcome then says how far it came.
func Run(ctx context.Context, cfg Config) (Outcome, error) {
	explicitUSD := cfg.Budget.USD != 0
	r, contract, err := prepare(cfg, explicitUSD)
	if err != nil {
		return Outcome{Status: StatusFailed, Reason: err.Error()}, err
	}
	trace, err := r.caller.OpenRecord(r.cfg.Trace)
	if err != nil {
		return Outcome{Status: StatusFailed, Reason: err.Error()}, err
	}
	ctx, cancel := r.ledger.WithDeadline(ctx)
	defer cancel()
	outcome, err := r.root(ctx, contract, trace)
	outcome.Spent, outcome.Budget, outcome.Elapsed = r.ledger.Spent(), r.ledger.Budget(), r.ledger.Elapsed()
	outcome.Loops, outcome.Trace = int(r.loops.Load()), cfg.Trace
	r.caller.Tell(ledger.Event{
		Kind: ledger.EventRunEnded, Node: "0", Status: string(outcome.Status), Text: outcome.Text(), Error: outcome.Reason,
		Elapsed: outcome.Elapsed, Spent: &outcome.Spent,
	})
	return outcome, errors.Join(err, trace.Close())
}

// prepare checks all that can be checked before any work.
func prepare(cfg Config, explicitUSD bool) (*run, *schema.Contract, error) {
	cfg = cfg.WithDefaults()
	if err := cfg.validate(); err != nil {
		return nil, nil, err
	}
	contract, err := cfg.contract()
	if err != nil {
		return nil, nil, err
	}
	if cfg.Fields != nil && len(cfg.Inputs) == 0 {
		fields, err := json.Marshal(cfg.Fields)
		if err != nil {
			return nil, nil, fmt.Errorf("cannot use the fields: %w", err)
		}
		cfg.Inputs = []tiers.Input{{Name: "fields", Value: fields}}
	}
	r := &run{cfg: cfg, allowed: cfg.models()}
	r.caller, err = calls.NewCaller(calls.Caller{
		Models: cfg.Models, Gate: calls.NewGate(cfg.CallsAtOnce), MaxReply: cfg.MaxReply, Emit: cfg.Progress,
	}, cfg.Budget, r.allowed, explicitUSD)
	if err != nil {
		return nil, nil, err
	}
	r.ledger = r.caller.Ledger
	return r, contract, nil
}

// root answers the question itself: at once where the input fits and that is
// wanted, else by the loop.
func (r *run) root(ctx context.Context, contract *schema.Contract, trace *record.Trace) (Outcome, error) {
	r.caller.Tell(ledger.Event{Kind: ledger.EventRunStarted, Node: "0", Model: r.cfg.modelAt(0), Text: r.cfg.Question})
	if r.cfg.Bypass {
		outcome, done, err := r.bypass(ctx, contract)
		if done || err != nil {
			return r.ended(ctx, outcome, err)
		}
	}
	l := &loop{
		run: r, node: "0", model: r.cfg.modelAt(0), question: r.cfg.Question, inputs: r.cfg.Inputs,
		fields: r.cfg.Fields, contract: contract, trace: trace,
	}
	outcome, err := l.solve(ctx)
	return r.ended(ctx, outcome, err)
}

// ended makes a status of what ended a run early.
func (r *run) ended(ctx context.Context, outcome Outcome, err error) (Outcome, error) {
	if err != nil {
		outcome.Status, outcome.Reason, err = calls.StatusOf(ctx, err)
	}
	return outcome, err
}

// Estimate is what a run may take, before it is made.
type Estimate struct {
	// Turn is what one turn of the root takes at its beginning; Most is the whole
	// budget, beyond which nothing is spent.
	Turn ledger.Spending `json:"turn"`
	Most ledger.Budget   `json:"most"`
	// ReadOnce is what it takes to show the whole input to the sub-model once, in
	// calls as large as half its window: a measure for a task that must read all.
	ReadOnce ledger.Spending `json:"read_once"`
	// Bypass says that the input fits and the run answers by one call.
	Bypass bool `json:"bypass"`
	// Priced says that the prices of both models are known; otherwise USD is of
	// those that are.
	Priced bool `json:"priced"`
}

// EstimateRun says what a run of cfg may take. It asks no model.
func EstimateRun(ctx context.Context, cfg Config) (Estimate, error) {
	r, contract, err := prepare(cfg, false)
	if err != nil {
		return Estimate{}, err
	}
	l := &loop{
		run: r, node: "0", model: r.cfg.modelAt(0), question: r.cfg.Question, inputs: r.cfg.Inputs,
		fields: r.cfg.Fields, contract: contract,
	}
	if err := l.begin(ctx); err != nil {
		return Estimate{}, err
	}
	defer l.session.Close()
	turn, err := r.caller.Estimate(calls.Ask{Model: l.model, Messages: l.messages})
	if err != nil {
		return Estimate{}, err
	}
	e := Estimate{Turn: turn, Most: r.ledger.Budget(), Priced: r.priced()}
	chars, err := r.size(ctx)
	if err != nil {
		return Estimate{}, err
	}
	e.Bypass = r.cfg.Bypass && r.fits(chars)
	e.ReadOnce, err = r.readOnce(chars)
	return e, err
}

// priced reports whether all prices are known.
func (r *run) priced() bool {
	for _, name := range r.allowed {
		if m, err := r.cfg.Models.Resolve(name); err != nil || m.Facts.Price == nil {
			return false
		}
	}
	return true
}
