package code

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
	"github.com/rlmhq/rlm/cmd/rlm/internal/config"
	"github.com/rlmhq/rlm/tiers"
)

const explainLong = `Show which tier would run code, and why. Nothing runs.

The table first lists the tiers that may run the code, in the order in which the router
would try them. Each other tier follows with the reason against it.

Exit codes: 0 a tier may run the code; 1 the code is not valid; 2 usage; 3 no tier
may run the code; 5 the analyser broke.`

// NewExplain makes the command rlm explain.
func NewExplain(e *cli.Env) *cobra.Command {
	var f ExecFlags
	cmd := &cobra.Command{
		Use:     "explain [-c CODE | FILE... | -]",
		Short:   "Show which tier would run code, and why",
		Long:    explainLong,
		Example: "  rlm explain -c 'import numpy'\n  rlm explain --allow-local --json script.py",
		RunE: func(cmd *cobra.Command, args []string) error {
			return withEngine(cmd, e, &f, args, func(s *rlm.Session, jobs []tiers.Job) error {
				for _, job := range jobs {
					plan, err := s.Explain(cmd.Context(), job)
					if err != nil {
						return cli.Broken(err)
					}
					var whole any
					if f.json {
						whole = plan
					}
					if err := ShowPlan(e.Stdout, plan.Text(), whole); err != nil {
						return err
					}
					if plan.Invalid != "" {
						return cli.Exit(cli.ExitRaised, nil)
					}

					if plan.Err() != nil {
						return cli.Exit(cli.ExitNoTier, nil)
					}
				}

				return nil
			})
		},
	}

	flags := cmd.Flags()
	f.addCode(flags)
	config.AddFlags(flags, config.In(config.Limits))
	flags.BoolVar(&f.json, "json", false, "print one JSON object for each snippet")
	return cmd
}

// ShowPlan prints a plan as JSON, or the text if the plan is nil.
func ShowPlan(w io.Writer, text string, plan any) error {
	if plan != nil {
		return cli.PrintLine(w, plan)
	}
	_, err := fmt.Fprintln(w, text)
	return err
}
