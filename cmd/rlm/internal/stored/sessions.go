package stored

import (
	"errors"
	"fmt"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
	"github.com/rlmhq/rlm/cmd/rlm/internal/prompt"
	"github.com/rlmhq/rlm/cmd/rlm/internal/sessions"
	"github.com/rlmhq/rlm/cmd/rlm/internal/wiring"
	"github.com/rlmhq/rlm/internal/text/quantity"
)

const sessionsLong = `List, copy and delete named sessions.

"--session NAME" of exec, repl, run and chat keeps the variables, the contexts and the
questions of a session, and continues it in the next command.`

// NewSessions makes the command rlm sessions.
func NewSessions(e *cli.Env) *cobra.Command {
	cmd := &cobra.Command{Use: "sessions", Short: "List, copy and delete named sessions", Long: sessionsLong}
	cmd.AddCommand(newSessionsList(e), newSessionsOpen(e), newSessionsFork(e), newSessionsExport(e),
		newSessionsImport(e), newSessionsRemove(e))
	return cmd
}

// WithSessions calls use with the sessions in the configured store.
func WithSessions(
	e *cli.Env, open func(dir string) (*sessions.Keeper, error), use func(*sessions.Keeper) error,
) (err error) {
	dir, err := wiring.NeedStore(e)
	if err != nil {
		return err
	}
	keeper, err := open(dir)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, keeper.Close()) }()
	return use(keeper)
}

func newSessionsList(e *cli.Env) *cobra.Command {
	asJSON := false
	cmd := &cobra.Command{
		Use: "list", Short: "List the named sessions", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return WithSessions(e, sessions.Look, func(k *sessions.Keeper) error {
				list, err := k.List(cmd.Context())
				if err != nil {
					return err
				}
				return listSessions(e, list, asJSON)
			})
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a line of JSON for each session")
	return cmd
}

func listSessions(e *cli.Env, list []sessions.Info, asJSON bool) error {
	if asJSON {
		for i := range list {
			if err := cli.PrintLine(e.Stdout, list[i]); err != nil {
				return err
			}
		}
		return nil
	}

	table := tabwriter.NewWriter(e.Stdout, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(table, "NAME\tCHANGED\tSIZE\tCONTEXTS\tQUESTIONS\tDAMAGE")
	for i := range list {
		s := &list[i]
		size := quantity.IBytes(s.Bytes)
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%d\t%d\t%s\n", s.Name, quantity.Ago(s.Changed, time.Now()), size,
			len(s.Contexts), s.Questions, cli.Escape(s.Damage))
	}
	return table.Flush()
}

// oneSession requires the name of a session as the only argument.
func oneSession(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return errors.New("give the name of one session: rlm sessions list shows them")
	}
	return nil
}

// newSessionsOpen makes a command that is rlm repl for an existing session.
func newSessionsOpen(e *cli.Env) *cobra.Command {
	cmd := prompt.NewRepl(e)
	run := cmd.RunE
	cmd.Use, cmd.Short, cmd.Args = "open NAME [flags of rlm repl]", "Continue a named session in rlm repl", oneSession
	cmd.Long, cmd.Example = `Continue a named session in rlm repl.`, "  rlm sessions open notes"
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		err := WithSessions(e, sessions.Look, func(k *sessions.Keeper) error {
			exists, err := k.Exists(cmd.Context(), args[0])
			if err == nil && !exists {
				err = fmt.Errorf("there is no session %q: rlm sessions list shows them", args[0])
			}
			return err
		})
		if err != nil {
			return err
		}
		if err := cmd.Flags().Set("session", args[0]); err != nil {
			return err
		}
		return run(cmd, nil)
	}
	return cmd
}

func newSessionsFork(e *cli.Env) *cobra.Command {
	as := ""
	cmd := &cobra.Command{
		Use: "fork NAME --as NEW", Short: "Copy a named session", Args: oneSession,
		RunE: func(cmd *cobra.Command, args []string) error {
			if as == "" {
				return errors.New("name the new session with --as")
			}
			return WithSessions(e, sessions.Use, func(k *sessions.Keeper) error {
				return k.Fork(cmd.Context(), args[0], as)
			})
		},
	}
	cmd.Flags().StringVar(&as, "as", "", "`name` of the new session")
	return cmd
}

func newSessionsExport(e *cli.Env) *cobra.Command {
	out := ""
	cmd := &cobra.Command{
		Use: "export NAME [-o FILE]", Short: "Write a named session to a file, for another machine", Args: oneSession,
		RunE: func(cmd *cobra.Command, args []string) error {
			return WithSessions(e, sessions.Look, func(k *sessions.Keeper) (err error) {
				if out == "" {
					return k.Export(cmd.Context(), args[0], e.Stdout)
				}
				file, err := cli.CreateFile(out)
				if err != nil {
					return err
				}
				defer func() { err = errors.Join(err, file.Close()) }()
				return k.Export(cmd.Context(), args[0], file)
			})
		},
	}
	cmd.Flags().StringVarP(&out, "output", "o", "", "new `file` to write, in place of stdout")
	return cmd
}

func newSessionsImport(e *cli.Env) *cobra.Command {
	as, allowPaths := "", false
	cmd := &cobra.Command{
		Use: "import FILE --as NAME", Short: "Import a session from a file, under a new name",
		Long: `Import a session from a file of "rlm sessions export", under a new name. The file may come
from someone else: its variables stay in the sandbox. If the contexts of the session are
files of this machine, its code could read them. So rlm refuses such a session without
--allow-paths.`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return errors.New("give one file, or - for stdin")
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if as == "" {
				return errors.New("name the session with --as")
			}
			return WithSessions(e, sessions.Use, func(k *sessions.Keeper) error {
				if args[0] == "-" {
					return k.Import(cmd.Context(), e.Stdin, as, allowPaths)
				}
				file, err := e.Open(args[0])
				if err != nil {
					return err
				}
				defer file.Close()
				return k.Import(cmd.Context(), file, as, allowPaths)
			})
		},
	}
	cmd.Flags().StringVar(&as, "as", "", "`name` of the session")
	cmd.Flags().BoolVar(&allowPaths, "allow-paths", false, "let the session read the files that it names")
	return cmd
}

func newSessionsRemove(e *cli.Env) *cobra.Command {
	return &cobra.Command{
		Use: "rm NAME...", Short: "Delete named sessions", Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return WithSessions(e, sessions.Use, func(k *sessions.Keeper) error {
				for _, name := range args {
					if err := k.Remove(cmd.Context(), name); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
}
