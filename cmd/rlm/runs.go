package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"github.com/rlmhq/rlm/cmd/rlm/internal/sessions"
	"github.com/rlmhq/rlm/internal/journal"
	"github.com/rlmhq/rlm/internal/store"
	"github.com/rlmhq/rlm/internal/texts"
)

const runsLong = `List, continue and branch the runs that were given a name.

"rlm run --name NAME" stores each turn and each answer as it arrives. If the process ends
early, "rlm runs resume NAME" continues from the last turn. It does not pay again for
answers that had arrived.`

func newRuns(e *env) *cobra.Command {
	cmd := &cobra.Command{Use: "runs", Short: "List, continue and branch named runs", Long: runsLong}
	cmd.AddCommand(newRunsList(e), newRunsShow(e), newRunsResume(e), newRunsRewind(e), newRunsFork(e),
		newRunsExport(e), newRunsRemove(e))
	return cmd
}

// storeFolder returns the folder of the store, empty for none.
func (e *env) storeFolder() (string, error) {
	switch e.settings.Store {
	case "none":
		return "", nil
	case "":
		dir, err := sessions.UserFolder()
		if err != nil {
			return "", fmt.Errorf("cannot find the folder of the store: %w; name one with --store", err)
		}
		return filepath.Join(dir, "store"), nil
	}
	return filepath.Abs(e.settings.Store)
}

// openStore opens the store of the settings. One that is only read may be on a disk that
// cannot be written.
func (e *env) openStore(reads bool) (*store.Folder, error) {
	dir, err := e.storeFolder()
	if err == nil && dir == "" {
		err = errors.New("there is no store: name a folder with --store in place of none")
	}
	if err != nil {
		return nil, &exitError{exitUsage, err}
	}

	s, err := store.Open(dir)
	if err != nil && reads {
		if other, failed := store.OpenReadOnly(dir); failed == nil {
			return other, nil
		}
	}
	if err != nil {
		return nil, &exitError{exitUsage, err}
	}
	return s, nil
}

// withStore calls use with the store. Its error is one of usage, unless it has an exit code.
func (e *env) withStore(reads bool, use func(*store.Folder) error) (err error) {
	s, err := e.openStore(reads)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := use(s); err != nil {
		return &exitError{exitUsage, err}
	}
	return nil
}

func runID(name string) store.ID { return store.ID{Kind: store.Run, Name: name} }

// oneName takes the name of a run, and for resume and fork further flags behind it.
func oneName(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return errors.New("give the name of one run: rlm runs list shows them")
	}
	return nil
}

