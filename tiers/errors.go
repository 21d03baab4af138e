package tiers

import (
	"context"
	"errors"
	"fmt"
	"strings"
)

// Effects reports whether a snippet had effects outside its sandbox.
type Effects string

// The values of Effects: the snippet never started, it ran at least in part, or the tier cannot
// tell.
const (
	EffectsNeverRan Effects = "never_ran"
	EffectsRan      Effects = "ran"
	EffectsUnknown  Effects = "unknown"
)

// RejectedError reports that a tier cannot run a snippet that another tier might run.
type RejectedError struct {
	// Tier is the tier's name.
	Tier string
	// Missing names the module, feature or language that the snippet needs and the tier lacks.
	Missing string
	// Reason explains the rejection in one sentence, for display.
	Reason string
	// Effects reports whether the snippet had started.
	Effects Effects
}

// Error names the tier that rejected the snippet, and the reason.
func (e *RejectedError) Error() string {
	return fmt.Sprintf("tier %s cannot run the snippet: %s", e.Tier, e.Reason)
}

// BrokenError reports that a tier failed at its own work.
type BrokenError struct {
	// Tier is the tier's name.
	Tier string
	// Effects reports whether the snippet ran.
	Effects Effects
	// Lost describes the session's loss; nil if there is none.
	Lost *Loss
	// Err is the cause.
	Err error
}

// Error names the tier that broke, and describes the failure.
func (e *BrokenError) Error() string {
	if errors.Is(e.Err, context.Canceled) {
		cause := strings.TrimSuffix(e.Err.Error(), context.Canceled.Error())
		return strings.TrimSuffix(
			fmt.Sprintf("interrupted in tier %s (snippet %s): %s", e.Tier, e.Effects, cause), ": ")
	}
	return fmt.Sprintf("tier %s broke (snippet %s): %v", e.Tier, e.Effects, e.Err)
}

// Unwrap returns the cause.
func (e *BrokenError) Unwrap() error { return e.Err }
