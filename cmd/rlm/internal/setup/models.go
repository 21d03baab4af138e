package setup

import (
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
	"github.com/rlmhq/rlm/cmd/rlm/internal/wiring"
	"github.com/rlmhq/rlm/repl/llm/providers"
)

const modelsLong = `List the models that are available here, by the names that --model takes.

It looks for keys in the settings, in the environment and among those of rlm keys set,
and names only where each key is. It asks the servers on this machine for their models, all
at once: Ollama, LM Studio, llama.cpp, vLLM and LiteLLM at their usual ports, for 300 ms, or
at the addresses in the environment, for 2 s. It asks no other server.

For a provider elsewhere, it shows one name as an example. Name the provider to ask its
server for all names. That costs nothing.

Exit codes: 0 listed, even if there are none; 2 usage, bad settings, or a named provider that
cannot be used.`

// firstModel is the page for users who do not have a model yet.
const firstModel = "https://github.com/rlmhq/rlm/blob/main/docs/start/first-model.md"

// NewModels makes the command rlm models.
func NewModels(e *cli.Env) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "models [PROVIDER...]", Short: "List the models that are available here", Long: modelsLong,
		Example: `  rlm models
  rlm models gemini openrouter`,
		RunE: func(cmd *cobra.Command, args []string) error {
			options, err := wiring.ModelOptions(e)
			if err != nil {
				return cli.Usage(err)
			}
			offers, err := providers.Offers(cmd.Context(), options, args...)
			if err != nil {
				return cli.Usage(err)
			}
			adviseKeys(offers)

			show := showOffers
			if asJSON {
				show = printOffers
			}
			if err := show(e, offers); err != nil {
				return err
			}
			return refuseUnusable(offers, len(args) > 0)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print a line of JSON for each provider")
	return cmd
}

// adviseKeys extends the problem of each refused key with the key's origin, and with advice on how
// to use another key.
func adviseKeys(offers []providers.Offer) {
	for i := range offers {
		if o := &offers[i]; o.Refused {
			o.Problem += "; " + cli.AdviseKey(o.Provider, o.Key)
		}
	}
}

// refuseUnusable returns an error if a provider that the user named cannot be used.
func refuseUnusable(offers []providers.Offer, areNamed bool) error {
	for i := range offers {
		if areNamed && offers[i].Problem != "" {
			return cli.Exit(cli.ExitUsage, nil)
		}
	}
	return nil
}

// printOffers prints a line of JSON for each provider.
func printOffers(e *cli.Env, offers []providers.Offer) error {
	for i := range offers {
		if err := cli.PrintLine(e.Stdout, &offers[i]); err != nil {
			return err
		}
	}
	return nil
}

// showOffers prints a table of all models, and notes about their providers.
func showOffers(e *cli.Env, offers []providers.Offer) error {
	table := tabwriter.NewWriter(e.Stdout, 0, 0, 2, ' ', 0)
	row := func(cells ...string) { _, _ = fmt.Fprintln(table, strings.Join(cells, "\t")) }
	row("MODEL", "SERVER", "KEY")
	isEmpty := true
	for i := range offers {
		o := &offers[i]
		key := o.Key
		if key == "" {
			key = "no key"
		}
		for _, name := range o.Models {
			isEmpty = false
			row(cli.Escape(name), cli.Escape(o.Server), cli.Escape(key))
		}
	}

	defer noteOffers(e.NoteUnless(false), offers)
	if isEmpty {
		return nil
	}
	return table.Flush()
}

// noteOffers notes which providers cannot be used or have more models, and what to do if there are
// no models.
func noteOffers(note func(string, ...any), offers []providers.Offer) {
	var examples []string
	for i := range offers {
		switch o := &offers[i]; {
		case o.Problem != "":
			note("%s at %s: %s", o.Provider, o.Server, o.Problem)
		case o.Example && o.Provider != "azure":
			examples = append(examples, o.Provider)
		case len(o.Models) == 0:
			note("%s at %s has no model yet: load one", o.Provider, o.Server)
		}
	}

	if len(examples) > 0 {
		note("for all models of a provider, run rlm models %s", strings.Join(examples, " "))
	}
	if len(offers) == 0 {
		note("no model is available here")
		note("with a key of a provider, such as openai, gemini or groq, run rlm keys set PROVIDER")
		note("without a key, run a model on this machine, for example with Ollama: ollama pull llama3.2")
		note("both are explained in %s", firstModel)
	}
}
