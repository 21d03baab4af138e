package services

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
	"github.com/rlmhq/rlm/cmd/rlm/internal/wiring"
	"github.com/rlmhq/rlm/internal/keep/keyring"
	"github.com/rlmhq/rlm/internal/text/quantity"
	"github.com/rlmhq/rlm/server"
)

const keysLong = `Keep the keys of model providers, and make the keys of a server.

set and remove are about the keys with which rlm asks a provider of models, such as OpenAI:
see rlm models. They are kept for all later commands of this user.

create and revoke are about the keys with which clients ask rlm serve. Such a key belongs to a
tenant, and sees only the data of this tenant. The server stores only the hash of a key.
Changes take effect at once, also while the server runs.

list shows both.`

// NewKeys makes the command rlm keys.
func NewKeys(e *cli.Env) *cobra.Command {
	cmd := &cobra.Command{
		Use: "keys", Short: "Keep the keys of model providers, and make the keys of a server", Long: keysLong,
	}
	cmd.AddCommand(
		newKeysSet(e), newKeysRemove(e), newKeysList(e), newKeysCreate(e), newKeysRevoke(e))
	return cmd
}

// useFolder calls use with the data folder. It returns usage errors.
func useFolder(d *wiring.DataFlag, use func(server.Folder) error) error {
	dir, err := d.Find()
	if err == nil {
		err = use(server.Folder(dir))
	}
	if err != nil {
		return cli.Usage(err)
	}
	return nil
}

// oneKey requires the name of a key as the only argument.
func oneKey(_ *cobra.Command, args []string) error {
	if len(args) != 1 {
		return errors.New("give the name of one key")
	}
	return nil
}

func newKeysCreate(e *cli.Env) *cobra.Command {
	var data wiring.DataFlag
	var key server.Key
	var scopes []string
	var money string
	var files wiring.Size
	cmd := &cobra.Command{
		Use: "create NAME", Short: "Make a key of a server and print it, once", Args: oneKey,
		Example: `  rlm keys create alice --max-usd 20/month
  rlm keys create dashboard --tenant alice --scope read`,
		RunE: func(cmd *cobra.Command, args []string) error {
			key.Name, key.Limits.Files = args[0], int64(files)
			key.SetScopes(scopes...)
			if money != "" {
				if err := key.Limits.SetMoney(money); err != nil {
					return fmt.Errorf("--max-usd %w", err)
				}
			}
			return useFolder(&data, func(folder server.Folder) error {
				_, secret, err := folder.CreateKey(cmd.Context(), key)
				if err != nil {
					return err
				}
				_, err = fmt.Fprintln(e.Stdout, secret)
				return err
			})
		},
	}
	flags := cmd.Flags()
	data.Add(flags)
	flags.StringVar(&key.Tenant, "tenant", "", "`tenant` that the key belongs to (default: the name of the key)")
	flags.StringSliceVar(&scopes, "scope", []string{"read", "run"},
		"`scopes` of the key, separated by commas: read, run, approve, metrics, admin")
	flags.StringVar(&money, "max-usd", "", "`budget` in US dollars, such as 20/month, 5/day or 100")
	flags.IntVar(&key.Limits.Runs, "max-runs", 0, "maximum `number` of runs at the same time, 0 for no limit")
	flags.IntVar(&key.Limits.Sessions, "max-sessions", 0, "maximum `number` of sessions, 0 for no limit")
	flags.IntVar(&key.Limits.Requests, "max-requests", 0, "maximum `number` of requests per minute, 0 for no limit")
	flags.Var(&files, "max-files", "maximum `size` of all files, sessions and conversations of the tenant")
	return cmd
}

func newKeysList(e *cli.Env) *cobra.Command {
	var data wiring.DataFlag
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "List the keys of providers and of a server, without their secrets", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			stored, err := keyRing().List()
			if err != nil {
				return cli.Usage(err)
			}
			made, err := serverKeys(cmd.Context(), &data)
			if err != nil {
				return err
			}

			switch {
			case asJSON:
				return printKeys(e, stored, made)
			case len(stored)+len(made) == 0:
				e.NoteUnless(false)("there are no keys: rlm keys set PROVIDER keeps one of a provider, " +
					"rlm keys create NAME makes one of a server")
				return nil
			}
			return listKeys(e, stored, made)
		},
	}
	data.Add(cmd.Flags())
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a line of JSON for each key")
	return cmd
}

// serverKeys returns the keys of a server. It does not create a data folder.
func serverKeys(ctx context.Context, data *wiring.DataFlag) (all []server.Key, err error) {
	if dir, err := data.Find(); err == nil {
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			return nil, nil
		}
	}
	return all, useFolder(data, func(folder server.Folder) error {
		all, err = folder.Keys(ctx)
		return err
	})
}

// printKeys prints a line of JSON for each key.
func printKeys(e *cli.Env, stored []keyring.Entry, made []server.Key) error {
	for _, key := range stored {
		if err := cli.PrintLine(e.Stdout, key); err != nil {
			return err
		}
	}

	for i := range made {
		if err := cli.PrintLine(e.Stdout, made[i]); err != nil {
			return err
		}
	}
	return nil
}

// listKeys prints a table of the keys of providers, and one of the keys of a server.
func listKeys(e *cli.Env, stored []keyring.Entry, made []server.Key) error {
	if len(stored) > 0 {
		table := tabwriter.NewWriter(e.Stdout, 0, 0, 2, ' ', 0)
		_, _ = fmt.Fprintln(table, "PROVIDER\tKEPT IN")
		for _, key := range stored {
			_, _ = fmt.Fprintf(table, "%s\t%s\n", cli.Escape(key.Provider), cli.Escape(key.Place))
		}
		if err := table.Flush(); err != nil || len(made) == 0 {
			return err
		}
		_, _ = fmt.Fprintln(e.Stdout)
	}
	return listServerKeys(e, made)
}

func listServerKeys(e *cli.Env, all []server.Key) error {
	table := tabwriter.NewWriter(e.Stdout, 0, 0, 2, ' ', 0)

	_, _ = fmt.Fprintln(table, "NAME\tID\tTENANT\tSCOPES\tBUDGET\tRUNS\tSESSIONS\tREQUESTS\tMADE\tSTATUS")
	orNone := func(n int) string {
		if n == 0 {
			return "-"
		}
		return strconv.Itoa(n)
	}

	for i := range all {
		k := &all[i]
		budget, status := "-", "in use"
		if k.Limits.USD > 0 {
			budget = fmt.Sprintf("$%g/%s", k.Limits.USD, k.Limits.Period)
		}
		if !k.Revoked.IsZero() {
			status = "revoked"
		}
		scopes := slices.Collect(func(yield func(string) bool) {
			for _, s := range k.Scopes {
				if !yield(string(s)) {
					return
				}
			}
		})
		_, _ = fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", k.Name, k.ID, k.Tenant,
			strings.Join(scopes, ","), budget, orNone(k.Limits.Runs), orNone(k.Limits.Sessions),
			orNone(k.Limits.Requests), quantity.Ago(k.Created, time.Now()), status)
	}
	return table.Flush()
}

func newKeysRevoke(*cli.Env) *cobra.Command {
	var data wiring.DataFlag
	cmd := &cobra.Command{
		Use: "revoke NAME", Short: "Revoke a key of a server, by its name or its ID", Args: oneKey,
		RunE: func(cmd *cobra.Command, args []string) error {
			return useFolder(&data, func(folder server.Folder) error {
				return folder.RevokeKey(cmd.Context(), args[0])
			})
		},
	}
	data.Add(cmd.Flags())
	return cmd
}
