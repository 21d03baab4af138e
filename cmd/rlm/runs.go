package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/internal/keep/store"
	"github.com/rlmhq/rlm/repl/ledger"
	"github.com/rlmhq/rlm/viewer/traces"
)

const runsLong = `List, continue and branch named runs.

"rlm run --name NAME" stores each turn and each answer as it arrives. If the process ends
early, "rlm runs resume NAME" continues from the last turn. It does not pay again for
answers that had arrived.`

// newRuns makes the command rlm runs. newRoot makes the whole command again, with which a run was begun.
func newRuns(e *env, newRoot func(e *env, args []string) *cobra.Command) *cobra.Command {
	cmd := &cobra.Command{Use: "runs", Short: "List, continue and branch named runs", Long: runsLong}
	cmd.AddCommand(newRunsList(e), newRunsShow(e), newRunsResume(e, newRoot), newRunsRewind(e), newRunsFork(e),
		newRunsApprove(e), newRunsDeny(e), newRunsExport(e), newRunsRemove(e))
	return cmd
}

// oneName takes the name of a run, and for resume and fork further flags behind it.
func oneName(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return errors.New("give the name of one run: rlm runs list shows them")
	}
	return nil
}

func newRunsList(e *env) *cobra.Command {
	var filter rlm.RunFilter
	var since time.Duration
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "List the named runs, the latest change first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if since > 0 {
				filter.Since = time.Now().Add(-since)
			}
			return e.withRuns(func(engine *rlm.Engine) error {
				return e.listRuns(cmd.Context(), engine, filter, asJSON)
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

func (e *env) listRuns(ctx context.Context, engine *rlm.Engine, filter rlm.RunFilter, asJSON bool) error {
	runs, err := engine.Runs(ctx, filter)
	if err != nil {
		return err
	}
	if asJSON {
		for i := range runs {
			if err := printLine(e.stdout, runs[i]); err != nil {
				return err
			}
		}
		return nil
	}

	table := tabwriter.NewWriter(e.stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "NAME\tSTATUS\tTURNS\tCALLS\tUSD\tCHANGED\tQUESTION")
	for i := range runs {
		r := &runs[i]
		_, _ = fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%s\t%s\t%s\n", r.Name, r.Status, r.Turns,
			r.Spent.Calls, showUSD(r.Spent), humanize.Time(r.Updated), shorten(r.Question, 60))
	}
	return table.Flush()
}

func newRunsShow(e *env) *cobra.Command {
	var asJSON, follows bool
	cmd := &cobra.Command{
		Use: "show NAME", Short: "Show the turns of a named run and their cost", Args: oneName,
		Long: showLong,
		RunE: func(cmd *cobra.Command, args []string) error {
			if follows {
				return e.withStore(func(s store.Store) error {
					return e.followRun(cmd.Context(), s, args[0], asJSON)
				})
			}
			return e.withRuns(func(engine *rlm.Engine) error {
				return e.showRun(cmd.Context(), engine, args[0], asJSON)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object; with --follow, lines of JSON")
	cmd.Flags().BoolVarP(&follows, "follow", "f", false, "print what the run does until it stops")
	return cmd
}

func (e *env) showRun(ctx context.Context, engine *rlm.Engine, name string, asJSON bool) error {
	r, err := engine.ShowRun(ctx, name)
	if err != nil {
		return err
	}
	if asJSON {
		return printLine(e.stdout, r)
	}

	_, _ = fmt.Fprintf(e.stdout, "%s: %s%s\nquestion: %s\nspent: %s\n", name, r.Status,
		escape(strings.TrimSuffix(": "+r.Reason, ": ")), escape(r.Question), r.Spent)
	if r.Parent != "" {
		_, _ = fmt.Fprintf(e.stdout, "branched from %s after turn %d\n", r.Parent, r.ParentTurn)
	}
	for _, w := range r.Waiting {
		_, _ = fmt.Fprintf(e.stdout, "waits for a decision since %s: %s\n  %s\n  %s\n",
			w.Asked.Format(time.DateTime), w.ID, escape(w.Why), escape(string(w.Call)))
	}
	table := tabwriter.NewWriter(e.stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "TURN\tCOMMITTED\tCALLS\tOPEN\tUSD\tLAST CALL")
	for _, t := range r.History {
		_, _ = fmt.Fprintf(table, "%d\t%t\t%d\t%d\t%s\t%s\n", t.Turn, t.Committed, t.Steps, t.Open,
			showUSD(t.Spent), shorten(t.Last, 60))
	}
	return table.Flush()
}

func newRunsExport(e *env) *cobra.Command {
	var out, trace string
	cmd := &cobra.Command{
		Use: "export NAME", Short: "Write the journal of a named run as lines of JSON", Args: oneName,
		Long: `Write the journal of a named run as lines of JSON: each call with its request, reply and
cost, and each turn. So the file contains the prompts and replies of the run.

--trace writes the record of the run instead, as "rlm run --trace" does.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if trace != "" && out != "" {
				return errors.New("give --output or --trace, not both")
			}
			if trace != "" {
				return e.exportTrace(cmd.Context(), args[0], trace)
			}
			return e.withRuns(func(engine *rlm.Engine) (err error) {
				if out == "" {
					return engine.ExportRun(cmd.Context(), args[0], e.stdout)
				}
				file, err := createFile(out)
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

// readJournal passes the journal of a run to read, as lines of JSON.
func (e *env) readJournal(ctx context.Context, name string, read func(io.Reader) error) error {
	return e.withRuns(func(engine *rlm.Engine) error {
		if _, err := engine.ShowRun(ctx, name); err != nil {
			return err
		}
		r, w := io.Pipe()
		go func() { w.CloseWithError(engine.ExportRun(ctx, name, w)) }()
		err := read(r)
		_ = r.Close() // frees the writer
		return err
	})
}

// exportTrace writes the record of a run into a folder.
func (e *env) exportTrace(ctx context.Context, name, folder string) error {
	return e.readJournal(ctx, name, func(journal io.Reader) error {
		record, notes, err := traces.ReadJournal(journal)
		if err != nil {
			return err
		}
		further, err := record.Write(folder)
		for _, note := range append(notes, further...) {
			_, _ = fmt.Fprintf(e.stderr, "rlm: note: %s\n", escape(note))
		}
		return err
	})
}

func newRunsRemove(e *env) *cobra.Command {
	return &cobra.Command{
		Use: "rm NAME...", Short: "Delete named runs", Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.withRuns(func(engine *rlm.Engine) error {
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

// showUSD formats a cost for a table. A plus means that calls without a known price are not in it.
func showUSD(s ledger.Spending) string {
	switch {
	case s.Unpriced == 0:
		return fmt.Sprintf("%.4f", s.USD)
	case s.USD == 0:
		return "unknown"
	}
	return fmt.Sprintf("%.4f+", s.USD)
}
