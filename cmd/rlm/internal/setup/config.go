package setup

import (
	"fmt"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
	"github.com/rlmhq/rlm/cmd/rlm/internal/config"
)

const configLong = `Print every setting, its value and its source.

Flags override environment variables, environment variables override the
configuration file, and the file overrides the defaults. Add flags of other commands
to see their effects. API keys are never printed.`

// jsonSetting is one setting in the output of --json.
type jsonSetting struct {
	Key      string        `json:"key"`
	Value    any           `json:"value"`
	From     config.Origin `json:"from"`
	Variable string        `json:"variable"`
	Flag     string        `json:"flag,omitempty"`
	Default  string        `json:"default"`
	Doc      string        `json:"doc"`
}

// NewConfig makes the command rlm config.
func NewConfig(e *cli.Env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Print every setting and its source",
		Long:  configLong,
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := showConfig(e, asJSON); err != nil {
				return cli.Broken(err)
			}
			return nil
		},
	}

	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	config.AddFlags(cmd.Flags(), config.In(config.Routing, config.Limits, config.Models,
		config.Run, config.Graphs, config.Reflect, config.Triggers))

	return cmd
}

func showConfig(e *cli.Env, asJSON bool) error {
	if asJSON {
		all := []jsonSetting{}
		for _, s := range config.Settings(&e.Settings.Config) {
			out := jsonSetting{
				Key:      s.Key,
				Value:    s.Value.JSON(),
				From:     e.Settings.From(s.Key),
				Variable: s.Variable(),
				Default:  s.Default,
				Doc:      s.Doc,
			}

			if !s.NoFlag {
				out.Flag = "--" + s.Flag()
			}
			all = append(all, out)
		}
		return cli.PrintLine(e.Stdout, struct {
			File     string        `json:"file"`
			Settings []jsonSetting `json:"settings"`
		}{e.Settings.File, all})
	}

	file := e.Settings.File
	if file == "" {
		file = "none"
	}
	if _, err := fmt.Fprintln(e.Stdout, "configuration file:", cli.Escape(file)); err != nil {
		return err
	}

	w := tabwriter.NewWriter(e.Stdout, 0, 0, 2, ' ', 0)
	group := config.Group("")
	for _, s := range config.Settings(&e.Settings.Config) {
		if s.Group != group {
			group = s.Group
			_, _ = fmt.Fprintf(w, "\n%s\tvalue\tfrom\n", group)
		}
		value := cli.Escape(s.Value.String())
		if value == "" {
			value = "-"
		}

		_, _ = fmt.Fprintf(w, "  %s\t%s\t%s\n", s.Key, value,
			cli.Escape(e.Settings.From(s.Key).String()))
	}

	return w.Flush()
}
