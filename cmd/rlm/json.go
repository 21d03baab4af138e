package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"

	"github.com/rlmhq/rlm"
	"github.com/rlmhq/rlm/router"
	"github.com/rlmhq/rlm/tiers"
)

// jsonResult is the output of --json. Its names are part of the interface: see docs/cli.md.
type jsonResult struct {
	Status    tiers.Status        `json:"status"`
	Tier      string              `json:"tier"`
	Stdout    string              `json:"stdout"` // without Echo
	Echo      string              `json:"echo,omitempty"`
	Stderr    string              `json:"stderr,omitempty"`
	Dropped   int64               `json:"dropped_bytes,omitempty"`
	Final     bool                `json:"final"`
	Value     json.RawMessage     `json:"value,omitempty"`
	Files     []jsonFile          `json:"files,omitempty"`
	Exception *jsonException      `json:"exception,omitempty"`
	Limit     tiers.Limit         `json:"limit,omitempty"`
	Denied    []jsonDenial        `json:"denied,omitempty"`
	Lost      *jsonLoss           `json:"lost,omitempty"`
	Moved     *jsonMove           `json:"moved,omitempty"`
	Usage     jsonUsage           `json:"usage"`
	Enforced  []tiers.Enforcement `json:"enforced"`
}

type jsonException struct {
	Type      string `json:"type"`
	Message   string `json:"message"`
	Traceback string `json:"traceback,omitempty"`
	ExitCode  int    `json:"exit_code,omitempty"`
}

type jsonDenial struct {
	Target string `json:"target"`
	Reason string `json:"reason"`
}

type jsonLoss struct {
	Snippets []int  `json:"snippets"`
	Reason   string `json:"reason"`
}

type jsonMove struct {
	From string       `json:"from"`
	To   string       `json:"to"`
	Kept int          `json:"variables"`
	Left []tiers.Left `json:"left_behind,omitempty"`
}

type jsonUsage struct {
	ActiveMS   float64 `json:"active_ms"`
	WallMS     float64 `json:"wall_ms"`
	HostWaitMS float64 `json:"host_wait_ms"`
	QueuedMS   float64 `json:"queued_ms"`
	Fuel       uint64  `json:"fuel"`
	PeakMemory int64   `json:"peak_memory_bytes"`
	HostCalls  int     `json:"host_calls"`
	Output     int64   `json:"output_bytes"`
}

// describeResult returns the result of a snippet as --json has it.
func describeResult(r rlm.Result) *jsonResult {
	stdout := r.Stdout
	if r.Echo != "" {
		stdout = strings.TrimSuffix(strings.TrimSuffix(stdout, "\n"), r.Echo)
	}
	out := &jsonResult{
		Status: r.Status, Tier: r.Tier, Stdout: stdout, Echo: r.Echo, Stderr: r.Stderr, Dropped: r.Dropped,
		Limit: r.Limit, Enforced: r.Enforced,
		Usage: jsonUsage{
			ActiveMS:   ms(r.Usage.Active.Nanoseconds()),
			WallMS:     ms(r.Usage.Wall.Nanoseconds()),
			HostWaitMS: ms(r.Usage.HostWait.Nanoseconds()),
			QueuedMS:   ms(r.Usage.Queued.Nanoseconds()),
			Fuel:       r.Usage.Fuel,
			PeakMemory: r.Usage.PeakMemory,
			HostCalls:  r.Usage.HostCalls,
			Output:     r.Usage.OutputBytes,
		},
	}

	if r.Final != nil {
		out.Final, out.Value = true, validJSON(r.Final.Value)
	}
	if x := r.Exception; x != nil {
		out.Exception = &jsonException{x.Type, x.Message, x.Traceback, x.ExitCode}
	}

	for _, d := range r.Denied {
		out.Denied = append(out.Denied, jsonDenial(d))
	}
	if r.Lost != nil {
		out.Lost = &jsonLoss{r.Lost.Snippets, r.Lost.Reason}
	}
	if m := r.Moved; m != nil {
		out.Moved = &jsonMove{m.From, m.To, m.Report.Moved, m.Report.Left}
	}

	return out
}

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
	Lost     *jsonLoss        `json:"lost,omitempty"`
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
		if broken.Lost != nil {
			out.Lost = &jsonLoss{broken.Lost.Snippets, broken.Lost.Reason}
		}
	}

	return errors.Join(err, printLine(w, out))
}

func ms(ns int64) float64 { return float64(ns) / 1e6 }
