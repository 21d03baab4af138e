package stored

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
	"github.com/rlmhq/rlm/cmd/rlm/internal/sessions"
	"github.com/rlmhq/rlm/cmd/rlm/internal/wiring"
	"github.com/rlmhq/rlm/internal/keep/damage"
	"github.com/rlmhq/rlm/internal/keep/store/sqlitestore"
	"github.com/rlmhq/rlm/server"
)

// NewStore makes the command rlm store.
func NewStore(e *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use: "store", Short: "Check and repair what rlm keeps",
		Long: "Check and repair what rlm keeps: named runs and sessions, and the data of servers.",
	}
	cmd.AddCommand(newStoreCheck(e))
	return cmd
}

const storeCheckLong = `Compare all that rlm keeps with its checksums: databases, the states of sessions and runs,
contexts, uploaded files, events and logs. FOLDER is a store or the data folder of a server.
Without it, the command checks the store of the settings and the data folder of "rlm serve".

--repair takes what is damaged out of its place, saves the rest, and says what is lost. The
folder "quarantine" gets copies of all that it changes. No other process may use the folder.

Exit codes: 0 all is whole, or was repaired; 2 usage, or a folder that cannot be checked;
9 damage was found.`

func newStoreCheck(e *cli.Env) *cobra.Command {
	var data wiring.DataFlag
	var repair, asJSON bool
	cmd := &cobra.Command{
		Use: "check [FOLDER]", Short: "Compare what is kept with its checksums, and repair it", Long: storeCheckLong,
		Args: cobra.MaximumNArgs(1),
		Example: `  rlm store check
  rlm store check --repair --data /var/lib/rlm`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.Flags().Changed("data") {
				args = append(args, data.Dir)
			}
			return checkStores(cmd.Context(), e, args, repair, asJSON)
		},
	}
	flags := cmd.Flags()
	data.Add(flags)
	flags.BoolVar(&repair, "repair", false, "take out what is damaged, keep copies of it, and save the rest")
	flags.BoolVar(&asJSON, "json", false, "print an object of JSON for each folder")
	return cmd
}

// checkedFolder is a folder to check.
type checkedFolder struct {
	dir    string
	isData bool // a server's data folder
	isUser bool // the configured store
}

// checkStores checks folders and prints the findings.
func checkStores(ctx context.Context, e *cli.Env, given []string, repair, asJSON bool) error {
	folders, err := findFolders(e, given)
	if err != nil {
		return cli.Usage(err)
	}

	isWhole := true
	for _, folder := range folders {
		report, err := checkFolder(ctx, e, folder, repair)
		if err != nil {
			return cli.Usage(err)
		}
		isWhole = isWhole && report.IsWhole()
		if asJSON {
			err = cli.PrintLine(e.Stdout, struct {
				Folder string `json:"folder"`
				Whole  bool   `json:"whole"`
				*damage.Report
			}{folder.dir, report.IsWhole(), report})
		} else {
			err = printReport(e, folder.dir, report, repair)
		}
		if err != nil {
			return err
		}
	}

	if isWhole || repair {
		return nil
	}
	return cli.Exit(cli.ExitDamaged, errors.New(
		"damage was found: stop what uses the folder, then save the rest with --repair"))
}

// findFolders returns the folders to check: the given ones, or the user's.
func findFolders(e *cli.Env, given []string) (folders []checkedFolder, err error) {
	for _, path := range given {
		dir, err := filepath.Abs(path)
		if err != nil {
			return nil, err
		}
		isData := server.Folder(dir).IsUsed()
		if !isData && !sqlitestore.IsStore(dir) {
			return nil, fmt.Errorf("%s is neither a store nor the data folder of a server: give another folder", path)
		}
		folders = append(folders, checkedFolder{dir: dir, isData: isData})
	}

	if len(given) > 0 {
		return folders, nil
	}

	dir, err := wiring.StoreFolder(e)
	if err != nil {
		return nil, err
	}
	if dir != "" && sqlitestore.IsStore(dir) {
		folders = append(folders, checkedFolder{dir: dir, isUser: true})
	}

	if dir, err = (&wiring.DataFlag{}).Find(); err == nil && server.Folder(dir).IsUsed() {
		folders = append(folders, checkedFolder{dir: dir, isData: true})
	}
	if len(folders) == 0 && err == nil {
		err = errors.New("nothing is kept yet: give a folder")
	}
	return folders, err
}

func checkFolder(ctx context.Context, e *cli.Env, folder checkedFolder, repair bool) (*damage.Report, error) {
	if folder.isData {
		return server.Folder(folder.dir).Check(ctx, repair, e.Log)
	}

	var q *damage.Quarantine
	if repair {
		q = damage.NewQuarantine(folder.dir)
	}
	report, err := sqlitestore.Check(ctx, folder.dir, q)
	if err == nil && folder.isUser {
		var files *damage.Report
		if files, err = sessions.CheckFiles(q); err == nil {
			report.Join("", files)
		}
	}
	if err == nil {
		report.Kept = q.Dir()
	}
	return report, err
}

// printReport prints the findings about a folder.
func printReport(e *cli.Env, dir string, report *damage.Report, repair bool) error {
	verdict := "all is whole"
	if n := report.Count(); n > 0 {
		verdict = fmt.Sprintf("%d damaged", n)
		if repair {
			verdict += ", repaired"
		}
	}
	text := fmt.Sprintf("%s: %d files and %d records: %s\n", cli.Escape(dir), report.Files, report.Records, verdict)
	for i := range report.Findings {
		text += "  " + cli.Escape(report.Findings[i].String()) + "\n"
	}
	if report.Kept != "" {
		text += "copies: " + cli.Escape(report.Kept) + "\n"
	}
	_, err := fmt.Fprint(e.Stdout, text)
	return err
}
