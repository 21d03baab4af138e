package setup

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"

	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
)

// Manual is the name of the command that documents all others.
const Manual = "man"

// NewMan makes a command that writes the manual pages.
func NewMan(e *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use:   Manual + " FOLDER",
		Short: "Write the manual pages",
		Long: "Write a manual page for each command into a folder, and create the folder if necessary.\n" +
			"man finds the pages in a folder man1 of its search path.",
		Example: "  rlm man ~/.local/share/man/man1 && man rlm-exec",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("give one folder for the pages, such as ~/.local/share/man/man1")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			dir := args[0]
			if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // the umask decides
				return fmt.Errorf("cannot make the folder of the manual: %w", err)
			}

			cmd.Root().DisableAutoGenTag = true
			head := &doc.GenManHeader{Section: "1", Source: "rlm " + e.Version, Manual: "rlm"}
			if err := doc.GenManTree(cmd.Root(), head, dir); err != nil {
				return fmt.Errorf("cannot write the manual: %w", err)
			}
			_, err := fmt.Fprintln(e.Stdout, dir)
			return err
		},
	}
}
