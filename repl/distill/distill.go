package distill

import (
	"context"
	"embed"
	"errors"
	"fmt"

	"github.com/rlmhq/rlm/repl"
	"github.com/rlmhq/rlm/repl/rlm"
)

//go:embed prompts/*.md
var promptFiles embed.FS

var prompts = repl.NewPrompts(promptFiles)

// Config says how a corpus is distilled. A zero field means its default.
type Config struct {
	// Run says how runs go: models, budget (of all of them together), what opens
	// sessions, triggers. Its question, inputs and contract are not used; records go
	// into the folders clusters and edits of its trace. Without a model there are no runs: failures are clustered by their words and no
	// edits are proposed.
	Run rlm.Config
	// Clusters bounds the clusters, by default 20, at most MostClusters. One more may
	// hold what is in none.
	Clusters int
	// NoEdits leaves the proposals out.
	NoEdits bool
}

// Check returns what Run would refuse before any work.
func (c Config) Check() error {
	if c.Clusters != 0 && (c.Clusters < 2 || c.Clusters > MostClusters) {
		return fmt.Errorf("%d clusters make no sense: give 2 to %d, or 0 for the default", c.Clusters, MostClusters)
	}
	if c.Run.WithDefaults().Model == "" {
		return c.Run.Budget.Validate()
	}
	return c.Run.Check()
}

// Bounds of Config.Clusters.
const (
	DefaultClusters = 20
	MostClusters    = 200
)

// Method says how clusters were made.
type Method string

// The methods.
const (
	MethodRun      Method = "rlm"
	MethodKeywords Method = "keywords"
)

// Result is what a corpus comes to.
type Result struct {
	Method Method `json:"method"`
	// Failed and Passed are how many traces there were of each.
	Failed   int              `json:"failed"`
	Passed   int              `json:"passed"`
	Clusters []FailureCluster `json:"clusters"` // the largest first
	Edits    []ComponentEdit  `json:"edits"`    // the most promising first
	// Notes say what was not done as it should have been, and why.
	Notes []string `json:"notes,omitempty"`
	// Partial says that the budget was used up before all was done.
	Partial bool          `json:"partial,omitempty"`
	Spent   repl.Spending `json:"spent"`
}

// Run distils a corpus. More failures than Config.Run's triggers allow go to a run;
// fewer, or any number without a model or where the run has no answer, are clustered
// by their words. The error is for a configuration that makes no sense, for what
// broke, and for the context's end; the Result then says how far it came.
func Run(ctx context.Context, corpus Corpus, cfg Config) (Result, error) {
	d := &distiller{failures: corpus.Failures, left: cfg.Run, result: Result{
		Method: MethodKeywords, Failed: len(corpus.Failures), Passed: corpus.Passed, Clusters: []FailureCluster{}, Edits: []ComponentEdit{},
	}}
	if err := cfg.Check(); err != nil || len(d.failures) == 0 {
		return d.result, err
	}
	if cfg.Clusters == 0 {
		cfg.Clusters = DefaultClusters
	}
	if err := d.cluster(ctx, cfg.Clusters); err != nil || cfg.NoEdits || !d.hasModel() {
		return d.result, err
	}
	return d.result, d.edit(ctx)
}

// distiller is one distillation.
type distiller struct {
	failures []Failure
	left     rlm.Config // its budget is what is left of the whole
	result   Result
}

func (d *distiller) hasModel() bool { return d.left.WithDefaults().Model != "" }

func (d *distiller) note(format string, args ...any) {
	d.result.Notes = append(d.result.Notes, fmt.Sprintf(format, args...))
}

// cluster makes the clusters.
func (d *distiller) cluster(ctx context.Context, most int) error {
	var clusters []FailureCluster
	trigger := d.left.ShouldTrigger(rlm.Situation{Traces: int64(len(d.failures))})
	switch {
	case trigger == rlm.TriggerNone:
	case !d.hasModel():
		d.note("%d failures are more than words can tell apart well (%s): name a model", len(d.failures), trigger)
	default:
		found, outcome, err := byRun(ctx, d.left, d.failures, most)
		if err := d.took("cluster the failures", outcome, err); err != nil {
			return err
		}
		if found != nil {
			clusters, d.result.Method = found, MethodRun
		}
	}
	if clusters == nil {
		var err error
		if clusters, err = byKeywords(ctx, d.failures, most); err != nil {
			return err
		}
	}
	d.result.Clusters = complete(clusters, d.failures)
	return nil
}

// edit makes the proposals.
func (d *distiller) edit(ctx context.Context) error {
	if d.result.Partial {
		return nil
	}
	edits, outcome, err := propose(ctx, d.left, d.result.Clusters, d.failures)
	if err := d.took("propose edits", outcome, err); err != nil {
		return err
	}
	if edits != nil {
		d.result.Edits = edits
	}
	return nil
}

// took keeps the accounts of a run, and notes one without an answer: the budget of
// the next is what this one left.
func (d *distiller) took(what string, outcome rlm.Outcome, err error) error {
	d.result.Spent = d.result.Spent.Plus(outcome.Spent)
	if err != nil {
		return fmt.Errorf("cannot %s: %w", what, err)
	}
	if outcome.Answer == nil {
		d.note("the run that was to %s ended as %s: %s", what, outcome.Status, outcome.Reason)
	}
	d.result.Partial = outcome.Status == rlm.StatusPartial
	rest, err := d.left.Budget.Less(outcome.Spent, outcome.Elapsed)
	var used *repl.BudgetError
	if errors.As(err, &used) {
		d.result.Partial = true
		d.note("after the run that was to %s nothing is left: %v", what, err)
		return nil
	}
	d.left.Budget = rest
	return err
}
