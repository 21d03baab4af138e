package stored

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
	"github.com/rlmhq/rlm/cmd/rlm/internal/wiring"
	"github.com/rlmhq/rlm/internal/keep/runlog"
	"github.com/rlmhq/rlm/internal/keep/store"
	"github.com/rlmhq/rlm/internal/text/quantity"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/repl/reflexion"
	"github.com/rlmhq/rlm/viewer/traces"
)

const runsLong = `List, continue and branch named runs.

"rlm ask --name NAME" stores each turn and each answer as it arrives. If the process ends
early, "rlm runs resume NAME" continues from the last turn. It does not pay again for
answers that had arrived.`

// NewRuns makes the command rlm runs. newRoot recreates the whole command that started a run.
func NewRuns(e *cli.Env, newRoot func(e *cli.Env, args []string) *cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: "runs", Short: "List, continue and branch named runs", Long: runsLong}
	cmd.AddCommand(newRunsList(e), newRunsShow(e), newRunsResume(e, newRoot), newRunsRewind(e), newRunsFork(e),
		newRunsApprove(e), newRunsDeny(e), newRunsExport(e), newRunsRemove(e))
	return cmd
}

// oneName requires the name of a run; resume and fork accept additional flags after it.
func oneName(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return errors.New("give the name of one run: rlm runs list shows them")
	}
	return nil
}

func newRunsList(e *cli.Env) *cobra.Command {
	var filter rlm.RunFilter
	var since time.Duration
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "List the named runs, the latest change first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if filter.Status != "" && !slices.Contains(runStatuses, filter.Status) {
				return cli.Usage(fmt.Errorf("--status %.40q: no run has this status; give %s", filter.Status,
					strings.Join(runStatuses, ", ")))
			}
			if since > 0 {
				filter.Since = time.Now().Add(-since)
			}
			return wiring.WithRuns(e, func(engine *rlm.Engine) error {
				return listRuns(cmd.Context(), e, engine, filter, asJSON)
			})
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&filter.Status, "status", "", "only runs with this `status`, such as answered or interrupted")
	flags.StringVar(&filter.Text, "text", "", "only runs with this `text` in the name or the question")
	flags.Float64Var(&filter.MinUSD, "min-usd", 0, "only runs that have cost at least this many US dollars")
	flags.DurationVar(&since, "since", 0, "only runs that have changed within this `time`, such as 24h")
	flags.IntVar(&filter.Limit, "limit", 100, "maximum number of runs, 0 for all")
	flags.BoolVar(&asJSON, "json", false, "print a line of JSON for each run")
	return cmd
}

// runStatuses are the statuses of stored runs, of all loops.
var runStatuses = []string{
	runlog.StatusRunning, runlog.StatusInterrupted, runlog.StatusParked, string(ledger.StatusAnswered),
	string(ledger.StatusSynthesised), string(ledger.StatusPartial), string(ledger.StatusNoAnswer),
	string(ledger.StatusCanceled), string(ledger.StatusFailed), string(reflexion.StatusPassed),
	string(reflexion.StatusRejected), string(reflexion.StatusUnjudged), "done", "broken",
}

func listRuns(ctx context.Context, e *cli.Env, engine *rlm.Engine, filter rlm.RunFilter, asJSON bool) error {
	runs, err := engine.Runs(ctx, filter)
	if err != nil {
		return err
	}
	if asJSON {
		for i := range runs {
			if err := cli.PrintLine(e.Stdout, runs[i]); err != nil {
				return err
			}
		}
		return nil
	}

	table := tabwriter.NewWriter(e.Stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "NAME\tSTATUS\tTURNS\tCALLS\tUSD\tCHANGED\tQUESTION")
	for i := range runs {
		r := &runs[i]
		_, _ = fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%s\t%s\t%s\n", r.Name, r.Status, r.Turns,
			r.Spent.Calls, showUSD(r.Spent), quantity.Ago(r.Updated, time.Now()), cli.Shorten(r.Question, 60))
	}
	return table.Flush()
}

