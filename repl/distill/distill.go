package distill

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/rlmhq/rlm/internal/keep/runlog"
	"github.com/rlmhq/rlm/internal/keep/skillbook"
	"github.com/rlmhq/rlm/internal/keep/trajectory"
	"github.com/rlmhq/rlm/internal/text/quantity"
	"github.com/rlmhq/rlm/repl/internal/calls"
	"github.com/rlmhq/rlm/repl/internal/harness"
	"github.com/rlmhq/rlm/repl/internal/prompts"
	"github.com/rlmhq/rlm/repl/internal/record"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/run"
)

//go:embed prompts/*.md
var promptFiles embed.FS

var templates = prompts.New(promptFiles)

// Config configures a distillation. A zero field means its default.
type Config struct {
	// Run configures the runs: models, sessions, triggers, and the total budget. Its question,
	// inputs and contract are ignored. Its trace and progress cover the whole distillation, with
	// the runs as sub-loops. Without a model, there is no run: failures are clustered by the words
	// of their errors, and no edits are proposed.
	Run run.Config
	// Clusters is the maximum number of clusters, by default 20, at most 200. One more cluster may
	// hold the remaining failures.
	Clusters int
	// NoEdits skips the proposed edits.
	NoEdits bool
	// Skillbook holds the strategies that the agent used, as text or as JSON of the Agentic
	// Context Engine. The model reads it before it proposes edits.
	Skillbook string
}

// check returns the error with which Run would reject the configuration before any work.
func (c Config) check() error {
	if c.Clusters != 0 && (c.Clusters < 2 || c.Clusters > mostClusters) {
		return fmt.Errorf(
			"the maximum number of clusters is %d: give 2 to %d, or 0 for the default", c.Clusters,
			mostClusters,
		)
	}

	if c.Run.WithDefaults().Model == "" {
		return calls.CheckBudget(c.Run.Budget)
	}
	return c.Run.Check()
}

// The default and the maximum of Config.Clusters.
const (
	defaultClusters = 20
	mostClusters    = 200
)

// mostAsked bounds how often a model is asked for edits.
const mostAsked = 2

// The values of Outcome.Method.
const (
	methodRun      = "rlm"
	methodKeywords = "keywords"
)

// Outcome is the result of a distillation.
type Outcome struct {
	// Method reports how the clusters were made: "rlm" by a run, "keywords" by the words of the
	// errors.
	Method string `json:"method"`
	// Failed and Passed count the traces of each kind.
	Failed   int              `json:"failed"`
	Passed   int              `json:"passed"`
	Clusters []FailureCluster `json:"clusters"` // the largest first
	Edits    []ComponentEdit  `json:"edits"`    // the most promising first
	// Notes lists deviations from the plan, with reasons.
	Notes []string `json:"notes,omitempty"`
	// Partial reports that the budget ran out before the end.
	Partial bool            `json:"partial,omitempty"`
	Spent   ledger.Spending `json:"spent"`
	Elapsed time.Duration   `json:"elapsed_ns"`
	// Trace is the folder of the record, or empty without a record.
	Trace string `json:"trace,omitempty"`
}

// Run distils a corpus. With a model, a run clusters the failures, unless Triggers.Traces of
// Config.Run is negative; a few failures take just one call. Without a model, or if the run has
// no answer, the failures are clustered by the words of their errors. The error is a
// [*repl.SetupError] if the distillation could not begin, the context's cause, or a description of
// the failure; the Outcome then holds the findings up to that point.
func Run(ctx context.Context, corpus Corpus, cfg Config) (Outcome, error) {
	d := &distiller{
		cfg:      cfg,
		failures: corpus.Failures,
		left:     cfg.Run,
		caller:   calls.Caller{Emit: cfg.Run.Progress},
		result: Outcome{
			Method: methodKeywords, Failed: len(corpus.Failures), Passed: corpus.Passed,
			Clusters: []FailureCluster{}, Edits: []ComponentEdit{},
		},
	}

	err := harness.Run(ctx, d)
	return d.result, err
}

// distiller is one distillation.
type distiller struct {
	cfg      Config
	failures []Failure
	skills   string       // the skillbook in the form that the agent received
	left     run.Config   // its budget is the unspent part of the total
	caller   calls.Caller // only for events; each run has its own
	trace    *record.Trace
	step     int
	runs     int
	result   Outcome
}

