package tiers

import "fmt"

// Effects says whether a snippet had effects outside its sandbox.
type Effects string

// The values of Effects: the snippet never started, it ran at least in part, or the tier
// cannot say.
const (
	EffectsNeverRan Effects = "never_ran"
	EffectsRan      Effects = "ran"
	EffectsUnknown  Effects = "unknown"
)

// RejectedError says that a tier cannot run a snippet that another tier might run.
type RejectedError struct {
	// Tier is the tier's name.
	Tier string
	// Missing names what the snippet needs and the tier lacks: a module, a feature, a
	// language.
	Missing string
	// Reason explains the rejection to people, in one sentence.
	Reason string
	// Effects says whether the snippet had started.
	Effects Effects
}

// Error says which tier rejected the snippet and why.
func (e *RejectedError) Error() string {
	return fmt.Sprintf("tier %s cannot run the snippet: %s", e.Tier, e.Reason)
}

// BrokenError says that a tier failed at its own work.
type BrokenError struct {
	// Tier is the tier's name.
	Tier string
	// Effects says whether the snippet ran.
	Effects Effects
	// Lost describes what the session lost, nil if nothing.
	Lost *Loss
	// Err is the cause.
	Err error
}

// Error says which tier broke and how.
func (e *BrokenError) Error() string {
	return fmt.Sprintf("tier %s broke (snippet %s): %v", e.Tier, e.Effects, e.Err)
}

// Unwrap returns the cause.
func (e *BrokenError) Unwrap() error { return e.Err }

// RejectNative returns a [*RejectedError] for a configuration that a tier of native
// processes cannot enforce, nil if it can. The work of a process cannot be metered
// repeatably, and its runs differ from each other.
func RejectNative(tier string, cfg Config) error {
	var what string
	switch {
	case cfg.Limits.Fuel != 0:
		what = "a limit of fuel"
	case cfg.Deterministic:
		what = "determinism"
	default:
		return nil
	}

	return &RejectedError{
		Tier:    tier,
		Missing: what,
		Effects: EffectsNeverRan,
		Reason:  "it cannot enforce " + what,
	}
}