func newRunsShow(e *cli.Env) *cobra.Command {
	var asJSON, follows bool
	cmd := &cobra.Command{
		Use: "show NAME", Short: "Show the turns of a named run and their cost", Args: oneName,
		Long: showLong,
		RunE: func(cmd *cobra.Command, args []string) error {
			if follows {
				return wiring.WithStore(e, func(s store.Store) error {
					return followRun(cmd.Context(), e, s, args[0], asJSON)
				})
			}
			return wiring.WithRuns(e, func(engine *rlm.Engine) error {
				return showRun(cmd.Context(), e, engine, args[0], asJSON)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object; with --follow, lines of JSON")
	cmd.Flags().BoolVarP(&follows, "follow", "f", false, "print what the run does until it stops")
	return cmd
}

func showRun(ctx context.Context, e *cli.Env, engine *rlm.Engine, name string, asJSON bool) error {
	r, err := engine.ShowRun(ctx, name)
	if err != nil {
		return err
	}
	if asJSON {
		return cli.PrintLine(e.Stdout, r)
	}

	_, _ = fmt.Fprintf(e.Stdout, "%s: %s%s\nquestion: %s\nspent: %s\n", name, r.Status,
		cli.Escape(strings.TrimSuffix(": "+r.Reason, ": ")), cli.Escape(r.Question), r.Spent)
	if r.Parent != "" {
		_, _ = fmt.Fprintf(e.Stdout, "branched from %s after turn %d\n", r.Parent, r.ParentTurn)
	}
	for _, w := range r.Waiting {
		_, _ = fmt.Fprintf(e.Stdout, "waits for a decision since %s: %s\n  %s\n  %s\n",
			w.Asked.Format(time.DateTime), w.ID, cli.Escape(w.Why), cli.Escape(string(w.Call)))
	}

	table := tabwriter.NewWriter(e.Stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "TURN\tCOMMITTED\tCALLS\tOPEN\tUSD\tLAST CALL")
	for _, t := range r.History {
		_, _ = fmt.Fprintf(table, "%d\t%t\t%d\t%d\t%s\t%s\n", t.Turn, t.Committed, t.Steps, t.Open,
			showUSD(t.Spent), cli.Shorten(t.Last, 60))
	}
	return table.Flush()
}

func newRunsExport(e *cli.Env) *cobra.Command {
	var out, trace string
	cmd := &cobra.Command{
		Use: "export NAME", Short: "Write the run log of a named run as lines of JSON", Args: oneName,
		Long: `Write the run log of a named run as lines of JSON: each call with its request, reply and
cost, and each turn. So the file contains the prompts and replies of the run.

--trace writes the record of the run instead, as "rlm ask --trace" does.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if trace != "" && out != "" {
				return errors.New("give --output or --trace, not both")
			}
			if trace != "" {
				return exportTrace(cmd.Context(), e, args[0], trace)
			}
			return wiring.WithRuns(e, func(engine *rlm.Engine) (err error) {
				if out == "" {
					return engine.ExportRun(cmd.Context(), args[0], e.Stdout)
				}
				file, err := cli.CreateFile(out)
				if err != nil {
					return err
				}
				defer func() { err = errors.Join(err, file.Close()) }()
				return engine.ExportRun(cmd.Context(), args[0], file)
			})
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "new `file` to write, in place of stdout")
	cmd.Flags().StringVar(&trace, "trace", "", "new `folder` for the record of the run")
	return cmd
}

// readRunLog passes the log of a run, as JSON lines, to read.
func readRunLog(ctx context.Context, e *cli.Env, name string, read func(io.Reader) error) error {
	return wiring.WithRuns(e, func(engine *rlm.Engine) error {
		if _, err := engine.ShowRun(ctx, name); err != nil {
			return err
		}
		r, w := io.Pipe()
		go func() { w.CloseWithError(engine.ExportRun(ctx, name, w)) }()
		err := read(r)
		_ = r.Close() // unblocks the writer
		return err
	})
}

// exportTrace writes the record of a run into a folder.
func exportTrace(ctx context.Context, e *cli.Env, name, folder string) error {
	return readRunLog(ctx, e, name, func(runLog io.Reader) error {
		record, notes, err := traces.ReadRunLog(runLog)
		if err != nil {
			return err
		}
		further, err := record.Write(folder)
		for _, note := range append(notes, further...) {
			_, _ = fmt.Fprintf(e.Stderr, "rlm: note: %s\n", cli.Escape(note))
		}
		return err
	})
}

func newRunsRemove(e *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use: "rm NAME...", Short: "Delete named runs", Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return wiring.WithRuns(e, func(engine *rlm.Engine) error {
				for _, name := range args {
					if err := engine.RemoveRun(cmd.Context(), name); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
}

// showUSD formats a cost for a table. A plus means that it excludes calls without a known price.
func showUSD(s ledger.Spending) string {
	switch {
	case s.Unpriced == 0:
		return fmt.Sprintf("%.4f", s.USD)
	case s.USD == 0:
		return "unknown"
	}
	return fmt.Sprintf("%.4f+", s.USD)
}
