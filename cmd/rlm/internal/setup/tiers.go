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

// newDiagnosis makes a command that shows a diagnosis of this machine.
func newDiagnosis(
	e *cli.Env, use, short, long string, show func(io.Writer, *rlm.Diagnosis) error,
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
			d := engine.Diagnose(cmd.Context())

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
			"list gives the reason.", showTiers)
}

// NewDoctor makes the command rlm doctor.
func NewDoctor(e *cli.Env) *cobra.Command {
	return newDiagnosis(
		e, "doctor", "Show which tiers and jail layers work on this machine",
		"Show which tiers work on this machine, which layers the jail around host processes\n"+
			"has, how each layer is enforced, and how to get the missing layers.",
		func(out io.Writer, d *rlm.Diagnosis) error { return showDoctor(out, d, e.Version) },
	)
}

func showTiers(out io.Writer, d *rlm.Diagnosis) error {
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

// showFolders prints the host's files that a tier shows to snippets.
func showFolders(out io.Writer, tier rlm.TierStatus) {
	if len(tier.Shown) > 0 {
		_, _ = fmt.Fprintln(out, "  shows:", strings.Join(tier.Shown, ", "))
	}
	for _, folder := range tier.Hidden {
		_, _ = fmt.Fprintln(out, "  hides:", folder)
	}
}

func showDoctor(out io.Writer, d *rlm.Diagnosis, version string) error {
	if _, err := fmt.Fprintf(out, "rlm %s on %s\n\n", version, d.System); err != nil {
		return err
	}
	if err := showTiers(out, d); err != nil {
		return err
	}

	for _, tier := range d.Tiers {
		var features []string
		for _, feature := range tier.Features {
			features = append(features, string(feature))
		}
		_, _ = fmt.Fprintf(out, "\ntier %s: %d Python modules; %s\n", tier.Name, tier.Modules,
			strings.Join(features, ", "))
		showFolders(out, tier)
	}

	class := d.Jail.Class
	if class == "" {
		class = "none"
	}
	_, _ = fmt.Fprintf(out, "\njail around host processes: %s\n", class)
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)

	for _, layer := range d.Jail.Layers {
		state, how := "on", layer.Mechanism
		if !layer.On {
			state, how = "off", layer.Why
		}
		_, _ = fmt.Fprintf(w, "  %s\t%s\t%s\n", layer.Name, state, how)
	}

	if err := w.Flush(); err != nil {
		return err
	}
	for _, advice := range d.Jail.Advice {
		if _, err := fmt.Fprintln(out, "  advice:", advice); err != nil {
			return err
		}
	}

	return nil
}
