package run

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/rlmhq/rlm/repl/internal/answers"
	"github.com/rlmhq/rlm/repl/internal/calls"
	"github.com/rlmhq/rlm/repl/internal/harness"
	"github.com/rlmhq/rlm/repl/internal/record"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/schema"
	"github.com/rlmhq/rlm/tiers"
)

// tree is the state that all loops of a run share.
type tree struct {
	cfg     Config
	caller  *calls.Caller
	ledger  *calls.Ledger
	allowed []string
	loops   atomic.Int64
	lacks   answers.Lacks

	toolFiles []toolFile
}

// Run answers a question. The error is a [*repl.SetupError] if the run could not begin, the
// context's cause, or a description of the failure; the Outcome then holds the results up to that
// point.
func Run(ctx context.Context, cfg Config) (Outcome, error) {
	r := &rootRun{given: cfg}
	err := harness.Run(ctx, r)
	if err != nil && r.outcome.Status == "" {
		r.outcome.Status, r.outcome.Reason = ledger.StatusFailed, err.Error()
	}
	return r.outcome, err
}

// rootRun implements [harness.Loop] for a run.
type rootRun struct {
	*tree

	given    Config
	contract *schema.Contract
	outcome  Outcome
}

// Prepare checks the configuration.
func (r *rootRun) Prepare(ctx context.Context) (plan harness.Plan, err error) {
	if r.tree, r.contract, err = prepare(r.given, r.given.Budget.USD != 0); err != nil {
		return plan, err
	}
	if err := r.readTools(ctx); err != nil {
		return plan, err
	}

	return harness.Plan{
		Caller: r.caller, Folder: r.cfg.Trace,
		Started: ledger.Event{Model: r.cfg.modelAt(0), Text: r.cfg.Question},
	}, nil
}

// Solve answers the question: with one call if the input is small, else by the loop.
func (r *rootRun) Solve(ctx context.Context, trace *record.Trace) (err error) {
	l := r.rootLoop(r.contract)
	l.trace = trace
	if err := l.durable.load(ctx); err != nil {
		return err
	}

	if r.given.mayBypass() && !l.durable.isBegun() {
		var done bool
		if r.outcome, done, err = r.bypass(ctx, r.contract, trace); done || err != nil {
			return err
		}
	}

	r.outcome, err = l.solve(ctx)

	return err
}

// Conclude completes the outcome.
func (r *rootRun) Conclude(e *harness.Ending) ledger.Event {
	o := &r.outcome
	if e.Status != "" {
		o.Status, o.Reason = e.Status, e.Reason
	}
	if o.Status == ledger.StatusParked {
		o.Partial = "" // the run is not over
	}
	o.Spent, o.Budget, o.Elapsed, o.Trace = e.Spent, e.Budget, e.Elapsed, e.Folder
	o.Loops = int(r.loops.Load())
	if lacks := r.lacks.String(); lacks != "" {
		o.Reason = strings.TrimPrefix(o.Reason+"; "+lacks, "; ")
	}
	return ledger.Event{Status: string(o.Status), Text: o.Text(), Error: o.Reason}
}

// rootLoop returns the loop at the root, without a record.
func (r *tree) rootLoop(contract *schema.Contract) *loop {
	return &loop{
		tree: r, node: harness.Root, model: r.cfg.modelAt(0), question: r.cfg.Question,
		inputs: r.cfg.Inputs, fields: r.cfg.Fields, contract: contract, notes: r.cfg.Notes,
	}
}

// prepare makes all checks that need no model and no sandbox.
func prepare(cfg Config, explicitUSD bool) (*tree, *schema.Contract, error) {
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

	r, err := newTree(cfg, cfg.models(), explicitUSD)
	return r, contract, err
}

// newTree opens the ledger of a tree of loops. It checks the models in checked.
func newTree(cfg Config, checked []string, strictUSD bool) (*tree, error) {
	caller, err := calls.NewCaller(calls.Caller{
		Models: cfg.Models, Gate: calls.NewGate(cfg.CallsAtOnce), MaxReply: cfg.MaxReply,
		Emit: cfg.Progress,
	}, cfg.Budget, checked, strictUSD)
	if err != nil {
		return nil, err
	}
	return &tree{cfg: cfg, caller: caller, ledger: caller.Ledger, allowed: cfg.models()}, nil
}

// Estimate is the expected cost of a run, with its bounds.
type Estimate struct {
	// Turn is the cost of the root's first turn. Most is the whole budget, which a run
	// never exceeds.
	Turn ledger.Spending `json:"turn"`
	Most ledger.Budget   `json:"most"`
	// ReadOnce is the cost of showing the whole input to the sub-model once, in calls as
	// large as half its window: a measure for tasks that must read everything. It is nil
	// if the window is unknown.
	ReadOnce *ledger.Spending `json:"read_once"`
	// Bypass reports that the input is small, so that the run first asks for the answer
	// with one call, without a loop.
	Bypass bool `json:"bypass"`
	// Priced reports that all prices are known; otherwise USD includes only the known ones.
	Priced bool `json:"priced"`
}

// EstimateRun estimates the cost of a run of cfg. It asks no model.
func EstimateRun(ctx context.Context, cfg Config) (Estimate, error) {
	r, contract, err := prepare(cfg, false)
	if err != nil {
		return Estimate{}, err
	}
	if err := r.readTools(ctx); err != nil {
		return Estimate{}, err
	}
	l := r.rootLoop(contract)
	if err := l.begin(ctx); err != nil {
		return Estimate{}, err
	}
	defer l.session.Close()
	turn, err := r.caller.Estimate(calls.Ask{Model: l.model, Messages: l.messages})
	if err != nil {
		return Estimate{}, err
	}

	e := Estimate{Turn: turn, Most: r.ledger.Budget(), Priced: r.caller.IsPriced()}
	chars, err := r.measureInputs(ctx)
	if err != nil {
		return Estimate{}, err
	}
	if e.ReadOnce, err = r.estimateReading(chars); err != nil || !cfg.mayBypass() {
		return e, err
	}

	direct, err := r.writeDirect(ctx, contract)
	e.Bypass = direct != ""
	return e, err
}

// CheckModels asks each server whether it can serve its model, so that a run with an unavailable
// model fails before it costs anything.
func CheckModels(ctx context.Context, cfg Config) error {
	cfg = cfg.WithDefaults()
	names := slices.Concat([]string{cfg.Model, cfg.SubModel}, cfg.DepthModels, cfg.AllowedModels)
	for _, agent := range cfg.Agents {
		names = append(names, agent.Model)
	}
	return ledger.CheckModels(ctx, cfg.Models, cfg.Progress, names...)
}
