package code

import (
	"cmp"
	"context"
	"errors"
	"io"

	"github.com/rlmhq/rlm/cmd/rlm/internal/cli"
	"github.com/rlmhq/rlm/internal/plan/results"
	"github.com/rlmhq/rlm/router"
	"github.com/rlmhq/rlm/tiers"
)

// The statuses that --json prints without a snippet's result, in addition to those of
// [tiers.Status].
const (
	statusUsage       tiers.Status = "usage"
	statusNoTier      tiers.Status = "no_tier"
	statusBroken      tiers.Status = "broken"
	statusInterrupted tiers.Status = "interrupted"
)

// jsonFailure is the output of --json if no result of a snippet reports how the command ended.
type jsonFailure struct {
	Status   tiers.Status     `json:"status"`
	ExitCode int              `json:"exit_code"`
	Error    string           `json:"error"`
	Refusals []router.Refusal `json:"refusals,omitempty"`
	Effects  tiers.Effects    `json:"effects,omitempty"`
	Lost     *tiers.Loss      `json:"lost,omitempty"`
}

// printFailure prints the object for an error that no result describes, and returns the error.
func printFailure(ctx context.Context, w io.Writer, err error) error {
	var exit *cli.ExitError
	if !errors.As(err, &exit) || exit.Err == nil {
		return err
	}

	statuses := map[int]tiers.Status{cli.ExitUsage: statusUsage, cli.ExitNoTier: statusNoTier}
	out := jsonFailure{
		Status:   cmp.Or(statuses[exit.Code], statusBroken),
		ExitCode: exit.Code,
		Error:    exit.Err.Error(),
	}
	if ctx.Err() != nil {
		out.Status, out.ExitCode, out.Error = statusInterrupted, cli.ExitInterrupted, cli.ErrInterrupted.Error()
	}

	var refused *router.NoTierError
	if errors.As(err, &refused) {
		out.Refusals, out.Effects = refused.Refusals, refused.Effects
	}
	var broken *tiers.BrokenError
	if errors.As(err, &broken) {
		out.Effects = broken.Effects
		out.Lost = results.DescribeLoss(broken.Lost)
	}

	return errors.Join(err, cli.PrintLine(w, out))
}
