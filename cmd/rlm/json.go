package main

import (
	"cmp"
	"context"
	"errors"
	"io"

	"github.com/rlmhq/rlm/internal/plan/results"
	"github.com/rlmhq/rlm/router"
	"github.com/rlmhq/rlm/tiers"
)

// The statuses of --json without a result of a snippet, besides those of [tiers.Status].
const (
	statusUsage       tiers.Status = "usage"
	statusNoTier      tiers.Status = "no_tier"
	statusBroken      tiers.Status = "broken"
	statusInterrupted tiers.Status = "interrupted"
)

// jsonFailure is the output of --json if no snippet's result tells how the command ended.
type jsonFailure struct {
	Status   tiers.Status     `json:"status"`
	ExitCode int              `json:"exit_code"`
	Error    string           `json:"error"`
	Refusals []router.Refusal `json:"refusals,omitempty"`
	Effects  tiers.Effects    `json:"effects,omitempty"`
	Lost     *results.Loss    `json:"lost,omitempty"`
}

// printFailure prints the object of an error that no result describes, and returns the error.
func printFailure(ctx context.Context, w io.Writer, err error) error {
	var exit *exitError
	if !errors.As(err, &exit) || exit.err == nil {
		return err
	}

	statuses := map[int]tiers.Status{exitUsage: statusUsage, exitNoTier: statusNoTier}
	out := jsonFailure{
		Status:   cmp.Or(statuses[exit.code], statusBroken),
		ExitCode: exit.code,
		Error:    exit.err.Error(),
	}
	if ctx.Err() != nil {
		out.Status, out.ExitCode = statusInterrupted, exitInterrupted
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

	return errors.Join(err, printLine(w, out))
}
