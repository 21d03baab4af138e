package main

import (
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/cmd/rlm/internal/config"
	"github.com/rlmhq/rlm/router"
	"github.com/rlmhq/rlm/tiers"
)

const explainLong = `Say where code would run, and why, without running it.

The table names the tiers that may run the code, in the order in which they would
be tried, and for every other the reason against it.

Exit codes: 0 a tier may run it, 1 it is not valid code, 2 usage, 3 no tier may
run it, 5 the analyser broke.`

func newExplain(e *env) *cobra.Command {
	var f execFlags
	cmd := &cobra.Command{
		Use:     "explain [-c CODE | FILE... | -]",
		Short:   "Say where code would run, and why, without running it",
		Long:    explainLong,
		Example: "  rlm explain -c 'import numpy'\n  rlm explain --allow-local --json script.py",
		RunE: func(cmd *cobra.Command, args []string) error {
			return withEngine(cmd, e, &f, args, func(s *rlm.Session, jobs []tiers.Job) error {
				for _, job := range jobs {
					plan, err := s.Explain(cmd.Context(), job)
					if err != nil {
						return &exitError{exitBroken, err}
					}
					if err := showPlan(e.stdout, &plan, f.json); err != nil {
						return err
					}
					if plan.Invalid != "" {
						return &exitError{code: exitRaised}
					}
					if plan.Err() != nil {
						return &exitError{code: exitNoTier}
					}
				}
				return nil
			})
		},
	}
	flags := cmd.Flags()
	f.addCode(flags)
	config.AddFlags(flags, config.In(config.Limits))
	flags.BoolVar(&f.json, "json", false, "print one JSON object for each snippet instead")
	return cmd
}

// showPlan prints a plan for people, or as JSON for programs.
func showPlan(w io.Writer, plan *router.Plan, asJSON bool) error {
	if !asJSON {
		_, err := fmt.Fprintln(w, plan.Text())
		return err
	}
	encoder := json.NewEncoder(w)
	encoder.SetEscapeHTML(false)
	return encoder.Encode(plan)
}
