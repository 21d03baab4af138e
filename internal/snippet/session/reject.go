package session

import "github.com/rlmhq/rlm/tiers"

// RejectNative returns a [*tiers.RejectedError] for a configuration that a tier of native processes
// cannot enforce, or nil. The work of a native process cannot be metered repeatably, and its runs
// differ from one another.
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

// RejectMounts returns a [*tiers.RejectedError] for a configuration with mounts, or nil. It is for
// tiers that cannot show files of the host.
func RejectMounts(tier string, cfg tiers.Config) error {
	if len(cfg.Mounts) == 0 {
		return nil
	}
	return rejectFiles(tier, "files of the host (mounts)")
}

// RejectFiles returns a [*tiers.RejectedError] for a configuration that requires files, or nil. It
// is for tiers without a file system.
func RejectFiles(tier string, cfg tiers.Config) error {
	if cfg.Out {
		return rejectFiles(tier, "files that are copied back (out)")
	}
	return RejectMounts(tier, cfg)
}

func rejectFiles(tier, what string) error {
	return &tiers.RejectedError{
		Tier:    tier,
		Missing: what,
		Effects: tiers.EffectsNeverRan,
		Reason:  "it does not support " + what,
	}
}