func newRunsList(e *env) *cobra.Command {
	filter := store.Filter{Kind: store.Run}
	var since time.Duration
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "List the named runs, the latest change first", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if since > 0 {
				filter.Since = time.Now().Add(-since)
			}
			return e.withStore(true, func(s *store.Folder) error {
				return e.listRuns(cmd.Context(), s, filter, asJSON)
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

// runLine is a run in a list.
type runLine struct {
	Name       string     `json:"name"`
	Status     string     `json:"status"`
	Reason     string     `json:"reason,omitempty"`
	Turns      int        `json:"turns"`
	Spent      store.Cost `json:"spent"`
	Parent     string     `json:"parent,omitempty"`
	ParentTurn int        `json:"parent_turn,omitempty"`
	Created    time.Time  `json:"created"`
	Updated    time.Time  `json:"updated"`
	Question   string     `json:"question"`
}

func describeRun(ctx context.Context, s store.Store, log *store.Log) (runLine, error) {
	status, err := journal.Status(ctx, s, log)
	return runLine{
		Name: log.Name, Status: status, Reason: log.Reason, Turns: log.Turn, Spent: log.Spent,
		Parent: log.Parent, ParentTurn: log.ParentTurn, Created: log.Created, Updated: log.Updated,
		Question: log.Title,
	}, err
}

func (e *env) listRuns(ctx context.Context, s store.Store, filter store.Filter, asJSON bool) error {
	// The store does not know which processes have ended.
	status, limit := filter.Status, filter.Limit
	if status == journal.StatusInterrupted || status == journal.StatusRunning {
		filter.Status, filter.Limit = "", 0
	}
	logs, err := s.Logs(ctx, filter)
	if err != nil {
		return err
	}

	table := tabwriter.NewWriter(e.stdout, 0, 0, 2, ' ', 0)
	if !asJSON {
		_, _ = fmt.Fprintln(table, "NAME\tSTATUS\tTURNS\tCALLS\tUSD\tCHANGED\tQUESTION")
	}
	for i, shown := 0, 0; i < len(logs) && (limit <= 0 || shown < limit); i++ {
		line, err := describeRun(ctx, s, &logs[i])
		if err != nil {
			return err
		}
		if status != "" && line.Status != status {
			continue
		}
		shown++
		if asJSON {
			if err := printLine(e.stdout, line); err != nil {
				return err
			}
			continue
		}
		_, _ = fmt.Fprintf(table, "%s\t%s\t%d\t%d\t%.4f\t%s\t%s\n", line.Name, line.Status, line.Turns,
			line.Spent.Calls, line.Spent.USD, humanize.Time(line.Updated), escape(texts.Truncate(line.Question, 60)))
	}
	return table.Flush()
}

func newRunsShow(e *env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "show NAME", Short: "Show the turns of a named run and their cost", Args: oneName,
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.withStore(true, func(s *store.Folder) error {
				return e.showRun(cmd.Context(), s, args[0], asJSON)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	return cmd
}

func (e *env) showRun(ctx context.Context, s store.Store, name string, asJSON bool) error {
	log, err := s.Log(ctx, runID(name))
	if err != nil {
		return err
	}
	line, err := describeRun(ctx, s, &log)
	if err != nil {
		return err
	}
	turns, err := journal.Turns(ctx, s, log.ID)
	if err != nil {
		return err
	}
	if asJSON {
		return printLine(e.stdout, struct {
			runLine
			Turns []journal.Turn `json:"turn_list"`
		}{line, turns})
	}

	_, _ = fmt.Fprintf(e.stdout, "%s: %s%s\nquestion: %s\nspent: %d calls, $%.4f\n", name, line.Status,
		escape(strings.TrimSuffix(": "+line.Reason, ": ")), escape(line.Question), line.Spent.Calls, line.Spent.USD)
	if line.Parent != "" {
		_, _ = fmt.Fprintf(e.stdout, "branched from %s after turn %d\n", line.Parent, line.ParentTurn)
	}
	table := tabwriter.NewWriter(e.stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "TURN\tCOMMITTED\tCALLS\tOPEN\tUSD\tLAST CALL")
	for _, t := range turns {
		_, _ = fmt.Fprintf(table, "%d\t%t\t%d\t%d\t%.4f\t%s\n", t.Turn, t.Committed, t.Steps, t.Open, t.Cost.USD,
			escape(texts.Truncate(t.Last, 60)))
	}
	return table.Flush()
}

func newRunsExport(e *env) *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use: "export NAME", Short: "Write the journal of a named run as lines of JSON", Args: oneName,
		Long: `Write the journal of a named run as lines of JSON: each call with its request, reply and
cost, and each turn. The prompts and replies of the run are in it.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.withStore(true, func(s *store.Folder) (err error) {
				if out == "" {
					return journal.Export(cmd.Context(), s, runID(args[0]), e.stdout)
				}
				file, err := os.OpenFile(out, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
				if err != nil {
					return err
				}
				defer func() { err = errors.Join(err, file.Close()) }()
				return journal.Export(cmd.Context(), s, runID(args[0]), file)
			})
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "new `file` to write, in place of stdout")
	return cmd
}

func newRunsRemove(e *env) *cobra.Command {
	return &cobra.Command{
		Use: "rm NAME...", Short: "Delete named runs", Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return e.withStore(false, func(s *store.Folder) error {
				for _, name := range args {
					if err := journal.Remove(cmd.Context(), s, name); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
}