// Prepare checks the configuration.
func (d *distiller) Prepare(context.Context) (harness.Plan, error) {
	err := d.cfg.check()
	if err == nil {
		d.skills, err = skillbook.Render(d.cfg.Skillbook)
	}
	if err == nil && d.result.Failed+d.result.Passed == 0 {
		err = errors.New("the corpus has no trace")
	}
	of := quantity.Plural(d.result.Failed+d.result.Passed, "trace", "")
	return harness.Plan{
		Caller: &d.caller, Folder: d.cfg.Run.Trace,
		Started: ledger.Event{
			Model: d.model(),
			Text:  fmt.Sprintf("%s of %s", quantity.Plural(d.result.Failed, "failure", ""), of),
		},
	}, err
}

// Solve makes the clusters and, unless NoEdits is set, the edits.
func (d *distiller) Solve(ctx context.Context, trace *record.Trace) error {
	d.trace = trace
	d.trace.Begin(trajectory.Metadata{RootModel: d.model(), EnvironmentType: "distill"})
	if len(d.failures) == 0 {
		return nil
	}

	most := d.cfg.Clusters
	if most == 0 {
		most = defaultClusters
	}
	if err := d.take("clusters", func() (any, error) { return d.cluster(ctx, most) }); err != nil {
		return err
	}
	if err := runlog.EndTurn(ctx, 1); err != nil {
		return err
	}
	if d.cfg.NoEdits || !d.hasModel() || d.result.Partial {
		return nil
	}

	return d.take("edits", func() (any, error) { return d.edit(ctx) })
}

// model returns the model of the runs, or "" without one.
func (d *distiller) model() string { return d.left.WithDefaults().Model }

func (d *distiller) hasModel() bool { return d.model() != "" }

// cluster makes the clusters: by a run if there is a model; without one, or if the run has no
// answer, by the words of the errors.
func (d *distiller) cluster(ctx context.Context, most int) ([]FailureCluster, error) {
	var clusters []FailureCluster
	var failed error
	trigger := d.left.Triggers.ShouldTrigger(run.Signal{Traces: int64(len(d.failures))})
	switch {
	case d.left.Triggers.Traces < 0:
	case !d.hasModel():
		if trigger != "" {
			d.note(
				"a model would cluster the %d failures better than their words do (%s): name a model",
				len(d.failures), trigger,
			)
		}
	default:
		cfg := d.nextConfig()
		if cfg.Bypass = -1; trigger == "" {
			cfg.Bypass = math.MaxInt
		}
		found, outcome, err := clusterByRun(runlog.EnterTurn(ctx, 1), cfg, d.failures, most)
		failed = d.recordRun("cluster the failures", outcome, err)
		if failed != nil && ctx.Err() != nil {
			return nil, failed
		}
		if found != nil {
			clusters, d.result.Method = found, methodRun
		}
	}

	if clusters == nil {
		var err error
		if clusters, err = clusterByKeywords(ctx, d.failures, most); err != nil {
			return nil, errors.Join(failed, err)
		}
	}

	d.result.Clusters = completeClusters(clusters, d.failures)
	return d.result.Clusters, failed
}

// edit proposes edits.
func (d *distiller) edit(ctx context.Context) ([]ComponentEdit, error) {
	wrong := ""
	for asked := range mostAsked {
		turn := asked + 2 // after the turn of the clusters
		answer, outcome, err := d.propose(runlog.EnterTurn(ctx, turn), d.nextConfig(), wrong)
		if err := d.recordRun("propose edits", outcome, err); err != nil {
			return nil, err
		}
		if answer == nil {
			return d.result.Edits, nil
		}
		edits, problems, err := readEdits(answer, d.result.Clusters)
		if err == nil {
			for _, problem := range problems {
				d.note("%s", problem)
			}
			d.result.Edits = rankEdits(edits, d.result.Clusters)
			return d.result.Edits, nil
		}
		if wrong = err.Error(); d.result.Partial {
			break
		}
	}

	d.note("the edits cannot be read: %s", wrong)
	return d.result.Edits, nil
}

// recordRun subtracts a run from the budget of the next runs, and notes a missing answer.
func (d *distiller) recordRun(what string, outcome run.Outcome, err error) error {
	d.result.Spent = calls.Add(d.result.Spent, outcome.Spent)
	if err != nil {
		return fmt.Errorf("cannot %s: %w", what, err)
	}
	if outcome.Answer == nil {
		d.note("the run to %s ended as %s: %s", what, outcome.Status, outcome.Reason)
	}

	d.result.Partial = outcome.Status == ledger.StatusPartial
	rest, err := calls.Subtract(d.left.Budget, outcome.Spent, outcome.Elapsed)
	var used *ledger.BudgetError
	if errors.As(err, &used) {
		d.result.Partial = true
		d.note("the run to %s used up the budget: %v", what, err)
		return nil
	}

	d.left.Budget = rest
	return err
}
