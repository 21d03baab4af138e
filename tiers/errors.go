package tiers

import "fmt"

// Effects says whether a snippet had effects outside its sandbox.
type Effects string

// What may be known of a snippet's effects.
const (
	EffectsNeverRan Effects = "never_ran"
	EffectsRan      Effects = "ran"
	EffectsUnknown  Effects = "unknown"
)

// RejectedError says that a tier cannot run a snippet and another might.
type RejectedError struct {
	// Tier is the tier's name.
	Tier string
	// Missing is what the snippet needs and the tier lacks: a module, a
	// feature, a language.
	Missing string
	// Reason is one sentence for people.
	Reason string
	// Effects says whether the snippet had begun.
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
	// Effects says what became of the snippet.
	Effects Effects
	// Lost says what the session lost, nil if nothing.
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

// RejectNative is the rejection of a configuration that a tier of native processes
// cannot enforce, nil if it can: nobody counts the work of a process, and no two runs
// are alike.
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
