// Package results describes how snippets ended, as JSON: for `rlm exec --json`, the session
// protocol and the server.
package results

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/rlmhq/rlm/internal/snippet/session"
	"github.com/rlmhq/rlm/router"
	"github.com/rlmhq/rlm/tiers"
)

// Result describes how a snippet ended, as printed by `rlm exec --json`. Its names are part of the
// interface: see docs/reference/cli.md.
type Result struct {
	Status    tiers.Status     `json:"status"`
	Tier      string           `json:"tier"`
	Stdout    string           `json:"stdout"` // without Echo
	Echo      string           `json:"echo,omitempty"`
	Stderr    string           `json:"stderr,omitempty"`
	Dropped   int64            `json:"dropped_bytes,omitempty"`
	Final     bool             `json:"final"`
	Value     json.RawMessage  `json:"value,omitempty"`
	Files     []File           `json:"files,omitempty"`
	Exception *tiers.Exception `json:"exception,omitempty"`
	Limit     tiers.Limit      `json:"limit,omitempty"`
	Denied    []tiers.Denial   `json:"denied,omitempty"`
	Lost      *tiers.Loss      `json:"lost,omitempty"`
	Moved     *Move            `json:"moved,omitempty"`
	Usage     Usage            `json:"usage"`
	// Enforced is set in the first result of a session, and in each result whose limits differ from
	// those of the previous result.
	Enforced []tiers.Enforcement `json:"enforced,omitempty"`
}

// OmitKnown removes the enforcement of the limits if the session's reader has received it already.
// known is the enforcement that the reader received last; OmitKnown updates it.
func (r *Result) OmitKnown(known *[]tiers.Enforcement) {
	if slices.Equal(*known, r.Enforced) {
		r.Enforced = nil
	} else if len(r.Enforced) > 0 {
		*known = r.Enforced
	}
}

// Move reports that the session moved to another tier.
type Move struct {
	From string       `json:"from"`
	To   string       `json:"to"`
	Kept int          `json:"variables"`
	Left []tiers.Left `json:"left_behind,omitempty"`
}

// Usage is a snippet's use of resources.
type Usage struct {
	ActiveMS   float64 `json:"active_ms"`
	WallMS     float64 `json:"wall_ms"`
	HostWaitMS float64 `json:"host_wait_ms"`
	QueuedMS   float64 `json:"queued_ms"`
	Fuel       uint64  `json:"fuel"`
	PeakMemory int64   `json:"peak_memory_bytes"`
	HostCalls  int     `json:"host_calls"`
	Output     int64   `json:"output_bytes"`
}

// Describe returns the result of a snippet, without its artefacts.
func Describe(r router.Result) *Result {
	stdout := r.Stdout
	if r.Echo != "" {
		stdout = strings.TrimSuffix(strings.TrimSuffix(stdout, "\n"), r.Echo)
	}
	out := &Result{
		Status: r.Status, Tier: r.Tier, Stdout: stdout, Echo: r.Echo, Stderr: r.Stderr, Dropped: r.Dropped,
		Limit: r.Limit, Enforced: append([]tiers.Enforcement{}, r.Enforced...),
		Usage: Usage{
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
		out.Final, out.Value = true, ValidJSON(r.Final.Value)
	}
	out.Exception, out.Denied, out.Lost = r.Exception, r.Denied, DescribeLoss(r.Lost)
	if m := r.Moved; m != nil {
		out.Moved = &Move{m.From, m.To, m.Report.Moved, m.Report.Left}
	}

	return out
}

// DescribeLoss returns a loss whose snippets are a list in JSON, even if there are none.
func DescribeLoss(lost *tiers.Loss) *tiers.Loss {
	if lost == nil {
		return nil
	}
	return &tiers.Loss{Snippets: append([]int{}, lost.Snippets...), Reason: lost.Reason}
}

// JoinLosses adds one loss to another. Either may be nil.
func JoinLosses(a, b *tiers.Loss) *tiers.Loss { return DescribeLoss(session.JoinLosses(a, b)) }

func ms(ns int64) float64 { return float64(ns) / 1e6 }

// ValidJSON returns a value as valid JSON. The sandbox preserves bytes of contexts that are not
// UTF-8; each becomes U+FFFD.
func ValidJSON(value tiers.Value) tiers.Value {
	if utf8.Valid(value) {
		return value
	}
	return tiers.Value(string([]rune(string(value))))
}
