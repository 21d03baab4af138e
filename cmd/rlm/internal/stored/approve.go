package stored

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/spf13/cobra"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
	"github.com/rlmhq/rlm/cmd/rlm/internal/loops"
	"github.com/rlmhq/rlm/cmd/rlm/internal/wiring"
)

func newRunsApprove(e *cli.Env) *cobra.Command {
	var value string
	cmd := &cobra.Command{
		Use: "approve ID...", Short: "Allow calls that parked runs wait for", Args: cobra.MinimumNArgs(1),
		Long: `Allow calls that parked runs wait for. "rlm runs show NAME" shows each call and its ID.
"rlm runs resume NAME" then makes the call, once.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			d := rlm.Decision{Allow: true}
			if value != "" {
				d.Value = json.RawMessage(value)
			}
			return decide(cmd.Context(), e, args, d)
		},
	}
	cmd.Flags().StringVar(&value, "value", "", "return this `JSON` as the answer, and do not make the call")
	return cmd
}

func newRunsDeny(e *cli.Env) *cobra.Command {
	d := rlm.Decision{}
	cmd := &cobra.Command{
		Use: "deny ID...", Short: "Deny calls that parked runs wait for", Args: cobra.MinimumNArgs(1),
		Long: `Deny calls that parked runs wait for. The snippet gets an exception in place of an answer
when "rlm runs resume NAME" continues the run.`,
		RunE: func(cmd *cobra.Command, args []string) error { return decide(cmd.Context(), e, args, d) },
	}
	cmd.Flags().StringVar(&d.Reason, "reason", "", "`text` that the model reads in the exception")
	return cmd
}

// decide answers the calls with the given IDs, and prints how to continue their runs.
func decide(ctx context.Context, e *cli.Env, ids []string, d rlm.Decision) error {
	return wiring.WithRuns(e, func(engine *rlm.Engine) error {
		var names []string
		for _, id := range ids {
			name, err := engine.Decide(ctx, id, d)
			if err != nil {
				return err
			}
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
		for _, name := range names {
			loops.TellNext(ctx, e, engine, name, "")
		}
		return nil
	})
}
