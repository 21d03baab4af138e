package setup

import (
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
	"github.com/rlmhq/rlm/cmd/rlm/internal/sessions"
	"github.com/rlmhq/rlm/cmd/rlm/internal/stored"
	"github.com/rlmhq/rlm/cmd/rlm/internal/wiring"
	"github.com/rlmhq/rlm/repl/llm/providers"
)

// suggestArguments returns the completion of a command's arguments if they are names of stored data
// or of providers, and nil otherwise.
func (c *completer) suggestArguments(cmd *cobra.Command) cobra.CompletionFunc {
	var suggest cobra.CompletionFunc
	switch path := cmd.CommandPath(); path {
	case "rlm runs show", "rlm runs resume", "rlm runs rewind", "rlm runs fork", "rlm runs export", "rlm runs rm",
		"rlm view", "rlm trace show":
		suggest = c.suggestRuns
	case "rlm runs approve", "rlm runs deny":
		suggest = c.suggestWaiting
	case "rlm sessions open", "rlm sessions fork", "rlm sessions export", "rlm sessions rm":
		suggest = c.suggestSessions
	case "rlm models", "rlm keys set", "rlm keys remove":
		suggest = suggestWords(providers.Names()...)
	default:
		return nil
	}

	takesMany := slices.Contains([]string{"rm", "approve", "deny", "view", "models"}, cmd.Name())
	return func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 && !takesMany {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		names, directive := suggest(cmd, args, begun)
		names = slices.DeleteFunc(names, func(name string) bool { return slices.Contains(args, name) })
		if cmd.CommandPath() == "rlm view" || cmd.CommandPath() == "rlm trace show" { // files are accepted, too
			directive = cobra.ShellCompDirectiveDefault
		}
		return names, directive
	}
}

// suggestRuns suggests the stored runs, most recently changed first, or none if they cannot be
// read.
func (c *completer) suggestRuns(cmd *cobra.Command, _ []string, _ string) (
	names []cobra.Completion, _ cobra.ShellCompDirective,
) {
	c.readRuns(cmd, rlm.RunFilter{}, func(r *rlm.StoredRun) { names = append(names, r.Name) })
	return names, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
}

// suggestWaiting suggests the calls that wait for a decision.
func (c *completer) suggestWaiting(cmd *cobra.Command, _ []string, _ string) (
	ids []cobra.Completion, _ cobra.ShellCompDirective,
) {
	c.readRuns(cmd, rlm.RunFilter{Status: "parked"}, func(r *rlm.StoredRun) {
		for _, waiting := range r.Waiting {
			ids = append(ids, cobra.CompletionWithDesc(waiting.ID, r.Name+": "+cli.Escape(waiting.Why)))
		}
	})
	return ids, cobra.ShellCompDirectiveNoFileComp
}

// takeStore applies --store of the completed command line, because completion reads the settings
// without that flag.
func (c *completer) takeStore(cmd *cobra.Command) {
	if flag := cmd.Flag("store"); flag != nil && flag.Changed {
		c.e.Settings.Store = flag.Value.String()
	}
}

// readRuns passes the runs of the store to take. It does not create a store.
func (c *completer) readRuns(cmd *cobra.Command, filter rlm.RunFilter, take func(*rlm.StoredRun)) {
	c.takeStore(cmd)
	dir, err := wiring.NeedStore(c.e)
	if err == nil {
		_, err = os.Stat(dir)
	}
	if err == nil {
		err = wiring.WithRuns(c.e, func(engine *rlm.Engine) error {
			filter.Limit = 1_000
			runs, err := engine.Runs(cmd.Context(), filter)
			for i := range runs {
				take(&runs[i])
			}
			return err
		})
	}
	if err != nil {
		cobra.CompDebugln("the names of runs: "+err.Error(), false)
	}
}

// suggestSessions suggests the stored sessions, or none if they cannot be read.
func (c *completer) suggestSessions(
	cmd *cobra.Command, _ []string, _ string,
) (names []cobra.Completion, _ cobra.ShellCompDirective) {
	c.takeStore(cmd)
	err := stored.WithSessions(c.e, sessions.Look, func(k *sessions.Keeper) error {
		list, err := k.List(cmd.Context())
		for i := range list {
			names = append(names, list[i].Name)
		}
		return err
	})
	if err != nil {
		cobra.CompDebugln("the names of sessions: "+err.Error(), false)
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}
