package session

import "github.com/rlmhq/rlm/tiers"

// RejectNative returns a [*tiers.RejectedError] for a configuration that a tier of native
// processes cannot enforce, nil if it can. The work of a process cannot be metered
// repeatably, and its runs differ from each other.
func RejectNative(tier string, cfg tiers.Config) error {
	var what string
	switch {
	case cfg.Limits.Fuel != 0:
		what = "a fuel limit"
	case cfg.Deterministic:
		what = "determinism"
	default:
		return nil
	}

	return &tiers.RejectedError{
		Tier:    tier,
		Missing: what,
		Effects: tiers.EffectsNeverRan,
		Reason:  "it cannot enforce " + what,
	}
}

// RejectFiles returns a [*tiers.RejectedError] for a configuration that requires files, nil if it
// requires none. It serves tiers without a file system.
func RejectFiles(tier string, cfg tiers.Config) error {
	what := nameFiles(cfg)
	if what == "" {
		return nil
	}
	return &tiers.RejectedError{
		Tier:    tier,
		Missing: what,
		Effects: tiers.EffectsNeverRan,
		Reason:  "it does not support " + what,
	}
}

// nameFiles names the file access that a configuration requires, empty if none.
func nameFiles(c tiers.Config) string {
	switch {
	case len(c.Mounts) > 0:
		return "files of the host (mounts)"
	case c.Out:
		return "files that are copied back (out)"
	}
	return ""
}
