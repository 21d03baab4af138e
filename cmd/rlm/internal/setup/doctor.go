package setup

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
	"github.com/rlmhq/rlm/cmd/rlm/internal/config"
	"github.com/rlmhq/rlm/cmd/rlm/internal/wiring"
	"github.com/rlmhq/rlm/repl/llm/providers"
)

// NewDoctor makes the command rlm doctor.
func NewDoctor(e *cli.Env) *cobra.Command {
	cmd := newDiagnosis(
		e, "doctor", "Show which tiers and jail layers work on this machine",
		"Show which tiers work on this machine, which layers the jail around host processes\n"+
			"has, how each layer is enforced, and how to get the missing layers. With a model, also\n"+
			"show what its server refused before, and how requests avoid that since.",
		func(d *diagnosis) (err error) {
			if e.Settings.Model != "" {
				d.Model, err = learn(e, e.Settings.Model)
			}
			return err
		},
		func(out io.Writer, d *diagnosis) error { return showDoctor(out, d, e.Version) },
	)
	config.AddFlags(cmd.Flags(), config.Named("model", "cache_dir"))
	return cmd
}

// learned describes what this program has learned about a model's server.
type learned struct {
	Name    string   `json:"name"`
	Server  string   `json:"server,omitempty"`
	Learned []string `json:"learned"`
}

// learn returns what was learned about a model. It sends no request to a server.
func learn(e *cli.Env, name string) (*learned, error) {
	options, err := wiring.ModelOptions(e)
	if err != nil {
		return nil, err
	}
	options.Unasked, options.Record, options.Replay, options.Sampling = true, "", "", nil
	registry, err := providers.New(options)
	if err != nil {
		return nil, err
	}
	defer registry.Close()
	model, err := registry.Resolve(name)
	if err != nil {
		return nil, err
	}

	found := &learned{Name: model.Name, Learned: []string{}}
	if learner, ok := model.Provider.(interface {
		Learned(model string) (server string, what []string, err error)
	}); ok {
		var what []string
		found.Server, what, err = learner.Learned(model.ID)
		found.Learned = append(found.Learned, what...)
	}
	return found, err
}

// showLearned prints what was learned about a model, or nothing.
func showLearned(out io.Writer, model *learned) error {
	if model == nil {
		return nil
	}

	at := ""
	if model.Server != "" {
		at = " at " + model.Server
	}
	if _, err := fmt.Fprintf(out, "\nmodel %s%s:\n", cli.Escape(model.Name), cli.Escape(at)); err != nil {
		return err
	}
	lines := model.Learned
	if len(lines) == 0 {
		lines = []string{"nothing yet"}
	}
	for _, line := range lines {
		if _, err := fmt.Fprintln(out, "  learned:", cli.Escape(line)); err != nil {
			return err
		}
	}
	return nil
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

func showDoctor(out io.Writer, d *diagnosis, version string) error {
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
	return showLearned(out, d.Model)
}
