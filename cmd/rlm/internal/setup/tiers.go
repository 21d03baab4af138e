package setup

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
	"github.com/rlmhq/rlm/cmd/rlm/internal/config"
	"github.com/rlmhq/rlm/cmd/rlm/internal/wiring"
	"github.com/rlmhq/rlm/standard"
)

// diagnosis is the output of rlm tiers and rlm doctor.
type diagnosis struct {
	rlm.Diagnosis
	// Model describes the server of a model, if the user named a model.
	Model *learned `json:"model,omitempty"`
}

// newDiagnosis makes a command that shows a diagnosis of this machine. add completes the diagnosis;
// it may be nil.
func newDiagnosis(
	e *cli.Env, use, short, long string, add func(*diagnosis) error, show func(io.Writer, *diagnosis) error,
) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: use, Short: short, Long: long, Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			engine, err := rlm.New(rlm.Options{
				WasmEngine: e.Settings.Engine, Tiers: standard.Tiers(wiring.TierOptions(e)), Log: e.Log,
			})
			if err != nil {
				return cli.Usage(err)
			}
			defer engine.Close()
			d := diagnosis{Diagnosis: engine.Diagnose(cmd.Context())}
			if add != nil {
				if err := add(&d); err != nil {
					return cli.Usage(err)
				}
			}

			if asJSON {
				encoder := json.NewEncoder(e.Stdout)
				encoder.SetEscapeHTML(false)
				return encoder.Encode(d)
			}
			return show(e.Stdout, &d)
		},
	}

	cmd.Flags().BoolVar(&asJSON, "json", false, "print one JSON object")
	config.AddFlags(cmd.Flags(), config.Named("python", "local_folder", "allow_sampled", "image"))
	return cmd
}

// NewTiers makes the command rlm tiers.
func NewTiers(e *cli.Env) *cobra.Command {
	return newDiagnosis(e, "tiers", "List the tiers and whether each works on this machine",
		"List the tiers, and whether each works on this machine. If a tier does not work, the\n"+
			"list gives the reason.", nil, showTiers)
}

func showTiers(out io.Writer, d *diagnosis) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	_, _ = fmt.Fprintln(w, "tier\tlanguages\tisolation\tusable\tnote")
	for _, tier := range d.Tiers {
		var languages []string
		for _, language := range tier.Languages {
			languages = append(languages, string(language))
		}
		usable, note := "yes", tier.Version
		if tier.OnRequest {
			note = strings.TrimPrefix(note+"; only with --allow-local or --tier "+tier.Name, "; ")
		}
		if !tier.Usable {
			usable, note = "no", tier.Why
		}

		_, _ = fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\n", tier.Name, strings.Join(languages, ", "),
			tier.Isolation, usable, note)
	}

	return w.Flush()
}
