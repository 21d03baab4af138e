package tiers

import "context"

// Mount shows a file or folder of the host in the sandbox, read-only.
type Mount struct {
	// Source is a path on the host, Target the path in the sandbox. Both are absolute.
	Source, Target string
}

// OutFolder is the folder into which snippets write the files to be collected.
const OutFolder = "/out"

// Files names the file access that a configuration requires, empty if none. A tier that
// cannot provide it rejects the session.
func (c Config) Files() string {
	switch {
	case len(c.Mounts) > 0:
		return "files of the host (mounts)"
	case c.Out:
		return "files that come back"
	}
	return ""
}

// RejectFiles returns a [*RejectedError] for a configuration that requires files, nil if it
// requires none. It serves tiers without a file system.
func RejectFiles(tier string, cfg Config) error {
	what := cfg.Files()
	if what == "" {
		return nil
	}
	return &RejectedError{
		Tier:    tier,
		Missing: what,
		Effects: EffectsNeverRan,
		Reason:  "it has no place for " + what,
	}
}

// Collector is a Sandbox whose [OutFolder] can be copied to the host.
type Collector interface {
	// Collect copies the files below OutFolder into the host's folder dir, which must be
	// empty. It refuses links, devices and names that lead outside, and reports them. It
	// must not be called while Run runs.
	Collect(ctx context.Context, dir string) (Collected, error)
}

// Collected reports which files came back.
type Collected struct {
	Files int
	Bytes int64
	// Refused names each entry that was not copied, with the reason; at most a hundred.
	Refused []string
	// Lost says why files that snippets had written are gone, empty if none are.
	Lost string
}
